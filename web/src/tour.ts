// The guided tour: seven steps, each with a question for the live chart and words that use its numbers.
import type { Report, Stage } from './core/report';
import * as show from './format';
import type { Question } from './question';
import type { Shown } from './chart/picture';

export interface Step {
    title: string;
    question: Question;
    stage: 'both' | 'prefill' | 'decode';
    shown: Shown;
    pin?: string;
    text: (report: Report) => string[];
    asks: string; // something to try
}

const of = (report: Report, kind: string): Stage | undefined => report.stages.find((stage) => stage.stage.startsWith(kind));
const bandwidth = (report: Report) => report.device.memory.find((level) => level.id === 'memory')?.bandwidth?.value ?? 0;
const peak = (report: Report, dtype: string) => report.device.engines.find((engine) => engine.id === 'matrix')?.rates[dtype]?.value ?? 0;
const base = (more: Record<string, string>): Question => ({
    options: { model: 'llama-3.1-8b', device: 'h100-sxm', prompt: '1024', context: '1024', ...more },
    set: {},
});

export const steps: Step[] = [
    {
        title: 'Two numbers and a ratio',
        question: base({}), stage: 'decode', shown: 'limit',
        text: (report) => [
            `A chip has two speeds. It computes: ${show.flop_rate(peak(report, 'bf16'))}. And it reads its memory: ${show.byte_rate(bandwidth(report))}.`,
            `Divide one by the other: ${show.flop_rate(peak(report, 'bf16'))} / ${show.byte_rate(bandwidth(report))} = ${show.intensity(peak(report, 'bf16') / bandwidth(report))} FLOP per byte. So many operations must be done with each byte, or the chip waits for its memory. This ratio is the ridge.`,
        ],
        asks: 'Find the ridge on the chart: the circle where the slanted roof meets the flat one.',
    },
    {
        title: 'Intensity: what the work brings',
        question: base({}), stage: 'decode', shown: 'limit', pin: 'decode/layers.ffn.down',
        text: (report) => {
            const record = of(report, 'decode')?.records.find((one) => one.name === 'layers.ffn.down');
            return [
                'Work has two numbers as well: how many operations it does (FLOPs), and how many bytes it moves to and from memory. Their ratio is its arithmetic intensity: where it stands from left to right.',
                record ? `This matrix, for one token: ${show.flops(record.flops)} / ${show.bytes(record.bytes.memory)} = ${show.intensity(record.flops / record.bytes.memory)} FLOP per byte. Every weight is read, used for one multiply and one add, and not needed again.` : '',
            ];
        },
        asks: 'Hover over other points: each shows its own division.',
    },
    {
        title: 'The roof',
        question: base({}), stage: 'both', shown: 'limit',
        text: (report) => [
            'Nothing can be above the roof: speed is at most the peak, and at most intensity × bandwidth. The lower of the two holds.',
            `Left of ${show.intensity(peak(report, 'bf16') / bandwidth(report))} the slanted part is lower: such work is memory-bound. Right of it the flat part is: compute-bound. The points now stand at their limit, on the roof itself.`,
        ],
        asks: 'Drag the flat roof up: points on the slope do not move. Then double-click it to reset.',
    },
    {
        title: 'Decoding one token',
        question: base({}), stage: 'decode', shown: 'expected',
        text: (report) => {
            const stage = of(report, 'decode');
            return stage ? [
                `To write one token, every weight is read once: ${show.bytes(stage.bytes?.memory ?? 0)}. At ${show.byte_rate(bandwidth(report))} that takes ${show.time(stage.time_s.limit)}, whatever the peak is. An engine will show about ${show.time(stage.time_s.expected)}.`,
                `Intensity ${show.intensity(stage.intensity)} on a chip with a ridge of ${show.intensity(stage.ridge)}: ${show.percent(stage.fraction_of_peak)} of the peak is used. That is no fault of the engine. It is the roof.`,
            ] : [];
        },
        asks: 'Drag the slanted roof up: now everything gets faster.',
    },
    {
        title: 'Reading the prompt',
        question: base({}), stage: 'prefill', shown: 'expected',
        text: (report) => {
            const stage = of(report, 'prefill');
            return stage ? [
                `Prefill reads the same weights, but ${show.grouped(stage.tokens)} tokens use each one: ${show.intensity(stage.intensity)} FLOP per byte, right of the ridge. Compute-bound.`,
                `${show.flops(stage.flops ?? 0)} take ${show.time(stage.time_s.limit)} at the limit, ${show.time(stage.time_s.expected)} as expected. The same model on the same chip is bound by different things at different times.`,
            ] : [];
        },
        asks: 'Make the prompt shorter and watch when it crosses the ridge.',
    },
    {
        title: 'Batching',
        question: base({ batch: '64' }), stage: 'decode', shown: 'expected',
        text: (report) => {
            const stage = of(report, 'decode');
            return stage ? [
                `64 sequences at once share every read of a weight: the matrices move right to about 64 FLOP per byte, and ${show.plain(stage.tokens_per_s?.expected)} tokens/s come out.`,
                'Attention does not move: each sequence has a cache of its own to read. With long contexts that is what is left.',
            ] : [];
        },
        asks: 'Slide the batch, then the context, and see which points follow.',
    },
    {
        title: 'Quantisation',
        question: base({ dtype: 'fp8' }), stage: 'decode', shown: 'expected',
        text: (report) => {
            const stage = of(report, 'decode');
            return stage ? [
                `fp8 halves the bytes of every weight: ${show.bytes(stage.bytes?.memory ?? 0)} instead of about twice that. For memory-bound work half the bytes is half the time: ${show.time(stage.time_s.limit)} at the limit, ${show.time(stage.time_s.expected)} as expected.`,
                'It also doubles the flat roof here, which does nothing for decoding and much for prefill. Now you know what to ask of every change: does it move the point, or the roof, and which of the two holds me back?',
            ] : [];
        },
        asks: 'Close the tour and ask about your own model.',
    },
];
