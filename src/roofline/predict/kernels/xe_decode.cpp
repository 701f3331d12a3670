// Attention of one new token (or a few) per sequence as vLLM's kernel for Intel's GPUs cuts it. A block takes one
// sequence and one KV head and walks through its keys; the blocks of a core share it. Only contexts of 128 pages and
// more are cut, into a few parts: shorter ones are walked by one block, however idle the other cores are.
#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 6> constants = {{
    {"launch", "us", 50.0, 1.0, 200.0, "of the host: what the device does meanwhile does not show"},
    {"startup", "us", 20.0, 1.0, 100.0, "launch to the first useful byte"},
    {"combine", "us", 5.0, 0.1, 100.0, "the kernel that joins the parts of a context"},
    {"efficiency", "fraction", 0.9, 0.1, 1.0, "of memory bandwidth while the keys and values stream"},
    {"key", "ns", 20.0, 0.1, 500.0, "of a block for each key, however idle its core: unpacking, products and softmax"},
    {"overlap", "fraction", 0.3, 0.01, 1.0,
     "of the shorter of a block's own time and its share of the stream that shows"},
}};

constexpr double page = 64.0;  // keys
constexpr double compute_efficiency = 0.5;
constexpr double row_step = 8.0;  // the heads of a group are padded to a matrix instruction
constexpr double second = 1e6;    // in microseconds
constexpr double hair = 1e-9;     // what is whole but for rounding is whole

/// Parts of each context, by the kernel's own rule: none of short ones; enough to give each core a block; where there
/// are more than two blocks a core but not many, some again, as shorter blocks end more evenly.
double parts_of(double blocks, double units, double keys) {
    constexpr double least_pages = 128.0;
    constexpr double pages_of_a_part = 32.0;
    constexpr double most_parts = 8.0;
    const double pages = std::ceil(keys / page - hair);
    if (pages < least_pages) return 1.0;
    double parts = 1.0;
    if (blocks < units) {
        parts = std::ceil(units / blocks - hair);
    } else if (blocks > 2.0 * units && blocks < 8.0 * units) {
        parts = std::min(std::floor(pages / 64.0), std::floor(8.0 * units / blocks + hair));
    }
    return std::clamp(parts, 1.0, std::min(std::floor(pages / pages_of_a_part), most_parts));
}

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const double blocks = k.sequences * k.kv_heads;
    const double stream = m.bandwidth > 0.0 ? k.weight_bytes / (std::min(c[3], 1.0) * m.bandwidth) : 0.0;
    const double activations = m.bandwidth > 0.0 ? (k.input_bytes + k.output_bytes) / m.bandwidth : 0.0;
    double parts = 1.0;
    double alone = 0.0;  // what a block takes for its keys if nothing else holds it back
    if (blocks > 0.0 && k.keys > 0.0) {
        if (m.units > 0.0) parts = parts_of(blocks, m.units, k.keys);
        alone = k.keys / parts * c[4] * 1e-9;
    }
    double compute = 0.0;
    if (m.peak > 0.0 && k.kv_heads > 0.0) {
        const double rows = k.queries * k.heads / k.kv_heads;
        const double padding = rows > 0.0 ? std::ceil(rows / row_step) * row_step / rows : 1.0;
        compute = k.flops * padding / (compute_efficiency * m.peak);
    }
    const double walk = std::max(std::max(stream, alone) + std::min(c[5], 1.0) * std::min(stream, alone), compute);
    const double join = parts > 1.0 ? c[2] : 0.0;
    return std::max(c[0] / second, (c[1] + join) / second + walk + activations);
}

}  // namespace

extern const KernelClass xe_decode_class;
const KernelClass xe_decode_class{"xe_decode", "E21", constants, seconds, "attention_decode"};

}  // namespace roofline::predict
