// Unpacks a raw LZMA stream, as `xz --format=raw --lzma1=preset=9e,lc=4,lp=0,pb=0` writes it: a quarter smaller than what
// browsers can unpack themselves, which is what keeps the page a quick download.
//
// The stream is a binary range coder: every bit is coded under a probability that adapts to the bits before. Packets are
// a literal byte, a match (distance and length), or a match with one of the last four distances.

export interface Settings {
    lc: number; // high bits of the byte before that choose how a literal is coded
    lp: number; // low bits of the position that do
    pb: number; // low bits of the position that choose how packets are coded
}

const half = 1024; // probabilities have 11 bits

export function unpack_lzma(input: Uint8Array, size: number, { lc, lp, pb }: Settings): Uint8Array {
    const output = new Uint8Array(size);
    const fresh = (count: number) => new Uint16Array(count).fill(half);

    let at = 5; // a zero byte, then the first four bytes of the code
    let range = 0xffffffff;
    let code = ((input[1]! << 24) | (input[2]! << 16) | (input[3]! << 8) | input[4]!) >>> 0;

    function bit(table: Uint16Array, index: number): 0 | 1 {
        const chance = table[index]!;
        const bound = (range >>> 11) * chance;
        let value: 0 | 1;
        if (code < bound) {
            range = bound;
            table[index] = chance + ((2048 - chance) >>> 5);
            value = 0;
        } else {
            range = (range - bound) >>> 0;
            code = (code - bound) >>> 0;
            table[index] = chance - (chance >>> 5);
            value = 1;
        }
        if (range < 0x1000000) {
            range = (range << 8) >>> 0;
            code = ((code << 8) | (input[at++] ?? 0)) >>> 0;
        }
        return value;
    }

    /// Bits that are as likely 0 as 1.
    function direct(count: number): number {
        let value = 0;
        for (let i = 0; i < count; ++i) {
            range = range >>> 1;
            let one = 0;
            if (code >= range) {
                code = (code - range) >>> 0;
                one = 1;
            }
            value = value * 2 + one;
            if (range < 0x1000000) {
                range = (range << 8) >>> 0;
                code = ((code << 8) | (input[at++] ?? 0)) >>> 0;
            }
        }
        return value;
    }

    /// A number of `bits` bits, the highest first; every prefix has a probability of its own.
    function tree(table: Uint16Array, start: number, bits: number): number {
        let node = 1;
        for (let i = 0; i < bits; ++i) node = node * 2 + bit(table, start + node);
        return node - 2 ** bits;
    }

    function reverse_tree(table: Uint16Array, start: number, bits: number): number {
        let node = 1;
        let value = 0;
        for (let i = 0; i < bits; ++i) {
            const one = bit(table, start + node);
            node = node * 2 + one;
            value += one * 2 ** i;
        }
        return value;
    }

    class Lengths {
        choice = fresh(2);
        low = fresh(16 << 3);
        middle = fresh(16 << 3);
        high = fresh(256);

        read(position: number): number {
            if (bit(this.choice, 0) === 0) return 2 + tree(this.low, position << 3, 3);
            if (bit(this.choice, 1) === 0) return 10 + tree(this.middle, position << 3, 3);
            return 18 + tree(this.high, 0, 8);
        }
    }

    const literals = fresh(0x300 << (lc + lp));
    const is_match = fresh(12 << 4);
    const is_repeat = fresh(12);
    const is_repeat_0 = fresh(12);
    const is_repeat_0_long = fresh(12 << 4);
    const is_repeat_1 = fresh(12);
    const is_repeat_2 = fresh(12);
    const slots = fresh(4 << 6);
    const middle_bits = fresh(128);
    const aligned = fresh(16);
    const match_lengths = new Lengths();
    const repeat_lengths = new Lengths();
    const repeats: [number, number, number, number] = [0, 0, 0, 0];
    let state = 0; // what the last packets were
    let written = 0;

    function literal(): void {
        const before = written > 0 ? output[written - 1]! : 0;
        const start = 0x300 * (((written & ((1 << lp) - 1)) << lc) + (before >>> (8 - lc)));
        let symbol = 1;
        if (state >= 7) {
            // After a match, the byte that a longer match would have had is a hint of what it is not.
            let hint = output[written - repeats[0] - 1]!;
            while (symbol < 0x100) {
                const hinted = (hint >>> 7) & 1;
                hint <<= 1;
                const one = bit(literals, start + ((1 + hinted) << 8) + symbol);
                symbol = symbol * 2 + one;
                if (hinted !== one) break;
            }
        }
        while (symbol < 0x100) symbol = symbol * 2 + bit(literals, start + symbol);
        output[written++] = symbol & 0xff;
        state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
    }

    function distance(length: number): number {
        const slot = tree(slots, Math.min(length - 2, 3) << 6, 6);
        if (slot < 4) return slot;
        const bits = (slot >>> 1) - 1;
        const top = (2 | (slot & 1)) * 2 ** bits;
        if (slot < 14) return top + reverse_tree(middle_bits, top - slot, bits);
        return top + direct(bits - 4) * 16 + reverse_tree(aligned, 0, 4);
    }

    while (written < size) {
        const position = written & ((1 << pb) - 1);
        if (bit(is_match, (state << 4) + position) === 0) {
            literal();
            continue;
        }
        let length: number;
        if (bit(is_repeat, state) === 1) {
            if (bit(is_repeat_0, state) === 0) {
                if (bit(is_repeat_0_long, (state << 4) + position) === 0) {
                    output[written] = output[written - repeats[0] - 1]!;
                    ++written;
                    state = state < 7 ? 9 : 11;
                    continue;
                }
            } else if (bit(is_repeat_1, state) === 0) {
                [repeats[0], repeats[1]] = [repeats[1], repeats[0]];
            } else if (bit(is_repeat_2, state) === 0) {
                [repeats[0], repeats[1], repeats[2]] = [repeats[2], repeats[0], repeats[1]];
            } else {
                [repeats[0], repeats[1], repeats[2], repeats[3]] = [repeats[3], repeats[0], repeats[1], repeats[2]];
            }
            length = repeat_lengths.read(position);
            state = state < 7 ? 8 : 11;
        } else {
            [repeats[1], repeats[2], repeats[3]] = [repeats[0], repeats[1], repeats[2]];
            length = match_lengths.read(position);
            state = state < 7 ? 7 : 10;
            repeats[0] = distance(length);
        }
        if (repeats[0] >= written || written + length > size) throw new Error('the packed core is damaged');
        for (let i = 0; i < length; ++i, ++written) output[written] = output[written - repeats[0] - 1]!;
    }
    return output;
}
