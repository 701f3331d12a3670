// Files that travel in a link: what goes in comes out, what is too large is named, what is broken is refused.
import { describe, expect, it } from 'vitest';
import { nothing, pack, unpack_files } from '../../src/carried';

describe('files in a link', () => {
    it('come back as they were, without their spaces', async () => {
        const carried = nothing();
        carried.files['config.json'] = '{\n  "hidden_size": 64\n}';
        carried.files['odd.json'] = '{"a": NaN}';
        carried.reports['r.json'] = '{"schema": "roofline.report/1"}';
        carried.binaries['m.gguf'] = { base64: 'R0dVRg==', size: 9 };
        const { text, left_out } = await pack(carried);
        expect(left_out).toEqual([]);
        expect(text).toMatch(/^[\w-]+$/);
        expect(await unpack_files(text)).toEqual({
            files: { 'config.json': '{"hidden_size":64}', 'odd.json': '{"a": NaN}' },
            reports: { 'r.json': '{"schema":"roofline.report/1"}' },
            binaries: { 'm.gguf': { base64: 'R0dVRg==', size: 9 } },
        });
    });

    it('are left out by name where they are too large', async () => {
        const carried = nothing();
        carried.files['config.json'] = '{"hidden_size": 64}';
        // Noise does not pack: 60,000 hexadecimal digits are 30,000 bytes at least.
        let noise = '';
        for (let i = 1, x = 1; i <= 60_000; ++i) noise += ((x = (x * 48271) % 2147483647) % 16).toString(16);
        carried.reports['long.json'] = noise;
        carried.binaries['huge.gguf'] = { base64: 'A'.repeat(5 << 20), size: 1e10 };
        const { text, left_out } = await pack(carried);
        expect(left_out).toEqual(['huge.gguf', 'long.json']);
        expect(Object.keys((await unpack_files(text)).files)).toEqual(['config.json']);
    });

    it('are nothing where there is nothing', async () => {
        expect(await pack(nothing())).toEqual({ text: '', left_out: [] });
    });

    it('are refused where they are broken', async () => {
        await expect(unpack_files('AAAA')).rejects.toThrow();
        await expect(unpack_files('%%%')).rejects.toThrow();
    });
});
