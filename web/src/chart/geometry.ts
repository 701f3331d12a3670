// Where on the picture a roof runs: from the edge of the plot to the ridge, and its name along it.
import type { LogScale } from './scale';

export interface Line {
    x1: number;
    y1: number;
    x2: number;
    y2: number;
}

export interface Plot {
    left: number;
    right: number;
    top: number;
    bottom: number;
}

/// A bandwidth from the left (or the bottom) of the plot up to the rate `until`.
export function slope_line(bandwidth: number, until: number, x: LogScale, y: LogScale): Line | undefined {
    const low = Math.max(x.domain.low, y.domain.low / bandwidth);
    const high = Math.min(x.domain.high, y.domain.high / bandwidth, until / bandwidth);
    if (!(low < high)) return undefined;
    return { x1: x.at(low), y1: y.at(low * bandwidth), x2: x.at(high), y2: y.at(high * bandwidth) };
}

/// A rate from the ridge with `bandwidth` to the right of the plot.
export function flat_line(rate: number, bandwidth: number | undefined, x: LogScale, y: LogScale): Line | undefined {
    if (rate < y.domain.low || rate > y.domain.high) return undefined;
    const from = bandwidth ? Math.max(x.domain.low, rate / bandwidth) : x.domain.low;
    if (from >= x.domain.high) return undefined;
    return { x1: x.at(from), y1: y.at(rate), x2: x.at(x.domain.high), y2: y.at(rate) };
}

/// Degrees that a slope of one decade per decade has on the picture.
export function slope_angle(x: LogScale, y: LogScale): number {
    return (Math.atan2(y.decade, x.decade) * 180) / Math.PI;
}

/// The area under slope and flat roof, on one side of the ridge.
export function region(
    side: 'memory' | 'compute', bandwidth: number, rate: number, x: LogScale, y: LogScale, plot: Plot,
): string {
    const clamp = (value: number, low: number, high: number) => Math.min(high, Math.max(low, value));
    const ridge = clamp(x.at(rate / bandwidth), plot.left, plot.right);
    const top = clamp(y.at(rate), plot.top, plot.bottom);
    if (side === 'compute') return `M${ridge} ${top}H${plot.right}V${plot.bottom}H${ridge}Z`;
    const line = slope_line(bandwidth, rate, x, y);
    if (!line) return '';
    const end = clamp(line.y2, plot.top, plot.bottom);
    return `M${line.x1} ${line.y1}L${line.x2} ${end}H${ridge}V${plot.bottom}H${line.x1}Z`;
}

/// Circles for decode, squares for prefill, diamonds for all else; of the same area for the same radius.
export function marker(stage: string, x: number, y: number, radius: number): string {
    if (stage.startsWith('decode')) {
        return `M${x - radius} ${y}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0Z`;
    }
    if (stage.startsWith('prefill')) {
        const half = radius * 0.886;
        return `M${x - half} ${y - half}h${2 * half}v${2 * half}h${-2 * half}Z`;
    }
    const far = radius * 1.253;
    return `M${x} ${y - far}L${x + far} ${y}L${x} ${y + far}L${x - far} ${y}Z`;
}

export const radius_of = (share: number) => 3 + 15 * Math.sqrt(share);
