import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { unpack_lzma } from '../../src/core/unpack';

const pack = (plain: Buffer) =>
    execFileSync('xz', ['--format=raw', '--lzma1=preset=6,lc=4,lp=0,pb=0', '--stdout'], { input: plain, maxBuffer: 1 << 28 });

describe('unpacking', () => {
    const settings = { lc: 4, lp: 0, pb: 0 };

    test('text, noise and long repeats come back as they were', () => {
        const noise = Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * i * 7919 + (i >> 3) * 104729) & 0xff));
        const source = readFileSync(new URL('../../src/core/unpack.ts', import.meta.url));
        const plain = Buffer.concat([source, noise, Buffer.alloc(100_000, 'ab'), source, noise]);
        expect(Buffer.compare(Buffer.from(unpack_lzma(pack(plain), plain.length, settings)), plain)).toBe(0);
    });

    test('a damaged stream is refused or differs, and ends', () => {
        const plain = Buffer.alloc(20_000, 'the quick brown fox ');
        const packed = pack(plain);
        packed[packed.length >> 1]! ^= 0xff;
        let same = false;
        try {
            same = Buffer.compare(Buffer.from(unpack_lzma(packed, plain.length, settings)), plain) === 0;
        } catch (error) {
            expect(String(error)).toContain('damaged');
        }
        expect(same).toBe(false);
    });
});
