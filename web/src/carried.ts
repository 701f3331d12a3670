// Files in a link. What was dropped on the page and is seen on it (a config, a device, a small report) travels in the
// link's fragment, packed, so that the link shows the same elsewhere; the fragment is never sent to a server. What is too
// large is left out by name, so that the page can say so.
//
//   files=BASE64URL   of raw deflate of { "files": {name: text}, "binaries": {name: {base64, size}}, "reports": {name: text} }
import type { Brought } from './question';

export interface Carried extends Brought {
    reports: { [name: string]: string };
}

export interface Packed {
    text: string; // empty: nothing to carry
    left_out: string[];
}

const most_packed = 24_000; // letters: mail and chat programs cut longer links
const most_unpacked = 8 << 20;

export const nothing = (): Carried => ({ files: {}, binaries: {}, reports: {} });

const to_url = (bytes: Uint8Array) => {
    let text = '';
    for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
    return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
};
const from_url = (text: string) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));

async function through(bytes: Uint8Array, stream: CompressionStream | DecompressionStream, most: number): Promise<Uint8Array> {
    const writer = stream.writable.getWriter();
    const written = writer.write(bytes as Uint8Array<ArrayBuffer>).then(() => writer.close());
    written.catch(() => undefined); // the reader below learns of it as well
    const parts: Uint8Array[] = [];
    let length = 0;
    const reader = stream.readable.getReader();
    for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        length += value.length;
        if (length > most) {
            await reader.cancel();
            throw new Error('the files of this link are too large');
        }
        parts.push(value);
    }
    const whole = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
        whole.set(part, at);
        at += part.length;
    }
    return whole;
}

/// JSON without its spaces; what is not JSON (Python's NaN) stays as it is.
function dense(text: string): string {
    try {
        return JSON.stringify(JSON.parse(text));
    } catch {
        return text;
    }
}

export async function pack(carried: Carried): Promise<Packed> {
    const sizes: [kind: keyof Carried, name: string, size: number][] = [];
    const kept = nothing();
    for (const kind of ['files', 'reports'] as const) {
        for (const [name, text] of Object.entries(carried[kind])) {
            kept[kind][name] = dense(text);
            sizes.push([kind, name, text.length]);
        }
    }
    for (const [name, binary] of Object.entries(carried.binaries)) {
        kept.binaries[name] = binary;
        sizes.push(['binaries', name, binary.base64.length]);
    }
    if (sizes.length === 0 || typeof CompressionStream === 'undefined') return { text: '', left_out: sizes.map(([, name]) => name) };
    sizes.sort((a, b) => b[2] - a[2]);
    const left_out: string[] = [];
    for (;;) {
        // Nothing of more than a megabyte packs into a link: no need to try.
        while (sizes[0] && sizes[0][2] > 1 << 20) left_out.push(...drop_largest(kept, sizes));
        if (sizes.length === 0) return { text: '', left_out };
        const plain = new TextEncoder().encode(JSON.stringify(kept));
        const text = to_url(await through(plain, new CompressionStream('deflate-raw'), Infinity));
        if (text.length <= most_packed) return { text, left_out };
        left_out.push(...drop_largest(kept, sizes));
    }
}

function drop_largest(kept: Carried, sizes: [keyof Carried, string, number][]): string[] {
    const largest = sizes.shift();
    if (!largest) return [];
    delete kept[largest[0]][largest[1]];
    return [largest[1]];
}

const is_object = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

/// Whatever a link may hold: what is not as it should be is refused as a whole.
export async function unpack_files(text: string): Promise<Carried> {
    const bytes = await through(from_url(text), new DecompressionStream('deflate-raw'), most_unpacked);
    const json: unknown = JSON.parse(new TextDecoder().decode(bytes));
    const carried = nothing();
    if (!is_object(json)) throw new Error('not an object');
    for (const kind of ['files', 'reports'] as const) {
        const all = json[kind];
        if (!is_object(all)) continue;
        for (const [name, content] of Object.entries(all)) {
            if (typeof content !== 'string') throw new Error(`${name} is no text`);
            carried[kind][name] = content;
        }
    }
    const binaries = json['binaries'];
    if (is_object(binaries)) {
        for (const [name, value] of Object.entries(binaries)) {
            if (!is_object(value) || typeof value['base64'] !== 'string' || typeof value['size'] !== 'number') throw new Error(`${name} is no file`);
            carried.binaries[name] = { base64: value['base64'], size: value['size'] };
        }
    }
    return carried;
}
