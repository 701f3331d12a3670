// A WebAssembly module with the parts of its instructions sorted by kind: all opcodes, then all numbers of locals, all
// offsets and so on, each kind in its order. Alike things beside each other pack better, by nine parts in a hundred.
//
//   module  = magic and version, sections (id, size, content); section 10 holds the code: functions, each its size, its
//             locals and its instructions up to the `end` that closes it
//   sorted  = how long each stream is (four bytes each, the lowest first), then the streams
//
// Sizes of functions follow from what they hold and are left out.

export type Bytes = Uint8Array<ArrayBuffer>;

/// What stands behind an opcode, a stream for each kind.
const rest = 0, opcodes = 1, declared = 2, aligns = 3, calls = 4, floats = 5, globals = 6, labels = 7, locals = 8, long_words = 9,
    offsets = 10, types = 11, words = 12;
const stream_count = 13;
const code_section = 10;

/// How loads and stores are aligned follows from how wide they are (a power of two, from 0x28 on); only what differs is told.
const usual_alignment = [2, 3, 2, 3, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 2, 3, 2, 3, 0, 1, 0, 1, 2];

/// Goes through a function, whose parts are moved by the three: a number (LEB128, up to a byte below 128), a byte (less what it
/// usually is), some bytes.
function walk_function(number: (stream: number) => number, byte: (stream: number, usual?: number) => number, bytes: (stream: number, count: number) => void): void {
    for (let groups = number(declared); groups > 0; --groups) {
        number(declared);
        byte(declared);
    }
    for (let depth = 1; depth > 0; ) {
        const opcode = byte(opcodes);
        if (opcode === 0x0b) --depth;
        else if (opcode >= 0x02 && opcode <= 0x04) {
            ++depth;
            number(types);
        } else if (opcode === 0x0c || opcode === 0x0d) number(labels);
        else if (opcode === 0x0e) for (let targets = number(labels); targets >= 0; --targets) number(labels);
        else if (opcode === 0x10) number(calls);
        else if (opcode === 0x11) {
            number(types);
            number(types);
        } else if (opcode === 0x1c) for (let count = number(types); count > 0; --count) byte(types);
        else if (opcode >= 0x20 && opcode <= 0x22) number(locals);
        else if (opcode === 0x23 || opcode === 0x24) number(globals);
        else if (opcode >= 0x28 && opcode <= 0x3e) {
            byte(aligns, usual_alignment[opcode - 0x28]);
            number(offsets);
        } else if (opcode === 0x3f || opcode === 0x40) byte(types);
        else if (opcode === 0x41) number(words);
        else if (opcode === 0x42) number(long_words);
        else if (opcode === 0x43) bytes(floats, 4);
        else if (opcode === 0x44) bytes(floats, 8);
        else if (opcode === 0xfc) {
            const which = number(opcodes);
            for (let count = which === 8 || which === 10 ? 2 : which === 9 || which === 11 ? 1 : 0; count > 0; --count) number(types);
            if (which > 11) throw new Error(`instruction 0xfc ${which} is not known`);
        } else if (opcode >= 0xc5) throw new Error(`instruction ${opcode} is not known`);
    }
}

/// Numbers as WebAssembly writes them, seven bits a byte. Only small ones are asked for; larger ones are moved as they are.
function leb128(value: number): number[] {
    const bytes: number[] = [];
    for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
    return [...bytes, value];
}

/// Reads bytes one after another.
class Source {
    at = 0;
    constructor(private content: Uint8Array) {}
    byte(): number {
        if (this.at >= this.content.length) throw new Error('the packed core is damaged');
        return this.content[this.at++]!;
    }
    number(): number {
        let value = 0;
        for (let weight = 1; ; weight *= 128) {
            const byte = this.byte();
            value += (byte % 128) * weight;
            if (byte < 128) return value;
        }
    }
    take(count: number): Uint8Array {
        this.at += count;
        return this.content.subarray(this.at - count, this.at);
    }
    get left(): number {
        return this.content.length - this.at;
    }
}

/// Grows as it is written to.
class Sink {
    private content = new Uint8Array(1 << 10);
    length = 0;
    byte(value: number): number {
        if (this.length === this.content.length) {
            const larger = new Uint8Array(2 * this.length);
            larger.set(this.content);
            this.content = larger;
        }
        return (this.content[this.length++] = value);
    }
    bytes(values: Iterable<number>): void {
        for (const value of values) this.byte(value);
    }
    get written(): Uint8Array {
        return this.content.subarray(0, this.length);
    }
}

/// Moves one function's code, part by part, and tells where each part comes from and goes to.
function move_function(from: (stream: number) => Source, to: (stream: number) => Sink): void {
    const byte = (stream: number, usual = 0) => to(stream).byte(from(stream).byte() ^ usual);
    const number = (stream: number) => {
        const start = from(stream).at;
        const value = from(stream).number();
        from(stream).at = start;
        while (byte(stream) > 127);
        return value;
    };
    walk_function(number, byte, (stream, count) => to(stream).bytes(from(stream).take(count)));
}

export function sort_module(module: Uint8Array): Bytes {
    const source = new Source(module);
    const streams = Array.from({ length: stream_count }, () => new Sink());
    const plain = streams[rest]!;
    plain.bytes(source.take(8));
    while (source.left > 0) {
        const id = plain.byte(source.byte());
        const size = source.number();
        if (id !== code_section) {
            plain.bytes(leb128(size));
            plain.bytes(source.take(size));
            continue;
        }
        const functions = source.number();
        plain.bytes(leb128(functions));
        for (let i = 0; i < functions; ++i) {
            source.number();
            move_function(
                () => source,
                (stream) => streams[stream]!,
            );
        }
    }
    const lengths = new Sink();
    for (const { length } of streams) for (let shift = 0; shift < 32; shift += 8) lengths.byte((length >>> shift) & 255);
    return Uint8Array.from([lengths, ...streams].flatMap((stream) => [...stream.written]));
}

export function join_module(sorted: Uint8Array): Bytes {
    let begin = 4 * stream_count;
    const streams = Array.from({ length: stream_count }, (_, i) => {
        const length = new DataView(sorted.buffer, sorted.byteOffset).getUint32(4 * i, true);
        begin += length;
        return new Source(sorted.subarray(begin - length, begin));
    });
    const plain = streams[rest]!;
    const module = new Sink();
    module.bytes(plain.take(8));
    while (plain.left > 0) {
        const id = module.byte(plain.byte());
        const size = plain.number(); // of the code: how many functions
        if (id !== code_section) {
            module.bytes(leb128(size));
            module.bytes(plain.take(size));
            continue;
        }
        const code = new Sink();
        code.bytes(leb128(size));
        for (let i = 0; i < size; ++i) {
            const body = new Sink();
            move_function(
                (stream) => streams[stream]!,
                () => body,
            );
            code.bytes(leb128(body.length));
            code.bytes(body.written);
        }
        module.bytes(leb128(code.length));
        module.bytes(code.written);
    }
    return Uint8Array.from(module.written);
}
