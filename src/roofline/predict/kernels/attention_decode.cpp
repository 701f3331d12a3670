// Fused attention of one new token (or a few) per sequence: the cached keys and values stream past once. A block of
// work is one sequence and one key-value head. Where blocks are too few to fill the machine, long contexts are cut into
// parts and combined afterwards; a block alone cannot draw all of the bandwidth. How many blocks share a multiprocessor
// is the kernel's secret: a constant says how near they are to one or to two. How FlashAttention 2 cuts its work is
// known: flash_decode.cpp.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 12> constants = {{
    {"startup", "us", 5.0, 1.0, 100.0, "launch to the first useful byte, and the small kernels around this one"},
    {"combine", "us", 1.5, 0.1, 100.0, "to merge the parts of a split context, however many"},
    {"efficiency", "fraction", 0.92, 0.1, 1.0, "of memory bandwidth while the keys and values stream"},
    {"ragged", "us", 0.1, 0.01, 20.0, "more where contexts are no multiple of 64 keys: the kernel then masks"},
    {"ramp", "us", 6.0, 0.3, 80.0, "lost where keys and values are more than the cache holds"},
    {"splits", "blocks", 48.0, 1.0, 256.0, "that one context is cut into at most"},
    {"plain", "fraction", 0.98, 0.2, 1.0, "of the efficiency where no heads share keys: vector kernels"},
    {"key", "ns", 0.5, 0.01, 50.0, "of a multiprocessor for each key of a KV head, however short: its softmax"},
    {"merge", "us", 0.03, 0.001, 2.0, "for each part of a split context"},
    {"lone", "times", 1.5, 0.5, 8.0,
     "its share of the bandwidth that a block draws at most, however idle the others are"},
    {"chunk", "keys", 128.0, 32.0, 2048.0, "that a part has at least"},
    {"pairs", "fraction", 0.3, 0.02, 1.0, "of the way from kernels that take a multiprocessor to those that share it"},
}};

constexpr double row_step = 16.0;            // the heads of a group are padded to a matrix instruction
constexpr double compute_efficiency = 0.15;  // of the matrix engine: only many tokens or heads per key come near it
constexpr double loop_efficiency = 0.5;      // of a processor, whose loops end where the heads do
constexpr double tile = 128.0;               // keys
constexpr double unfilled = 0.6;             // of what a tile takes, for the part of it that has no keys
constexpr double masked = 64.0;              // keys; contexts that are no multiple of it are masked
constexpr double second = 1e6;               // in microseconds

/// Blocks of work, a sequence and a KV head each, and what their keys and values take.
struct Work {
    double blocks;
    double keys;
    double units;
    double most_parts;  // that a context may be cut into
    double stream;      // seconds at the bandwidth that split kernels reach
    double key;         // seconds of a block for a key
    double key_bytes;   // of one block
    double share;       // bytes a second of one multiprocessor, if all draw alike
    double lone;        // times its own share of that, which a block draws at most
};

struct Dealt {
    double parts;
    double seconds;
};

/// With `together` blocks on each multiprocessor: contexts are cut into as many parts as there are places for, and
/// waves of blocks follow one another, none shorter than a block takes by itself.
Dealt deal(const Work& work, double together) {
    const double places = together * work.units;
    const double parts = std::clamp(std::floor(places / work.blocks + 1e-9), 1.0, work.most_parts);
    const double pieces = work.blocks * parts;
    const double wave = work.stream * places / pieces;
    const double alone = work.keys / parts * (work.key + work.key_bytes * together / (work.lone * work.share));
    const double full = std::floor(pieces / places + 1e-9);
    const double rest = std::max(0.0, pieces - full * places);
    const double last = rest > 1e-9 * places ? std::max(wave * rest / places, alone) : 0.0;
    return {parts, full * std::max(wave, alone) + last};
}

/// Keys that take as long as these do in tiles, the last of which may be part empty.
double walked(double keys) {
    return (1.0 - unfilled) * keys + unfilled * std::ceil(keys / tile) * tile;
}

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    double stream = 0.0;
    double activations = 0.0;
    double merge = 0.0;
    if (m.bandwidth > 0.0) {
        double efficiency = std::min(c[2], 1.0);
        if (k.heads < 2.0 * k.kv_heads) efficiency *= std::min(c[6], 1.0);
        stream = k.weight_bytes / (efficiency * m.bandwidth);
        if (k.keys > 0.0) stream *= walked(k.keys) / k.keys;
        activations = (k.input_bytes + k.output_bytes) / m.bandwidth;
    }
    const double blocks = k.sequences * k.kv_heads;
    // Without a bandwidth or multiprocessors, as if the blocks just filled them.
    if (stream > 0.0 && m.units > 0.0 && blocks > 0.0 && k.keys > 0.0) {
        const Work work = {.blocks = blocks,
                           .keys = k.keys,
                           .units = m.units,
                           .most_parts = std::max(1.0, std::min(c[5], k.keys / c[10])),
                           .stream = stream,
                           .key = c[7] * 1e-9,
                           .key_bytes = k.weight_bytes / (blocks * k.keys),
                           .share = m.bandwidth / m.units,
                           .lone = c[9]};
        const double pairs = std::min(c[11], 1.0);
        stream = 0.0;
        for (const auto& [dealt, share] :
             {std::pair{deal(work, 1.0), 1.0 - pairs}, std::pair{deal(work, 2.0), pairs}}) {
            stream += share * dealt.seconds;
            merge += share * (c[1] * std::min(dealt.parts - 1.0, 1.0) + c[8] * (dealt.parts - 1.0));
        }
    }
    double compute = 0.0;
    if (m.peak > 0.0 && m.tile == 1.0) {
        compute = k.flops / (loop_efficiency * m.peak);
    } else if (m.peak > 0.0 && k.kv_heads > 0.0) {
        const double rows = k.queries * k.heads / k.kv_heads;
        const double padding = rows > 0.0 ? std::ceil(rows / row_step) * row_step / rows : 1.0;
        compute = k.flops * padding / (compute_efficiency * m.peak);
    }
    // Benchmarks that replay their buffers find some of them in the cache; what is larger never is.
    const double warm = m.cache * m.cache;
    const double streamed = k.weight_bytes * k.weight_bytes;
    const double ramp = streamed > 0.0 ? c[4] * streamed / (streamed + warm) : 0.0;
    const double ragged = std::fmod(k.keys, masked) != 0.0 ? c[3] : 0.0;
    return (c[0] + ragged + merge + ramp) / second + std::max(stream, compute) + activations;
}

}  // namespace

extern const KernelClass attention_decode_class;
const KernelClass attention_decode_class{"attention_decode", "E4", constants, seconds};

}  // namespace roofline::predict
