// The C++ core as WebAssembly: a question goes in as JSON, the answer of the command line comes out (web/wasm/entry.cpp).

import { join_module } from './streams';
import { unpack_lzma } from './unpack';

export interface Request {
    verb: string;
    options?: Record<string, string | string[] | boolean>;
    files?: Record<string, string>;
    binaries?: Record<string, { base64: string; size: number }>; // the first bytes of a large file
}

export interface Failure {
    error: { text: string; exit: number; needs?: number }; // needs: bytes of the file that are missing
}

export type Answer<T> = T | Failure;

export function failed(answer: unknown): answer is Failure {
    return typeof answer === 'object' && answer !== null && 'error' in answer;
}

interface Exports {
    memory: WebAssembly.Memory;
    _initialize?: () => void;
    alloc(bytes: number): number;
    release(at: number): void;
    ask(at: number, bytes: number): void;
    answer(): number;
    answer_length(): number;
}

export class Core {
    private exports: Exports;

    constructor(private module: WebAssembly.Module) {
        this.exports = start(module);
    }

    /// The answer as the text the command line would print.
    text(request: Request): string {
        try {
            const bytes = new TextEncoder().encode(JSON.stringify(request));
            const at = this.exports.alloc(bytes.length || 1);
            new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
            this.exports.ask(at, bytes.length);
            this.exports.release(at);
            const answer = new Uint8Array(this.exports.memory.buffer, this.exports.answer(), this.exports.answer_length());
            return new TextDecoder().decode(answer);
        } catch (fault) {
            // A fault leaves the module in an unknown state; the next question gets a fresh one.
            this.exports = start(this.module);
            const why = fault instanceof Error ? fault.message : String(fault);
            return JSON.stringify({ error: { text: `the core stopped: ${why}`, exit: 3 } });
        }
    }

    ask<T>(request: Request): Answer<T> {
        return JSON.parse(this.text(request)) as Answer<T>;
    }
}

function start(module: WebAssembly.Module): Exports {
    // The core touches neither files nor clocks. What its C library imports for them does nothing and says so.
    const not_here = 52; // ENOSYS of WASI
    const imports: Record<string, Record<string, unknown>> = {};
    for (const { module: from, name } of WebAssembly.Module.imports(module)) {
        (imports[from] ??= {})[name] = () => not_here;
    }
    const system = imports['wasi_snapshot_preview1'];
    if (system) {
        system['proc_exit'] = (code: number) => {
            throw new Error(`exit ${code}`);
        };
    }
    const exports = new WebAssembly.Instance(module, imports as WebAssembly.Imports).exports as unknown as Exports;
    exports._initialize?.();
    return exports;
}

/// The module as the page carries it: its parts sorted by kind (streams.ts), and of that as base64 how long it is (four bytes,
/// the lowest first) and the packed bytes.
export async function unpack(base64: string): Promise<WebAssembly.Module> {
    const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const size = new DataView(packed.buffer).getUint32(0, true);
    return WebAssembly.compile(join_module(unpack_lzma(packed.subarray(4), size, { lc: 4, lp: 0, pb: 0 })));
}
