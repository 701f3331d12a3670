import { describe, expect, test } from 'vitest';
import { ridges_of, type Point, type Roofs } from '../../src/chart/picture';

const roof = (path: string, value: number, much: boolean) => ({ path, label: path, value, ceiling: undefined, main: false, much });

// 1e12 B/s: each ridge is its roof's TFLOP/s.
const slope = { ...roof('memory.bandwidth', 1e12, true), main: true };

function point(path: string, intensity: number, share = 0.1): Point {
    const [engine, dtype] = path.split('.');
    return { record: { engine, dtype }, intensity, share } as unknown as Point;
}

describe('sides of the picture', () => {
    test('one roof has one ridge', () => {
        const roofs: Roofs = { slopes: [slope], flats: [roof('matrix.bf16', 300e12, true)] };
        expect(ridges_of(roofs, [point('matrix.bf16', 1), point('matrix.bf16', 900)])).toEqual({ lowest: 300, highest: 300 });
    });

    test('between the ridges of two roofs it depends', () => {
        const roofs: Roofs = { slopes: [slope], flats: [roof('matrix.fp8', 600e12, true), roof('matrix.bf16', 300e12, true)] };
        expect(ridges_of(roofs, [])).toEqual({ lowest: 300, highest: 600 });
    });

    test('a roof of little work counts where a point would stand on the wrong side', () => {
        const roofs: Roofs = { slopes: [slope], flats: [roof('matrix.bf16', 300e12, true), roof('vector.fp32', 20e12, false)] };
        expect(ridges_of(roofs, [point('vector.fp32', 5)])?.lowest).toBe(300);
        expect(ridges_of(roofs, [point('vector.fp32', 25)])).toEqual({ lowest: 20, highest: 300 });
        expect(ridges_of(roofs, [point('vector.fp32', 25, 0.01)])).toEqual({ lowest: 300, highest: 300 });
    });

    test('work that stays on the chip is right of any ridge', () => {
        const roofs: Roofs = { slopes: [slope], flats: [roof('matrix.bf16', 300e12, true), roof('matrix.fp4', 900e12, false)] };
        expect(ridges_of(roofs, [point('matrix.fp4', Infinity)])).toEqual({ lowest: 300, highest: 300 });
    });

    test('without memory or work there is no ridge', () => {
        expect(ridges_of({ slopes: [], flats: [roof('matrix.bf16', 300e12, true)] }, [])).toBeUndefined();
        expect(ridges_of({ slopes: [slope], flats: [] }, [])).toBeUndefined();
    });
});
