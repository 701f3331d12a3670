import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { join_module, sort_module } from '../../src/core/streams';

/// magic, version; type section: one function without parameters that gives an i32; function section; code section.
const module_of = (...body: number[]) =>
    Uint8Array.from([
        0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
        1, 5, 1, 0x60, 0, 1, 0x7f,
        3, 2, 1, 0,
        10, body.length + 2, 1, body.length, ...body,
    ]);

describe('sorting a module', () => {
    test('the core comes back to the byte', () => {
        const plain = readFileSync(process.env['ROOFLINE_WASM'] ?? new URL('../../../build/web/roofline.wasm', import.meta.url));
        expect(Buffer.compare(Buffer.from(join_module(sort_module(plain))), plain)).toBe(0);
    });

    test('every kind of operand finds its place', () => {
        // block, br_table, constants of all widths, loads, bulk memory, and an end inside a block.
        const body = [
            1, 2, 0x7f, // two locals of type i32
            0x02, 0x40, 0x20, 0, 0x0e, 2, 0, 0, 0, 0x0b,
            0x42, 0x80, 0x01, 0x1a, 0x43, 1, 2, 3, 4, 0x1a, 0x44, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a,
            0x20, 0, 0x28, 2, 0x84, 0x01, 0x21, 1, 0x20, 0, 0x20, 1, 0x41, 4, 0xfc, 10, 0, 0,
            0x41, 0x7f, 0x0b,
        ];
        const plain = module_of(...body);
        const sorted = sort_module(plain);
        expect([...join_module(sorted)]).toEqual([...plain]);
        expect([...sorted]).not.toEqual([...plain]);
    });

    test('what is not known is refused and not passed on wrongly', () => {
        expect(() => sort_module(module_of(0, 0xfd, 0x0c, 0x0b))).toThrow('not known');
        const sorted = sort_module(module_of(0, 0x41, 1, 0x0b));
        expect(() => join_module(sorted.subarray(0, sorted.length - 1))).toThrow('damaged');
    });
});
