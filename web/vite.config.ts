// One HTML file with everything inside: script, styles, and the compressed WebAssembly of the core.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';
import { sort_module } from './src/core/streams';

const wasm = process.env.ROOFLINE_WASM ?? new URL('../build/web/roofline.wasm', import.meta.url);

// `virtual:core` is the module sorted (src/core/streams.ts), packed (src/core/unpack.ts) and written as base64: a page opened from a disk can fetch
// nothing, so all must be in it, and what is not packed well here is not packed well on its way either.
function core(): Plugin {
    const packed = () => {
        const plain = sort_module(readFileSync(wasm));
        const length = Buffer.alloc(4);
        length.writeUInt32LE(plain.length);
        const options = ['--format=raw', '--lzma1=preset=9e,lc=4,lp=0,pb=0', '--stdout'];
        return Buffer.concat([length, execFileSync('xz', options, { input: plain, maxBuffer: 1 << 28 })]).toString('base64');
    };
    return {
        name: 'roofline-core',
        resolveId: (id) => (id === 'virtual:core' ? '\0core' : undefined),
        load: (id) => (id === '\0core' ? `export default ${JSON.stringify(packed())};` : undefined),
    };
}

export default defineConfig({
    plugins: [core(), svelte(), viteSingleFile({ removeViteModuleLoader: true })],
    worker: { format: 'iife' }, // browsers start no module from within a file on a disk
    build: { target: 'es2022', assetsInlineLimit: 100_000_000, outDir: process.env.ROOFLINE_PAGE_OUT ?? 'dist' },
    test: { include: ['tests/unit/**/*.test.ts'], testTimeout: 60_000 },
} as Parameters<typeof defineConfig>[0]);
