// From reports to what the chart draws: roofs, ridges and points in the units of the axes. No pixels here.
import type { DeviceJson, OperatorRecord, Report, Stage } from '../core/report';
import type { Domain } from './scale';

export interface Roof {
    path: string; // as --set calls it: memory.bandwidth, matrix.bf16
    label: string;
    value: number; // FLOP/s, or B/s for a slope
    ceiling: number | undefined; // measured, where it is known
    main: boolean;
    much: boolean; // much of the work runs under it
}

export interface Roofs {
    slopes: Roof[];
    flats: Roof[];
}

export interface Point {
    id: string; // stage/name
    stage: string;
    record: OperatorRecord;
    intensity: number; // infinite for work that stays on the chip
    rate: number; // FLOP/s over all of the record's time
    roof: number; // the highest rate that its intensity allows, of its own engine and type
    share: number; // of the stage's time
}

export type Shown = 'expected' | 'attainable' | 'limit';

export const stage_kind = (stage: string) => stage.split(' ')[0] ?? stage;

function rate_of(device: DeviceJson, engine: string, dtype: string): number | undefined {
    return device.engines.find((one) => one.id === engine)?.rates[dtype]?.value;
}

export function bandwidth(device: DeviceJson): number | undefined {
    return device.memory.find((level) => level.id === 'memory')?.bandwidth?.value;
}

/// The roofs that the records of a report run under. The main flat one is that which most FLOPs run under.
export function roofs_of(report: Report): Roofs {
    const device = report.device;
    const work = new Map<string, number>();
    for (const stage of report.stages) {
        for (const record of stage.records) {
            if (record.flops <= 0) continue;
            const path = `${record.engine}.${record.dtype}`;
            work.set(path, (work.get(path) ?? 0) + record.flops);
        }
    }
    const main = [...work].sort((a, b) => b[1] - a[1])[0]?.[0];
    const all = [...work.values()].reduce((sum, flops) => sum + flops, 0);
    const flats: Roof[] = [];
    for (const [path, flops] of work) {
        const [engine = '', dtype = ''] = path.split('.');
        const value = rate_of(device, engine, dtype);
        if (value === undefined) continue;
        flats.push({
            path, label: `${engine} ${dtype}`, value, ceiling: device.ceilings?.[path]?.value,
            main: path === main, much: path === main || flops > 0.02 * all,
        });
    }
    flats.sort((a, b) => b.value - a.value || a.path.localeCompare(b.path));
    const slopes: Roof[] = [];
    for (const level of device.memory) {
        const path = `${level.id}.bandwidth`;
        const value = level.bandwidth?.value ?? (level.id === 'cache' ? device.ceilings?.[path]?.value : undefined);
        if (value === undefined || (level.id !== 'memory' && level.id !== 'cache')) continue;
        slopes.push({
            path, label: level.technology ?? level.id, value,
            ceiling: level.bandwidth ? device.ceilings?.[path]?.value : undefined,
            main: level.id === 'memory', much: level.id === 'memory',
        });
    }
    return { slopes, flats };
}

/// FLOPs per byte up to which memory holds back whatever is drawn, and from which compute does. In between it depends on
/// the engine and number type: each flat roof has a ridge of its own.
export interface Ridges {
    lowest: number;
    highest: number;
}

/// Of the roofs that much work runs under, and of those under which one of these points would stand on the wrong side, if
/// it takes a share of the time that anybody would look at.
export function ridges_of(roofs: Roofs, points: Point[]): Ridges | undefined {
    const memory = roofs.slopes.find((roof) => roof.main)?.value;
    const much = roofs.flats.filter((roof) => roof.much);
    if (!memory || much.length === 0) return undefined;
    let lowest = Math.min(...much.map((roof) => roof.value)) / memory;
    let highest = Math.max(...much.map((roof) => roof.value)) / memory;
    for (const point of points) {
        const roof = roofs.flats.find((one) => one.path === `${point.record.engine}.${point.record.dtype}`);
        if (!roof || point.share < 0.02) continue;
        const own = roof.value / memory;
        if (own <= point.intensity && point.intensity < lowest) lowest = own;
        if (own > point.intensity && point.intensity >= highest) highest = own;
    }
    return { lowest, highest };
}

export function points_of(report: Report, shown: Shown): Point[] {
    const points: Point[] = [];
    const memory = bandwidth(report.device);
    for (const stage of report.stages) {
        const whole = stage_time(stage, shown);
        for (const record of stage.records) {
            const time = record.time_s.measured ?? record.time_s[shown];
            if (record.flops <= 0 || !(time > 0)) continue;
            const intensity = record.bytes.memory > 0 ? record.flops / record.bytes.memory : Infinity;
            const peak = rate_of(report.device, record.engine, record.dtype) ?? Infinity;
            points.push({
                id: `${stage.stage}/${record.name}`,
                stage: stage.stage,
                record,
                intensity,
                rate: record.flops / time,
                roof: Math.min(peak, memory === undefined ? Infinity : intensity * memory),
                share: whole > 0 ? Math.min(1, time / whole) : 0,
            });
        }
    }
    return points;
}

export function stage_time(stage: Stage, shown: Shown): number {
    return stage.time_s.measured ?? stage.time_s[shown];
}

export interface View {
    x: Domain;
    y: Domain;
}

/// Axes that hold the ridges of all reports and every point that takes a visible share of the time, in whole decades so
/// that they keep still while a slider moves.
export function view_of(reports: Report[], shown: Shown): View {
    let left = 0.4, right = 2000, bottom = Infinity, top = 0;
    for (const report of reports) {
        const { slopes, flats } = roofs_of(report);
        const memory = slopes.find((roof) => roof.main)?.value;
        for (const flat of flats) {
            top = Math.max(top, flat.value);
            if (memory) right = Math.max(right, (flat.value / memory) * 4);
        }
        for (const point of points_of(report, shown)) {
            if (point.share < 0.01) continue;
            if (Number.isFinite(point.intensity)) {
                left = Math.min(left, point.intensity / 1.5);
                right = Math.max(right, point.intensity * 1.5);
            }
            bottom = Math.min(bottom, point.rate / 2);
        }
        if (memory) bottom = Math.min(bottom, memory * 0.5);
    }
    if (top === 0) top = 1e15;
    if (!Number.isFinite(bottom)) bottom = top / 1e6;
    const half = (value: number, up: boolean) => {
        const steps = Math.log10(value) * 2;
        return 10 ** ((up ? Math.ceil(steps) : Math.floor(steps)) / 2);
    };
    return {
        x: { low: half(Math.max(left, 1e-4), false), high: half(Math.min(right, 1e7), true) },
        y: { low: half(Math.max(bottom, top / 1e8), false), high: half(top * 1.8, true) },
    };
}
