// Finds the lines of one operator in the text of `explain`:
//
//   === prefill of 1,024 tokens ===
//
//   layers.attention.norm  (one of 32 layers)
//     shapes     ...

/// `id` is STAGE/OPERATOR. Empty where the text has no such operator.
export function derivation(text: string, id: string): string {
    const slash = id.indexOf('/');
    const stage = id.slice(0, slash);
    const name = id.slice(slash + 1);
    const sections = text.split(/^=== (.*) ===$/m);
    for (let i = 1; i + 1 < sections.length; i += 2) {
        if (!(sections[i] ?? '').startsWith(stage)) continue;
        for (const block of (sections[i + 1] ?? '').split('\n\n')) {
            const trimmed = block.replace(/^\n+/, '').trimEnd();
            const first = trimmed.split('\n')[0] ?? '';
            if (first === name || first.startsWith(`${name} `)) return trimmed;
        }
    }
    return '';
}
