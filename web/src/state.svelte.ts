// What the page knows, in one place: the question, its answer, what is compared with it and how it is looked at.
import type { View, Shown } from './chart/picture';
import { nothing, pack, unpack_files, type Carried } from './carried';
import { Engine, failed } from './core/engine';
import type { Advice, DeviceJson, Report } from './core/report';
import {
    apply_flags, copy, files_of, first_question, fragment, put, put_setting, read_fragment, request, title, view_keys,
    type Brought, type Question,
} from './question';

export interface Scenario {
    question: Question;
    report: Report;
}

export interface Imported {
    title: string;
    name: string;
    text: string; // as it was dropped
    report: Report; // an account has a device, stages and records; the rest of a report may be missing
}

export const most_compared = 3; // beside the live one

export class PageState {
    engine = $state.raw<Engine | undefined>(undefined);
    question = $state<Question>(first_question());
    report = $state.raw<Report | undefined>(undefined);
    following = $state.raw<Report | undefined>(undefined); // the same a few frames later: for panels beside the chart
    settled = $state.raw<Report | undefined>(undefined); // the same once the hand rests: for what takes longer than a frame to show
    problem = $state('');
    refused = $state.raw<string[]>([]); // what was wrong with files that were dropped
    took_ms = $state(0);
    advice = $state.raw<Advice | undefined>(undefined);
    advice_problem = $state('');
    advising = $state(false);
    compared = $state.raw<Scenario[]>([]);
    imported = $state.raw<Imported[]>([]);
    brought: Brought = { files: {}, binaries: {} };
    brought_count = $state(0); // goes up with every file: `brought` itself is too large to be watched
    packed = $state(''); // the files of what is seen, for the link
    left_out = $state.raw<string[]>([]); // files that are too large for it
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
        const engine = await Engine.start();
        await this.read_link(location.hash.slice(1));
        const models = engine.ask<{ names?: string[] }>({ verb: 'models' });
        if (!failed(models)) this.models = (models.names ?? []).map((name) => ({ name, title: name }));
        const devices = engine.ask<{ devices: DeviceJson[] }>({ verb: 'devices' });
        if (!failed(devices)) this.devices = devices.devices.map(({ name, title, vendor }) => ({ name, title, vendor }));
        this.engine = engine;
        this.take_reports();
        this.compared = this.waiting_comparisons.flatMap((question) => this.answered(question) ?? []);
    }

    private asked = 0;
    private settling: ReturnType<typeof setTimeout> | undefined;
    private waiting_comparisons: Question[] = [];
    private waiting_reports: [name: string, text: string][] = [];

    async read_link(text: string): Promise<void> {
        const fields = new URLSearchParams(text);
        const files = fields.get('files') ?? '';
        if (files !== this.packed) {
            await this.take_carried(files);
            // What the link does not carry is no part of what it shows, but for what is too large to be carried.
            this.imported = this.imported.filter((one) => this.left_out.includes(one.name));
        }
        const question = read_fragment(text);
        if (question) this.question = question;
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
        if (!this.engine) return;
        this.take_reports();
        this.compared = this.waiting_comparisons.flatMap((one) => this.answered(one) ?? []);
    }

    /// What a link brings along is as if it had been dropped here.
    private async take_carried(files: string): Promise<void> {
        let carried: Carried = nothing();
        try {
            if (files) carried = await unpack_files(files);
        } catch (error) {
            this.said = `The files of this link cannot be read: ${error instanceof Error ? error.message : String(error)}`;
        }
        Object.assign(this.brought.files, carried.files);
        Object.assign(this.brought.binaries, carried.binaries);
        const is_device = (text: string) => /"schema":"roofline\.device\//.test(text);
        const texts = Object.entries(carried.files).filter(([name]) => name !== 'hf_quant_config.json');
        const shards = (name: string) => name.endsWith('.safetensors');
        this.own_devices = [...new Set([...this.own_devices, ...texts.filter(([, text]) => is_device(text)).map(([name]) => name)])];
        this.own_models = [...new Set([
            ...this.own_models, ...texts.filter(([, text]) => !is_device(text)).map(([name]) => name),
            ...Object.keys(carried.binaries).filter((name) => !shards(name)),
        ])];
        this.waiting_reports = Object.entries(carried.reports);
        this.packed = files;
        ++this.brought_count;
    }

    private take_reports(): void {
        for (const [name, text] of this.waiting_reports) this.import_report(name, text);
        this.waiting_reports = [];
    }

    /// Puts a report on the chart; what is wrong with it, or nothing.
    import_report(name: string, text: string): string {
        const account = this.engine?.ask<Report>({ verb: 'account', options: { report: name }, files: { [name]: text } });
        if (!account) return '';
        if (failed(account)) return account.error.text;
        if (this.imported.some((one) => one.name === name && one.text === text)) return '';
        this.imported = [...this.imported, { title: account.title || name, name, text, report: account }];
        return '';
    }

    private pack_number = 0;

    /// Packs the files of all that is seen. What they are is known at once, how small they become a moment later.
    async pack_files(): Promise<void> {
        const number = ++this.pack_number;
        const carried = nothing();
        for (const question of [this.question, ...this.compared.map((one) => one.question)]) {
            const needed = files_of(question, this.brought);
            Object.assign(carried.files, needed.files);
            Object.assign(carried.binaries, needed.binaries);
        }
        this.imported.forEach(({ name, text }, i) => (carried.reports[carried.reports[name] === undefined ? name : `${name} ${i}`] = text));
        const { text, left_out } = await pack(carried);
        if (number !== this.pack_number) return;
        this.packed = text;
        this.left_out = left_out;
    }

    /// The fragment of a link that shows what is seen now, with the files that were dropped here where they are small.
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
        if (this.packed) fields.set('files', this.packed);
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
            this.follow(report, first);
            clearTimeout(this.settling);
            if (!first) this.settling = setTimeout(() => (this.settled = report), 200);
            else this.settled = report;
        }
        // The first answer also reads the constants; it says nothing about the next ones.
        this.took_ms = first ? 0 : performance.now() - before;
    }

    private follower: ReturnType<typeof setTimeout> | undefined;

    /// The chart and the headline move with the hand. Bars and tables beside them come along some twelve times a second.
    private follow(report: Report, at_once: boolean): void {
        if (at_once) this.following = report;
        else this.follower ??= setTimeout(() => {
            this.follower = undefined;
            this.following = this.report;
        }, 80);
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
        this.refused = [];
        this.view = undefined;
        this.pinned = '';
        this.shown = 'expected';
        this.stage = 'both';
    }
}

export const page = new PageState();
export { view_keys };
