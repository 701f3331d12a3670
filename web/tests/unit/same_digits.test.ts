// The page shows what the command line prints: the same questions through both, compared as parsed JSON, every digit.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { Core, type Request } from '../../src/core/module';
import * as show from '../../src/format';
import type { Report } from '../../src/core/report';

const binary = process.env['ROOFLINE_BINARY'] ?? fileURLToPath(new URL('../../../build/release/roofline', import.meta.url));
const wasm = process.env['ROOFLINE_WASM'] ?? fileURLToPath(new URL('../../../build/web/roofline.wasm', import.meta.url));
const core = new Core(new WebAssembly.Module(readFileSync(wasm)));

type Options = Record<string, string | string[] | boolean>;

function flags(options: Options): string[] {
    return Object.entries(options).flatMap(([key, value]) => {
        if (typeof value === 'boolean') return value ? [`--${key}`] : [];
        return [value].flat().flatMap((one) => [`--${key}`, one]);
    });
}

function printed(verb: string, options: Options): Record<string, unknown> {
    const run = spawnSync(binary, [verb, ...flags(options), '--format', 'json'], { encoding: 'utf8', maxBuffer: 1 << 28 });
    expect(run.status, run.stderr).toBeLessThan(2); // 1: the question has no answer, and the report says so
    return JSON.parse(run.stdout) as Record<string, unknown>;
}

function compare(verb: string, options: Options): void {
    const expected = printed(verb, options);
    const found = core.ask<Record<string, unknown>>({ verb, options } as Request) as Record<string, unknown>;
    delete expected['run']; // when and by which words it was asked
    delete found['run'];
    expect(found).toEqual(expected);
    // As text too: 0.1 and 0.10000000000000001 are one number, and -0 and 0 are equal.
    expect(JSON.stringify(found)).toBe(JSON.stringify(expected));
}

const predictions: Options[] = [];
for (const model of ['llama-3.1-8b', 'qwen3-30b-a3b', 'deepseek-v3', 'gemma-2-9b', 'gpt-oss-120b', 'mixtral-8x7b', 'gpt2']) {
    for (const device of ['h100-sxm', 'h200-sxm', 'mi300x', 'tpu-v4', 'm2-ultra']) predictions.push({ model, device, batch: '8', context: '2048' });
}
predictions.push(
    { model: 'llama-3.1-8b', device: 'h100-sxm' },
    { model: 'llama-3.1-8b', device: 'h100-sxm', dtype: 'fp8', batch: '64', prompt: '4096', generate: '512' },
    { model: 'llama-3.1-8b', device: 'rtx-4090', dtype: 'q4_k_m', profile: 'llama.cpp' },
    { model: 'llama-3.1-8b', device: 'h100-sxm', set: ['memory.bandwidth=2x', 'matrix.bf16=500TFLOP/s'] },
    { model: 'llama-3.1-70b', device: 'h200-sxm', tp: '4', batch: '64' },
    { model: 'llama-3.1-405b', device: 'h100-sxm', tp: '8', pp: '2', batch: '64', 'kv-cache-dtype': 'fp8' },
    { model: 'deepseek-v3', device: 'h200-sxm', dp: '16', 'enable-expert-parallel': true, batch: '512', 'dispatch-dtype': 'fp8' },
    { model: 'llama-3.1-70b', device: 'h100-sxm', batch: '999' },
    { model: 'llama-3.1-8b', device: 'h100-sxm', chunk: '512', batch: '17', context: '3001' },
    { model: 'llama-3.1-8b', device: 'a100-sxm-80gb', profile: 'eager', 'weight-dtype': 'int4' },
    { model: 'llama-3.1-8b', device: 'b200-sxm', quantization: 'nvfp4', batch: '3', prompt: '77' },
    { model: 'qwen2.5-32b', device: 'l40s', tp: '2', batch: '5', context: '10000', 'cached-prefix': '300' },
    { model: 'phi-3-mini', device: 'gb10', attention: 'unfused', prompt: '333' },
    { model: 'llama-3.1-8b', device: 'h100-sxm', engine: 'vllm', saturated: true, price: '2.5' },
    { params: '8e9', device: 'h100-sxm', dtype: 'fp16' },
);

describe('predict', () => {
    test('there are fifty questions', () => expect(predictions.length).toBeGreaterThanOrEqual(50));
    for (const options of predictions) {
        test(Object.entries(options).map(([key, value]) => `${key} ${value}`).join(', '), () => compare('predict', options));
    }
});

describe('advise', () => {
    for (const options of [
        { model: 'llama-3.1-8b', device: 'h100-sxm', batch: '8' },
        { model: 'deepseek-v3', device: 'h200-sxm', tp: '8', goal: 'throughput' },
        { model: 'llama-3.1-70b', device: 'h100-sxm', tp: '4', batch: '64', goal: 'cost', price: '2.50' },
    ]) {
        test(JSON.stringify(options), () => compare('advise', options));
    }
});

test('plan', () => compare('plan', { model: 'llama-3.1-8b', devices: 'h100-sxm:2' }));

test('what is wrong is said in the same words', () => {
    for (const options of [
        { model: 'llama-3.1-8c', device: 'h100-sxm' },
        { model: 'llama-3.1-8b', device: 'h100-sxm', batch: 'many' },
        { model: 'llama-3.1-8b', device: 'h100-sxm', tp: '3' },
        { model: 'llama-3.1-8b', device: 'h100-sxm', dtype: 'fp7' },
    ]) {
        const run = spawnSync(binary, ['predict', ...flags(options)], { encoding: 'utf8' });
        const answer = core.ask<Report>({ verb: 'predict', options });
        expect(run.status).toBe(2);
        expect('error' in answer && answer.error.exit).toBe(2);
        expect(run.stderr).toContain('error' in answer ? answer.error.text : '?');
    }
});

test('numbers are written as the command line writes them', () => {
    const options = { model: 'llama-3.1-8b', device: 'h100-sxm', batch: '7' };
    const report = core.ask<Report>({ verb: 'predict', options }) as Report;
    const text = execFileSync(binary, ['predict', ...flags(options), '--all'], { encoding: 'utf8' });
    const decode = text.slice(text.lastIndexOf('\n\ndecode step'));
    const stage = report.stages.find((one) => one.stage === 'decode');
    expect(stage?.records.length).toBeGreaterThan(10);
    for (const record of stage?.records ?? []) {
        const line = decode.split('\n').find((one) => one.trimStart().startsWith(`${record.name} `));
        expect(line, record.name).toBeDefined();
        for (const shown of [show.flops(record.flops), show.bytes(record.bytes.memory), show.time(record.time_s.limit), show.time(record.time_s.expected)])
            expect(line).toContain(shown);
    }
});

test('a question that makes no sense is answered and does not stop the core', () => {
    for (const verb of ['', 'fly', '__proto__']) expect(core.ask({ verb })).toHaveProperty('error');
    expect(JSON.parse(core.text({ verb: 'predict', options: [] as unknown as Options }))).toHaveProperty('error');
    expect(core.ask({ verb: 'devices' })).toHaveProperty('devices');
});
