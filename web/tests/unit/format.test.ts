import { describe, expect, test } from 'vitest';
import * as show from '../../src/format';

// The same figures as tests/render/numbers_test.cpp asks of the command line, by the rule: four significant digits.
describe('numbers', () => {
    test('four digits and the right letter', () => {
        expect(show.with_unit(1.5e10, 'B')).toBe('15.00 GB');
        expect(show.time(0.00448)).toBe('4.480 ms');
        expect(show.time(999.96e-6)).toBe('1.000 ms');
        expect(show.time(0)).toBe('0 s');
        expect(show.bytes(512)).toBe('512 B');
        expect(show.flops(6e10)).toBe('60.00 GFLOP');
    });

    test('operations on integers are no FLOPs', () => {
        expect(show.flop_rate(1.979e15, 'matrix.int8')).toBe('1.979 POP/s');
        expect(show.flop_rate(1.979e15, 'int4')).toBe('1.979 POP/s');
        expect(show.flop_rate(9.895e14, 'matrix.bf16')).toBe('989.5 TFLOP/s');
        expect(show.flop_rate(9.895e14)).toBe('989.5 TFLOP/s');
    });

    test('thousands are separated', () => {
        expect(show.grouped(8030261248)).toBe('8,030,261,248');
        expect(show.plain(62060.4)).toBe('62,060');
        expect(show.plain(0.83333)).toBe('0.8333');
        expect(show.plain(295.34328)).toBe('295.3');
    });

    test('intensities have names for what is no number', () => {
        expect(show.intensity(Infinity)).toBe('inf');
        expect(show.intensity(null)).toBe('inf');
        expect(show.intensity(0.0001)).toBe('<0.001');
    });

    test('an exact tie goes to the even digit, as printf has it', () => {
        expect(show.fixed(0.5, 0)).toBe('0');
        expect(show.fixed(1.5, 0)).toBe('2');
        expect(show.fixed(2.5, 0)).toBe('2');
        expect(show.fixed(10.125, 2)).toBe('10.12'); // 10.125 has an exact double; its neighbours are not ties
        expect(show.fixed(10.375, 2)).toBe('10.38');
        expect(show.fixed(-2.5, 0)).toBe('-2');
        expect(show.fixed(1.005, 2)).toBe('1.00'); // the double is below 1.005
    });

    test('a range names its unit once where both ends have it', () => {
        expect(show.range(0.006208, 0.00718)).toBe('6.208-7.180 ms');
        expect(show.range(0.0009, 0.0011)).toBe('900.0 us-1.100 ms');
    });
});
