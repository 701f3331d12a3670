import { describe, expect, test } from 'vitest';
import { derivation } from '../../src/derivation';
import { apply_flags, command_line, first_question, fragment, put, read_fragment, request } from '../../src/question';

describe('questions', () => {
    test('a link gives back the question it was made of', () => {
        const question = first_question();
        put(question, 'dtype', 'fp8');
        question.set['memory.bandwidth'] = '2x';
        question.set['matrix.bf16'] = '500TFLOP/s';
        expect(read_fragment(fragment(question))).toEqual(question);
    });

    test('a link without a model and a device is none', () => {
        expect(read_fragment('')).toBeUndefined();
        expect(read_fragment('view=1,2,3,4')).toBeUndefined();
    });

    test('what equals the default is not said', () => {
        const question = first_question();
        put(question, 'batch', '1');
        put(question, 'tensor-parallel-size', '4');
        expect(question.options['batch']).toBeUndefined();
        expect(question.options['tp']).toBe('4');
    });

    test('the command line quotes what a shell would take apart', () => {
        const question = { options: { model: "my model's.gguf", device: 'h100-sxm', batch: '8' }, set: { 'memory.bandwidth': '2x' } };
        expect(command_line(question)).toBe(
            `roofline predict 'my model'\\''s.gguf' h100-sxm --batch 8 --set memory.bandwidth=2x`,
        );
    });

    test('flags of advice replace what was there', () => {
        const before = { options: { model: 'm', device: 'd', tp: '2' }, set: { 'memory.bandwidth': '2x' } };
        const after = apply_flags(before, '--tp 8 --enable-expert-parallel --kv-cache-dtype fp8 --set memory.bandwidth=4x');
        expect(after).toEqual({
            options: { model: 'm', device: 'd', tp: '8', 'enable-expert-parallel': 'true', 'kv-cache-dtype': 'fp8' },
            set: { 'memory.bandwidth': '4x' },
        });
        expect(before.options.tp).toBe('2');
    });

    test('only files that are named travel', () => {
        const question = { options: { model: 'config.json', device: 'h100-sxm' }, set: {} };
        const brought = { files: { 'config.json': '{}', 'other.json': '{}' }, binaries: {} };
        expect(request('predict', question, brought).files).toEqual({ 'config.json': '{}' });
    });
});

test('the derivation of one operator is found among all', () => {
    const text = '=== prefill of 8 tokens ===\n\nhead\n  a\n\n=== decode step, batch 1 ===\n\nhead.norm\n  b\n\nhead  (one of 2 layers)\n  c\n  d\n\nrest\n';
    expect(derivation(text, 'decode/head')).toBe('head  (one of 2 layers)\n  c\n  d');
    expect(derivation(text, 'prefill/head')).toBe('head\n  a');
    expect(derivation(text, 'decode/none')).toBe('');
});
