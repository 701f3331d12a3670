import { describe, expect, test } from 'vitest';
import { engineering, log_ticks, LogScale, nearest_index, slider_values, zoom } from '../../src/chart/scale';

describe('LogScale', () => {
    const scale = new LogScale({ low: 1, high: 1000 }, 100, 400);

    test('a decade is a third of three decades', () => {
        expect(scale.at(1)).toBeCloseTo(100);
        expect(scale.at(10)).toBeCloseTo(200);
        expect(scale.at(1000)).toBeCloseTo(400);
        expect(scale.decade).toBeCloseTo(100);
    });

    test('a place and its value are each other’s inverse', () => {
        for (const value of [1, 3.7, 295.3, 999]) expect(scale.value(scale.at(value))).toBeCloseTo(value, 9);
    });

    test('upside down it decreases', () => {
        const up = new LogScale({ low: 1e9, high: 1e15 }, 500, 20);
        expect(up.at(1e9)).toBeCloseTo(500);
        expect(up.at(1e12)).toBeCloseTo(260); // half way: (500 + 20) / 2
        expect(up.decade).toBeLessThan(0);
    });
});

describe('ticks', () => {
    test('every decade is labelled where there is room', () => {
        const labels = log_ticks({ low: 0.1, high: 1000 }, 10).filter((tick) => tick.label !== '').map((tick) => tick.label);
        expect(labels).toEqual(['100m', '1', '10', '100', '1k']);
    });

    test('some are left out where there is none', () => {
        const labels = log_ticks({ low: 1e6, high: 1e15 }, 3).filter((tick) => tick.label !== '').map((tick) => tick.label);
        expect(labels).toEqual(['1M', '1G', '1T', '1P']);
    });

    test('2 and 5 help where less than two decades are shown', () => {
        const labels = log_ticks({ low: 100, high: 1000 }, 10).filter((tick) => tick.label !== '').map((tick) => tick.label);
        expect(labels).toEqual(['100', '200', '500', '1k']);
    });

    test('engineering letters change at powers of a thousand', () => {
        expect([999, 1000, 2.5e6, 1e12, 0.001, 0].map(engineering)).toEqual(['999', '1k', '2.5M', '1T', '1m', '0']);
    });
});

describe('zoom', () => {
    test('the value under the pointer stays where it is', () => {
        const before = { low: 1, high: 1e6 };
        const after = zoom(before, 100, 0.5);
        const place = (domain: typeof before) => new LogScale(domain, 0, 1).at(100);
        expect(place(after)).toBeCloseTo(place(before), 9);
        expect(Math.log10(after.high / after.low)).toBeCloseTo(3); // half of six decades
    });

    test('it ends before anything is too near or too far', () => {
        expect(zoom({ low: 1, high: 1.5 }, 1.2, 0.5)).toEqual({ low: 1, high: 1.5 });
    });
});

describe('sliders', () => {
    test('positions are whole, rising, and hold both ends and every power of two', () => {
        const values = slider_values(1, 4096);
        expect(values[0]).toBe(1);
        expect(values.at(-1)).toBe(4096);
        for (let power = 1; power <= 4096; power *= 2) expect(values).toContain(power);
        values.slice(1).forEach((value, index) => expect(value).toBeGreaterThan(values[index] ?? Infinity));
        expect(values.every(Number.isInteger)).toBe(true);
    });

    test('nearest is by factor: 3 is nearer to 4 than to 2 (3/2 > 4/3)', () => {
        expect(nearest_index([1, 2, 4], 3)).toBe(2);
    });
});
