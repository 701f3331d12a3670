// A question as the page holds it: the long options of the command line and their values. It becomes a request for the
// core, a command line to copy, and the fragment of a link, and can be read back from the latter.
import type { Request } from './core/module';

export interface Question {
    options: { [key: string]: string }; // model, device, batch ...; what is not here has the default of the command line
    set: { [path: string]: string }; // figures changed for this question: memory.bandwidth -> 2x
}

export const first_question = (): Question => ({
    options: { model: 'llama-3.1-8b', device: 'h100-sxm', batch: '8', prompt: '1024', context: '4096' },
    set: {},
});

/// Short names that people type, under the names that requests use.
const same: { [key: string]: string } = {
    'tensor-parallel-size': 'tp',
    'pipeline-parallel-size': 'pp',
    'data-parallel-size': 'dp',
    'context-parallel-size': 'cp',
    'expert-parallel-size': 'ep',
    'input-len': 'prompt',
    'output-len': 'generate',
};

export const defaults: { [key: string]: string } = {
    batch: '1', prompt: '1024', generate: '128', tp: '1', pp: '1', dp: '1', cp: '1', profile: 'engine',
};

/// Options that need no value.
const flags = new Set(['enable-expert-parallel', 'enable-attention-dp', 'sequence-parallel', 'two-batch-overlap']);

export function copy(question: Question): Question {
    return { options: { ...question.options }, set: { ...question.set } };
}

export function put(question: Question, key: string, value: string): void {
    const name = same[key] ?? key;
    if (value === '' || defaults[name] === value) delete question.options[name];
    else question.options[name] = value;
}

export function settings(question: Question): string[] {
    return Object.entries(question.set).map(([path, value]) => `${path}=${value}`);
}

/// Files that were dropped on the page, by name.
export interface Brought {
    files: { [name: string]: string };
    binaries: { [name: string]: { base64: string; size: number } };
}

/// The files a question needs: those it names, and what lies beside a config: how it was quantised, and how large its
/// weights really are.
export function files_of(question: Question, brought: Brought): Brought {
    const needed: Brought = { files: {}, binaries: {} };
    for (const name of [question.options['model'], question.options['device']]) {
        if (name === undefined) continue;
        const file = brought.files[name];
        const binary = brought.binaries[name];
        if (file !== undefined) needed.files[name] = file;
        if (binary !== undefined) needed.binaries[name] = binary;
    }
    if (question.options['model'] === 'config.json' && brought.files['config.json'] !== undefined) {
        const quantisation = brought.files['hf_quant_config.json'];
        if (quantisation !== undefined) needed.files['hf_quant_config.json'] = quantisation;
        for (const [name, binary] of Object.entries(brought.binaries)) {
            if (name.endsWith('.safetensors')) needed.binaries[name] = binary;
        }
    }
    return needed;
}

/// Only the files that the question needs travel with it.
export function request(verb: string, question: Question, brought?: Brought, more: Record<string, string> = {}): Request {
    const options: Request['options'] = {};
    for (const [key, value] of Object.entries({ ...question.options, ...more })) {
        if (value !== '') options[key] = flags.has(key) ? value === 'true' : value;
    }
    const changed = settings(question);
    if (changed.length > 0) options['set'] = changed;
    const asked: Request = { verb, options };
    if (brought) {
        const { files, binaries } = files_of(question, brought);
        if (Object.keys(files).length > 0) asked.files = files;
        if (Object.keys(binaries).length > 0) asked.binaries = binaries;
    }
    return asked;
}

function quoted(word: string): string {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function command_line(question: Question, verb = 'predict'): string {
    const { model, device, ...rest } = question.options;
    const words = ['roofline', verb, quoted(model ?? ''), quoted(device ?? '')];
    for (const [key, value] of Object.entries(rest)) {
        if (flags.has(key)) {
            if (value === 'true') words.push(`--${key}`);
        } else words.push(`--${key}`, quoted(value));
    }
    for (const setting of settings(question)) words.push('--set', quoted(setting));
    return words.filter((word) => word !== '' && word !== "''").join(' ');
}

/// Puts the flags that advice names ("--tp 8 --kv-cache-dtype fp8 --set memory.bandwidth=4x") into a question.
export function apply_flags(question: Question, text: string): Question {
    const changed = copy(question);
    const words = text.split(/\s+/).filter((word) => word !== '');
    for (let i = 0; i < words.length; ++i) {
        const word = words[i] ?? '';
        if (!word.startsWith('--')) continue;
        const [key = '', inline] = word.slice(2).split(/=(.*)/s);
        if (flags.has(key)) {
            changed.options[key] = 'true';
            continue;
        }
        const value = inline ?? words[++i] ?? '';
        if (key === 'set') put_setting(changed, value);
        else put(changed, key, value);
    }
    return changed;
}

export function put_setting(question: Question, text: string): void {
    const [path = '', value = ''] = text.split(/=(.*)/s);
    if (path === '') return;
    if (value === '' || value === '1x') delete question.set[path];
    else question.set[path] = value;
}

export function fragment(question: Question): string {
    const fields = new URLSearchParams();
    for (const [key, value] of Object.entries(question.options)) fields.append(key, value);
    for (const setting of settings(question)) fields.append('set', setting);
    return fields.toString();
}

/// Keys that say how the page looks, not what is asked.
export const view_keys = new Set(['vs', 'view', 'pin', 'show', 'stage', 'tour', 'theme', 'files']);

export function read_fragment(text: string): Question | undefined {
    const fields = new URLSearchParams(text);
    const question: Question = { options: {}, set: {} };
    for (const [key, value] of fields) {
        if (view_keys.has(key) || !/^[a-z][a-z-]*$/.test(key)) continue;
        if (key === 'set') put_setting(question, value);
        else question.options[same[key] ?? key] = value;
    }
    return question.options['model'] !== undefined || question.options['device'] !== undefined ? question : undefined;
}

/// What a legend calls it.
export function title(question: Question): string {
    const { model, device, batch, dtype, tp } = question.options;
    const parts = [`${model ?? ''} on ${device ?? ''}`];
    if (tp && tp !== '1') parts.push(`tp ${tp}`);
    parts.push(`batch ${batch ?? '1'}`);
    if (dtype) parts.push(dtype);
    const changed = settings(question);
    if (changed.length > 0) parts.push(changed.join(' '));
    return parts.join(', ');
}
