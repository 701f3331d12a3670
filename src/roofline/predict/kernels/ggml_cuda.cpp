// llama.cpp's CUDA kernels, timed only as whole steps: one formula for everything that a step launches, branching on
// the pattern of the work. What the steps that were timed cannot tell apart is a plain number here, not a constant.
#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/predict/kernels/ggml.hpp"

namespace roofline::predict {
namespace {

enum Place : std::size_t {
    graph_launch,
    plain_launch,
    stream,
    dot_product,
    tile,
    attention_memory,
    attention_vector,
    attention_matrix,
    activations,
    skew,
    scan_memory,
    scan_vector,
};

constexpr std::array<Constant, 12> constants = {{
    {"graph_launch", "us", 1.5, 0.05, 40.0, "of a kernel in a step of a single token, which runs as a CUDA graph"},
    {"plain_launch", "us", 4.0, 0.05, 40.0, "of a kernel in any other step"},
    {"stream", "fraction", 0.88, 0.05, 0.95, "of the bandwidth: weights of a product with few rows"},
    {"dot_product", "fraction", 0.3, 0.01, 1.0, "of the fp32 units' peak: unpacking and multiplying for few rows"},
    {"tile", "fraction", 0.62, 0.05, 0.95, "of the bandwidth: weights of a product in tiles, read for each 128 rows"},
    {"attention_memory", "fraction", 0.8, 0.05, 0.95, "of the bandwidth: cached keys and values of one query"},
    {"attention_vector", "fraction", 0.12, 0.005, 1.0, "of the fp32 units' peak: attention of one query"},
    {"attention_matrix", "fraction", 0.42, 0.02, 0.95, "of the fp16 peak: attention of a prompt"},
    {"activations", "fraction", 0.8, 0.05, 1.0, "of the bandwidth: activations, kept in fp32"},
    {"skew", "ratio", 0.5, 0.01, 10.0, "how alike tokens choose their experts; 0: independently"},
    {"scan_memory", "fraction", 0.08, 0.005, 1.0, "of the bandwidth: recurrent states, gathered and copied back"},
    {"scan_vector", "fraction", 0.03, 0.001, 1.0, "of the fp32 units' peak: a recurrence over a prompt"},
}};

constexpr double dot_product_rows = 8.0;    // up to here weights are multiplied as they stream (MMVQ)
constexpr double tile_rows = 128.0;         // of one tile of a product (MMQ)
constexpr double row_group = 8.0;           // rows are rounded up to this
constexpr double tile_padding = 4.0;        // rows that a tile loses at its edge
constexpr double tile_compute = 0.6;        // of the engine's peak
constexpr double expert_raggedness = 0.91;  // part of a tile more that an expert's rows take
constexpr double state_in_place = 0.9;      // part of one sequence's state that is neither gathered nor copied

double product(const Kernel& k, const Machine& m, std::span<const double> c) {
    if (k.rows <= 0.0 || k.copies <= 0.0) return 0.0;
    const bool routed = k.experts_chosen > 0.0 && k.experts_total > 0.0;
    // One copy's weights and the flops of one of its rows.
    const double weights = k.weight_bytes / k.copies;
    const double row_flops = k.flops / (k.rows * k.copies);
    const double all_rows = k.rows * k.copies;
    if (routed ? all_rows <= k.experts_chosen : k.rows <= dot_product_rows) {
        const double read = routed ? all_rows : k.copies;
        return over(read * weights, m.bandwidth * c[stream]) + over(k.flops, m.vector_peak * c[dot_product]);
    }
    const double copies =
        routed ? experts_touched(all_rows / k.experts_chosen, k.experts_total, k.experts_chosen, c[skew]) : k.copies;
    const double rows = all_rows / copies;
    const double passes = std::max(1.0, rows / tile_rows + (routed ? expert_raggedness : 0.0));
    const double padded = (routed ? rows : std::ceil(rows / row_group) * row_group) + tile_padding;
    return std::max(over(copies * passes * weights, m.bandwidth * c[tile]),
                    over(copies * padded * row_flops, m.peak * tile_compute));
}

/// A layer with a sliding window works on all its cache holds, masked: here over a prompt too.
double overreach(const Kernel& k) {
    if (k.queries <= 1.0) return ggml::beyond_window(k);
    if (k.window <= 0.0 || k.context <= 0.0) return 1.0;
    const double middle = k.context - k.queries / 2.0;
    return std::max(std::min(middle, k.window + ggml::micro_batch) / std::min(middle, k.window), 1.0);
}

double attention(const Kernel& k, const Machine& m, std::span<const double> c) {
    const double more = overreach(k);
    const double memory = over(k.weight_bytes * more, m.bandwidth * c[attention_memory]);
    const double compute = k.queries <= 1.0 ? over(k.flops * more, m.vector_peak * c[attention_vector])
                                            : over(k.flops * more, m.peak * c[attention_matrix]);
    return std::max(memory, compute);
}

double scan(const Kernel& k, const Machine& m, std::span<const double> c) {
    if (k.sequences <= 0.0) return 0.0;
    if (k.queries <= 1.0) {
        const double moved = std::max(k.sequences - state_in_place, 0.1) / k.sequences;
        return std::max(over(k.weight_bytes * moved, m.bandwidth * c[scan_memory]), over(k.weight_bytes, m.bandwidth));
    }
    return std::max(over(ggml::recurrence_flops(k), m.vector_peak * c[scan_vector]), over(k.flops, m.peak));
}

double work(const Kernel& k, const Machine& m, std::span<const double> c) {
    switch (k.pattern) {
        case Pattern::product:
        case Pattern::experts:
            return product(k, m, c);
        case Pattern::attention:
        case Pattern::latent:
            return attention(k, m, c);
        case Pattern::scan:
            return scan(k, m, c);
        case Pattern::stream:
        case Pattern::collective:  // has classes of its own
        case Pattern::step:
            break;
    }
    return 0.0;
}

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    if (k.pattern == Pattern::step) return k.kernel_seconds + ggml::host_seconds;
    const double of_launch = k.tokens > 1.0 ? c[plain_launch] : c[graph_launch];
    return work(k, m, c) + over(ggml::activation_bytes(k), m.bandwidth * c[activations]) + 1e-6 * of_launch;
}

}  // namespace

extern const KernelClass ggml_cuda_class;
const KernelClass ggml_cuda_class{"ggml_cuda", "E13", constants, seconds};

}  // namespace roofline::predict
