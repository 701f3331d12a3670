// Fused attention of one new token (or a few) per sequence: the cached keys and values stream past once. A block of
// work is one sequence and one key-value head. Where blocks are too few to fill the machine, long contexts are cut into
// parts and combined afterwards; a block alone cannot draw all of the bandwidth. Kernels deal their blocks out in one
// of two ways, and a constant says how near they are to either.
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
    {"direct", "fraction", 0.97, 0.3, 1.0, "of that where contexts are not split, as there are blocks enough"},
    {"ramp", "us", 6.0, 0.3, 80.0, "lost before the stream is at full speed"},
    {"splits", "blocks", 48.0, 1.0, 256.0, "that one context is cut into at most"},
    {"plain", "fraction", 0.98, 0.2, 1.0, "of the efficiency where no heads share keys: vector kernels"},
    {"key", "ns", 0.5, 0.01, 50.0, "of a multiprocessor for each key of a KV head, however short: its softmax"},
    {"merge", "us", 0.03, 0.001, 2.0, "for each part of a split context"},
    {"lone", "times", 1.5, 0.5, 8.0,
     "its share of the bandwidth that a block draws at most, however idle the others are"},
    {"chunk", "keys", 128.0, 32.0, 2048.0, "that a part has at least"},
    {"pairs", "fraction", 0.3, 0.02, 1.0, "of the way from kernels that take a multiprocessor to those that share it"},
}};

constexpr double ramp_bytes = 64e6;         // half of the ramp is paid by then
constexpr double row_step = 16.0;           // the heads of a group are padded to a matrix instruction
constexpr double compute_efficiency = 0.5;  // of the matrix engine: only many tokens or heads per key come near it
constexpr double second = 1e6;              // in microseconds

/// Blocks of work, a sequence and a KV head each, and what their keys and values take.
struct Work {
    double blocks;
    double keys;
    double units;
    double most_parts;  // that a context may be cut into
    double stream;      // seconds at the bandwidth that split kernels reach
    double direct;      // times that where nothing is split
    double key;         // seconds of a multiprocessor for a key
    double key_bytes;   // of one block
    double share;       // bytes a second of one multiprocessor, if all draw alike
    double lone;        // times that, which a block draws at most

    /// How long one part of a context takes by itself.
    double alone(double parts) const { return keys / parts * (key + key_bytes / (lone * share)); }
    /// What waves of two whole contexts to a multiprocessor take against full ones, where those of the last, part empty
    /// wave are `faster` than they would be in company.
    double waves(double faster) const {
        const double places = 2.0 * units;
        const double full = std::floor(blocks / places + 1e-9) * places;
        const double rest = blocks - full;
        return (full + (rest > 0.0 ? rest / std::min(1.0, faster * rest / places) : 0.0)) / blocks;
    }
};

struct Dealt {
    double parts;
    double seconds;
};

/// A block has a multiprocessor to itself while there are enough, and loads while it computes.
Dealt deal_singly(const Work& work) {
    const double parts = std::clamp(std::floor(work.units / work.blocks + 1e-9), 1.0, work.most_parts);
    const double split = std::min(parts - 1.0, 1.0);
    const double waves = work.blocks > 2.0 * work.units ? work.waves(2.0 * work.lone) : 1.0;
    return {parts, std::max(work.stream * (split + (1.0 - split) * work.direct * waves), work.alone(parts))};
}

/// Two blocks share a multiprocessor and wait for their own loads. Contexts are cut only where whole ones would leave a
/// fifth of the places empty, and then so that few are.
Dealt deal_in_pairs(const Work& work) {
    constexpr double enough = 0.8;
    constexpr double most_tried = 8.0;
    const double places = 2.0 * work.units;
    const auto filled = [&](double parts) {
        const double waves = work.blocks * parts / places;
        return waves / std::ceil(waves - 1e-9);
    };
    double parts = std::max(1.0, std::floor(places / work.blocks + 1e-9));
    const bool few = work.blocks < enough * places;
    for (const double last = parts + most_tried; few && filled(parts) < enough && parts < last;) ++parts;
    parts = std::min(parts, work.most_parts);
    const double split = std::min(parts - 1.0, 1.0);
    // A wide head loads more at a time: such a block gains from a multiprocessor of its own.
    const double waves = few ? 1.0 : work.waves(std::clamp(work.key_bytes / 364.0, 1.0, 1.4));
    const double softmax = work.key * work.blocks * work.keys / work.units;
    const double stream = work.stream * (split + (1.0 - split) * work.direct) + softmax;
    return {parts, std::max(stream * (split + (1.0 - split) * waves), work.alone(parts))};
}

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    double stream = 0.0;
    double activations = 0.0;
    double merge = 0.0;
    if (m.bandwidth > 0.0) {
        double efficiency = std::min(c[2], 1.0);
        if (k.heads < 2.0 * k.kv_heads) efficiency *= std::min(c[6], 1.0);
        stream = k.weight_bytes / (efficiency * m.bandwidth);
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
                           .direct = 1.0 / std::min(c[3], 1.0),
                           .key = c[7] * 1e-9,
                           .key_bytes = k.weight_bytes / (blocks * k.keys),
                           .share = m.bandwidth / m.units,
                           .lone = c[9]};
        const double pairs = std::min(c[11], 1.0);
        stream = 0.0;
        for (const auto& [dealt, share] :
             {std::pair{deal_singly(work), 1.0 - pairs}, std::pair{deal_in_pairs(work), pairs}}) {
            stream += share * dealt.seconds;
            merge += share * (c[1] * std::min(dealt.parts - 1.0, 1.0) + c[8] * (dealt.parts - 1.0));
        }
    }
    double compute = 0.0;
    if (m.peak > 0.0 && k.kv_heads > 0.0) {
        const double rows = k.queries * k.heads / k.kv_heads;
        const double padding = rows > 0.0 ? std::ceil(rows / row_step) * row_step / rows : 1.0;
        compute = k.flops * padding / (compute_efficiency * m.peak);
    }
    const double ramp = c[4] * k.weight_bytes / (k.weight_bytes + ramp_bytes);
    return (c[0] + merge + ramp) / second + std::max(stream, compute) + activations;
}

}  // namespace

extern const KernelClass attention_decode_class;
const KernelClass attention_decode_class{"attention_decode", "E4", constants, seconds};

}  // namespace roofline::predict
