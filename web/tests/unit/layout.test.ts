import { describe, expect, test } from 'vitest';
import { flat_line, region, slope_angle, slope_line } from '../../src/chart/geometry';
import { overlap, place_labels } from '../../src/chart/labels';
import { LogScale } from '../../src/chart/scale';

const x = new LogScale({ low: 1, high: 1e4 }, 0, 400); // 100 pixels a decade
const y = new LogScale({ low: 1e12, high: 1e16 }, 400, 0);
const plot = { left: 0, right: 400, top: 0, bottom: 400 };

describe('roofs', () => {
    // 1e13 B/s and 1e15 FLOP/s meet at 1e15 / 1e13 = 100 FLOP/B: two decades from the left, three from the bottom.
    test('slope and flat roof meet at the ridge', () => {
        const slope = slope_line(1e13, 1e15, x, y);
        const flat = flat_line(1e15, 1e13, x, y);
        expect(slope?.x2).toBeCloseTo(200);
        expect(slope?.y2).toBeCloseTo(100);
        expect(flat?.x1).toBeCloseTo(200);
        expect(flat?.y1).toBeCloseTo(100);
        expect(flat?.x2).toBeCloseTo(400);
    });

    test('a slope that starts below the plot begins at its edge', () => {
        // 1e11 B/s reaches 1e12 FLOP/s at 10 FLOP/B.
        const slope = slope_line(1e11, 1e15, x, y);
        expect(slope?.x1).toBeCloseTo(100);
        expect(slope?.y1).toBeCloseTo(400);
    });

    test('a roof outside is not drawn', () => {
        expect(flat_line(1e17, 1e13, x, y)).toBeUndefined();
        expect(slope_line(1e2, 1e15, x, y)).toBeUndefined();
    });

    test('equal decades make 45 degrees', () => {
        expect(slope_angle(x, y)).toBeCloseTo(-45);
    });

    test('regions touch at the ridge', () => {
        expect(region('compute', 1e13, 1e15, x, y, plot)).toBe('M200 100H400V400H200Z');
    });
});

describe('labels', () => {
    const anchor = (id: string, at_x: number, at_y: number, weight: number) => ({ id, x: at_x, y: at_y, radius: 5, text: `label ${id}`, weight });

    test('none covers another or a point', () => {
        const anchors = Array.from({ length: 30 }, (_, i) => anchor(String(i), 40 + ((i * 53) % 320), 40 + ((i * 37) % 320), i));
        const labels = place_labels(anchors, plot);
        expect(labels.length).toBeGreaterThan(5);
        labels.forEach((one, i) => {
            labels.slice(i + 1).forEach((other) => expect(overlap(one.box, other.box)).toBe(false));
            for (const point of anchors) {
                if (point.id === one.id) continue;
                const box = { left: point.x - 5, right: point.x + 5, top: point.y - 5, bottom: point.y + 5 };
                expect(overlap(one.box, box)).toBe(false);
            }
        });
    });

    test('where two compete the heavier has its name', () => {
        const blocked = [{ left: 0, right: 400, top: 0, bottom: 190 }, { left: 0, right: 400, top: 215, bottom: 400 }];
        const labels = place_labels([anchor('light', 100, 200, 1), anchor('heavy', 122, 200, 2)], plot, blocked);
        expect(labels.map((label) => label.id)).toContain('heavy');
        expect(labels.find((label) => label.id === 'heavy')?.align).toBe('start');
    });

    test('nothing is written outside of the plot', () => {
        for (const label of place_labels([anchor('edge', 397, 3, 1)], plot)) {
            expect(label.box.right).toBeLessThanOrEqual(400);
            expect(label.box.top).toBeGreaterThanOrEqual(0);
        }
    });
});
