// What the page knows, in one place: the question, its answer, what is compared with it and how it is looked at.
import type { View, Shown } from './chart/picture';
import { Engine, failed } from './core/engine';
import type { Advice, DeviceJson, Report } from './core/report';
import {
    apply_flags, copy, first_question, fragment, put, put_setting, read_fragment, request, title, view_keys,
    type Brought, type Question,
} from './question';

export interface Scenario {
    question: Question;
    report: Report;
}

export interface Imported {
    title: string;
    report: Report; // an account has a device, stages and records; the rest of a report may be missing
}

export const most_compared = 3; // beside the live one

export class PageState {
    engine = $state.raw<Engine | undefined>(undefined);
    question = $state<Question>(first_question());
    report = $state.raw<Report | undefined>(undefined);
    problem = $state('');
    took_ms = $state(0);
    advice = $state.raw<Advice | undefined>(undefined);
    advice_problem = $state('');
    advising = $state(false);
    compared = $state.raw<Scenario[]>([]);
    imported = $state.raw<Imported[]>([]);
    brought: Brought = { files: {}, binaries: {} };
    own_models = $state.raw<string[]>([]);
    own_devices = $state.raw<string[]>([]);
    models = $state.raw<{ name: string; title: string }[]>([]);
    devices = $state.raw<{ name: string; title: string; vendor: string }[]>([]);
    shown = $state<Shown>('expected');
    stage = $state<'both' | 'prefill' | 'decode'>('both');
    view = $state.raw<View | undefined>(undefined);
    pinned = $state(''); // id of a point: decode/layers.ffn.down
    hovered = $state('');
    tour = $state(-1);
    said = $state(''); // for screen readers and the line at the bottom

    async start(): Promise<void> {
        this.read_link(location.hash.slice(1));
        const engine = await Engine.start();
        const models = engine.ask<{ names?: string[] }>({ verb: 'models' });
        if (!failed(models)) this.models = (models.names ?? []).map((name) => ({ name, title: name }));
        const devices = engine.ask<{ devices: DeviceJson[] }>({ verb: 'devices' });
        if (!failed(devices)) this.devices = devices.devices.map(({ name, title, vendor }) => ({ name, title, vendor }));
        this.engine = engine;
        this.compared = this.waiting_comparisons.flatMap((question) => this.answered(question) ?? []);
    }

    private asked = 0;
    private waiting_comparisons: Question[] = [];

    read_link(text: string): void {
        const question = read_fragment(text);
        if (question) this.question = question;
        const fields = new URLSearchParams(text);
        const numbers = (fields.get('view') ?? '').split(',').map(Number);
        const [left = 0, right = 0, low = 0, high = 0] = numbers;
        this.view = numbers.length === 4 && left > 0 && right > left && low > 0 && high > low && Number.isFinite(right * high)
            ? { x: { low: left, high: right }, y: { low, high } }
            : undefined;
        this.pinned = fields.get('pin') ?? '';
        const shown = fields.get('show');
        this.shown = shown === 'limit' || shown === 'attainable' ? shown : 'expected';
        const stage = fields.get('stage');
        this.stage = stage === 'prefill' || stage === 'decode' ? stage : 'both';
        this.waiting_comparisons = fields.getAll('vs').slice(0, most_compared).flatMap((one) => read_fragment(one) ?? []);
        if (this.engine) this.compared = this.waiting_comparisons.flatMap((one) => this.answered(one) ?? []);
    }

    /// The fragment of a link that shows what is seen now. Files that were dropped here are not in it.
    get link(): string {
        const fields = new URLSearchParams();
        for (const scenario of this.compared) fields.append('vs', fragment(scenario.question));
        if (this.view) {
            const { x, y } = this.view;
            fields.set('view', [x.low, x.high, y.low, y.high].map((value) => value.toPrecision(4)).join(','));
        }
        if (this.pinned) fields.set('pin', this.pinned);
        if (this.shown !== 'expected') fields.set('show', this.shown);
        if (this.stage !== 'both') fields.set('stage', this.stage);
        const more = fields.toString();
        return fragment(this.question) + (more ? `&${more}` : '');
    }

    private answered(question: Question): Scenario | undefined {
        const report = this.engine?.ask<Report>(request('predict', question, this.brought));
        return report && !failed(report) ? { question, report } : undefined;
    }

    /// Asks the core; what was there stays on the page where the question has no answer.
    answer(): void {
        if (!this.engine) return;
        const first = this.asked++ === 0;
        const before = performance.now();
        const report = this.engine.ask<Report>(request('predict', this.question, this.brought));
        if (failed(report)) {
            this.problem = report.error.text;
        } else {
            this.problem = '';
            this.report = report;
        }
        // The first answer also reads the constants; it says nothing about the next ones.
        this.took_ms = first ? 0 : performance.now() - before;
    }

    private advice_number = 0;

    async advise(): Promise<void> {
        if (!this.engine || this.problem) return;
        const number = ++this.advice_number;
        this.advising = true;
        const [advice] = await this.engine.later<Advice>([request('advise', this.question, this.brought)]);
        if (number !== this.advice_number) return; // the question has moved on
        this.advising = false;
        if (!advice || failed(advice)) {
            this.advice = undefined;
            this.advice_problem = advice ? advice.error.text : '';
        } else {
            this.advice = advice;
            this.advice_problem = '';
        }
    }

    change(key: string, value: string): void {
        put(this.question, key, value);
    }

    set_figure(setting: string): void {
        put_setting(this.question, setting);
    }

    apply(flags: string): void {
        this.question = apply_flags(this.question, flags);
        this.said = `Applied ${flags}`;
    }

    compare(): void {
        if (!this.report || this.compared.length >= most_compared) return;
        this.compared = [...this.compared, { question: copy($state.snapshot(this.question)), report: this.report }];
        this.said = `${title(this.question)} stays on the chart`;
    }

    drop_comparison(index: number): void {
        this.compared = this.compared.filter((_, other) => other !== index);
    }

    reset(): void {
        this.question = first_question();
        this.compared = [];
        this.imported = [];
        this.view = undefined;
        this.pinned = '';
        this.shown = 'expected';
        this.stage = 'both';
    }
}

export const page = new PageState();
export { view_keys };
