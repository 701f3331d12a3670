// Files that are dropped on the page: models (config.json, the headers of GGUF and safetensors), devices, and reports.
// Of files that may have hundreds of gigabytes only the beginning is read, and nothing leaves the browser.
import { failed } from './core/engine';
import { request } from './question';
import type { PageState } from './state.svelte';

const first_bytes = 4 << 20;
const most_bytes = 256 << 20;
const most_text = 64 << 20;

function base64(bytes: Uint8Array): string {
    let text = '';
    const chunk = 0x8000;
    for (let at = 0; at < bytes.length; at += chunk) text += String.fromCharCode(...bytes.subarray(at, at + chunk));
    return btoa(text);
}

export async function take_files(page: PageState, files: File[]): Promise<void> {
    const with_config = files.some((file) => file.name === 'config.json');
    if (with_config) {
        // Another model: what lay beside the last one does not belong to it.
        delete page.brought.files['hf_quant_config.json'];
        for (const name of Object.keys(page.brought.binaries)) if (name.endsWith('.safetensors')) delete page.brought.binaries[name];
    }
    // A config may refer to what lies beside it; so it is looked at last.
    const order = (file: File) => (file.name === 'config.json' ? 1 : 0);
    const refused: string[] = [];
    for (const file of [...files].sort((a, b) => order(a) - order(b))) {
        // What a browser cannot read is a folder, or has gone since.
        const problem = await take(page, file, with_config).catch(() => `${file.name}: cannot be read; a folder's files are dropped one by one`);
        if (problem) refused.push(problem);
    }
    page.refused = refused;
    if (refused.length > 0) page.said = refused.join('; ');
    ++page.brought_count;
}

async function take(page: PageState, file: File, with_config: boolean): Promise<string> {
    if (/\.gguf$/i.test(file.name)) return take_binary(page, file);
    if (/\.safetensors$/i.test(file.name)) return take_shard(page, file, with_config);
    if (file.size > most_text) return `${file.name}: ${file.size} bytes are too many for a report or a config`;
    const text = await file.text();
    let json: unknown;
    try {
        json = JSON.parse(text);
    } catch {
        // Python writes NaN and Infinity, which JSON forbids; the core reads them, so it may still be a config.
        if (!/\.json$/i.test(file.name)) return `${file.name}: is none of config.json, .gguf, .safetensors, device or report`;
    }
    const schema = typeof json === 'object' && json !== null && 'schema' in json ? String(json.schema) : '';
    if (schema.startsWith('roofline.report/')) return take_report(page, file.name, text);
    const verb = /^roofline\.(advise|plan|sweep|validate|compare|op)\//.exec(schema)?.[1];
    if (verb) return `${file.name}: is an answer of ${verb}, which has no operators to show; a report of predict, bench or analyze has`;
    if (typeof json === 'object' && json !== null && 'traceEvents' in json) {
        return `${file.name}: is a trace; \`roofline analyze ${file.name} --format json\` makes the report that can be dropped here`;
    }
    const before = page.brought.files[file.name];
    const refuse = (why: string) => {
        if (before === undefined) delete page.brought.files[file.name];
        else page.brought.files[file.name] = before;
        return why;
    };
    page.brought.files[file.name] = text;
    if (file.name === 'hf_quant_config.json') return ''; // says how a config beside it was quantised, and nothing alone
    if (schema.startsWith('roofline.device/')) {
        const device = page.engine?.ask({ verb: 'device', options: { device: file.name }, files: { [file.name]: text } });
        if (failed(device)) return refuse(device.error.text);
        page.own_devices = [...new Set([...page.own_devices, file.name])];
        page.question.options['device'] = file.name;
    } else {
        const model = page.engine?.ask(request('model', { options: { model: file.name }, set: {} }, page.brought));
        if (failed(model)) return refuse(model.error.text);
        use_model(page, file.name);
    }
    page.said = `${file.name} is read`;
    return '';
}

function use_model(page: PageState, name: string): void {
    page.own_models = [...new Set([...page.own_models, name])];
    page.question.options['model'] = name;
    page.answer(); // the same name may stand for another file than before
}

/// Weights of a config that is here already or comes with them: 8 bytes say how long the header is.
async function take_shard(page: PageState, file: File, with_config: boolean): Promise<string> {
    const first = new DataView(await file.slice(0, 8).arrayBuffer());
    if (first.byteLength < 8) return `${file.name}: ends before its header`;
    const length = Number(first.getBigUint64(0, true)) + 8;
    if (length > most_bytes) return `${file.name}: a header of ${length} bytes cannot be one`;
    const header = new Uint8Array(await file.slice(0, length).arrayBuffer());
    page.brought.binaries[file.name] = { base64: base64(header), size: file.size };
    page.said = `${file.name}: read ${header.length} of ${file.size} bytes`;
    if (with_config) return ''; // it is next, and looks at this
    if (page.brought.files['config.json'] === undefined) {
        return `${file.name}: drop the config.json too, which says what the tensors mean`;
    }
    const model = page.engine?.ask(request('model', { options: { model: 'config.json' }, set: {} }, page.brought));
    if (failed(model)) {
        delete page.brought.binaries[file.name];
        return model.error.text;
    }
    use_model(page, 'config.json');
    return '';
}

async function take_binary(page: PageState, file: File): Promise<string> {
    let bytes = first_bytes;
    for (;;) {
        const beginning = new Uint8Array(await file.slice(0, Math.min(bytes, file.size)).arrayBuffer());
        const binary = { base64: base64(beginning), size: file.size };
        const model = page.engine?.ask({
            verb: 'model', options: { model: file.name }, binaries: { [file.name]: binary },
        });
        if (failed(model)) {
            const needs = model.error.needs ?? 0;
            if (needs <= beginning.length || needs > most_bytes) return model.error.text;
            bytes = Math.max(needs, bytes * 2);
            continue;
        }
        page.brought.binaries[file.name] = binary;
        use_model(page, file.name);
        page.said = `${file.name}: read ${beginning.length} of ${file.size} bytes`;
        return '';
    }
}

function take_report(page: PageState, name: string, text: string): string {
    const problem = page.import_report(name, text);
    if (!problem) page.said = `${name} is on the chart`;
    return problem;
}
