// Fused attention of one new token (or a few) per sequence: the cached keys and values stream past once. Long contexts
// are split over multiprocessors when sequences and key-value heads are too few to fill them, and combined afterwards.
#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 8> constants = {{
    {"startup", "us", 7.0, 1.0, 100.0, "launch to the first useful byte, and the small kernels around this one"},
    {"combine", "us", 2.0, 0.1, 100.0, "to merge the parts of a split context"},
    {"efficiency", "fraction", 0.92, 0.1, 1.0, "of memory bandwidth while the keys and values stream"},
    {"direct", "fraction", 0.97, 0.3, 1.0, "of that where contexts are not split, as there are blocks enough"},
    {"ramp", "us", 6.0, 0.3, 80.0, "lost before the stream is at full speed"},
    {"splits", "blocks", 48.0, 1.0, 256.0, "that one context is cut into at most"},
    {"plain", "fraction", 0.98, 0.2, 1.0, "of the efficiency where no heads share keys: vector kernels"},
    {"key", "ns", 0.3, 0.01, 30.0, "of a multiprocessor for each key of a KV head, however short: its softmax"},
}};

constexpr double split_keys = 1024.0;       // a context this long is split enough to pay half of the combining
constexpr double ramp_bytes = 64e6;         // half of the ramp is paid by then
constexpr double row_step = 16.0;           // the heads of a group are padded to a matrix instruction
constexpr double compute_efficiency = 0.5;  // of the matrix engine: only many tokens or heads per key come near it
constexpr double second = 1e6;              // in microseconds

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const double blocks = k.sequences * k.kv_heads;
    // Unknown multiprocessors: as if the blocks just filled them.
    const double fill = m.units > 0.0 && blocks > 0.0 ? blocks / m.units : 1.0;
    const double few = std::max(0.0, 1.0 - fill);
    const double many = std::clamp(fill - 1.0, 0.0, 1.0);

    double stream = 0.0;
    double activations = 0.0;
    if (m.bandwidth > 0.0) {
        double efficiency = std::min(c[2], 1.0);
        if (k.heads < 2.0 * k.kv_heads) efficiency *= std::min(c[6], 1.0);
        const double full_speed = k.weight_bytes / m.bandwidth;
        stream = full_speed / efficiency * (1.0 + many * (1.0 / std::min(c[3], 1.0) - 1.0));
        // A block alone has its share of the bandwidth, however idle the other multiprocessors are.
        const double parts = std::min(c[5], std::max(1.0, 1.0 / fill));
        stream = std::max(stream, full_speed / (fill * parts));
        if (m.units > 0.0) stream += c[7] * 1e-9 * blocks * k.keys / m.units;
        activations = (k.input_bytes + k.output_bytes) / m.bandwidth;
    }
    double compute = 0.0;
    if (m.peak > 0.0 && k.kv_heads > 0.0) {
        const double rows = k.queries * k.heads / k.kv_heads;
        const double padding = rows > 0.0 ? std::ceil(rows / row_step) * row_step / rows : 1.0;
        compute = k.flops * padding / (compute_efficiency * m.peak);
    }
    const double ramp = c[4] * k.weight_bytes / (k.weight_bytes + ramp_bytes);
    const double combine = c[1] * few * k.keys / (k.keys + split_keys);
    return (c[0] + combine + ramp) / second + std::max(stream, compute) + activations;
}

}  // namespace

extern const KernelClass attention_decode_class;
const KernelClass attention_decode_class{"attention_decode", "E4", constants, seconds};

}  // namespace roofline::predict
