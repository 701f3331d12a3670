// llama.cpp's Metal kernels, timed only as whole steps: one formula for everything that a step launches, branching on
// the pattern of the work. What the steps that were timed cannot tell apart is a plain number here, not a constant.
#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/predict/kernels/ggml.hpp"

namespace roofline::predict {
namespace {

enum Place : std::size_t {
    single_launch,
    launch,
    stream,
    dot_product,
    tile_compute,
    tile_padding,
    attention_vector,
    attention_matrix,
    activations,
    skew,
};

constexpr std::array<Constant, 10> constants = {{
    {"single_launch", "us", 5.0, 0.1, 40.0, "of a kernel in a step of a single token"},
    {"launch", "us", 5.0, 0.1, 40.0, "of a kernel in any other step"},
    {"stream", "fraction", 0.86, 0.05, 0.95, "of the bandwidth: weights of a product with few rows"},
    {"dot_product", "fraction", 0.4, 0.01, 1.0, "of the fp32 peak: unpacking and multiplying for few rows"},
    {"tile_compute", "fraction", 0.92, 0.05, 0.95, "of the peak: a product in tiles"},
    {"tile_padding", "rows", 20.0, 1.0, 60.0, "that a product in tiles loses"},
    {"attention_vector", "fraction", 0.08, 0.005, 1.0, "of the fp32 peak: attention of one query"},
    {"attention_matrix", "fraction", 0.45, 0.02, 0.95, "of the peak: attention of a prompt"},
    {"activations", "fraction", 0.5, 0.05, 1.0, "of the bandwidth: activations, kept in fp32"},
    {"skew", "ratio", 0.4, 0.01, 10.0, "how alike tokens choose their experts; 0: independently"},
}};

constexpr double dot_product_rows = 8.0;  // up to here matrix times vector,
constexpr double rows_of_one_read = 4.0;  // weights being read once for so many rows
constexpr double routed_tokens = 31.0;    // up to here each token reads its own experts
constexpr double tile_rows = 32.0;        // of one tile of a product
constexpr double tile_cols = 64.0;
constexpr double tile_memory = 0.75;      // of the bandwidth: weights of a product in tiles
constexpr double attention_memory = 0.9;  // of the bandwidth: cached keys and values of one query
constexpr double scan_memory = 0.5;       // of the bandwidth: recurrent states; assumed, not timed
constexpr double scan_vector = 0.03;      // of the fp32 peak: a recurrence over a prompt; assumed, not timed

double product(const Kernel& k, const Machine& m, std::span<const double> c) {
    if (k.rows <= 0.0 || k.copies <= 0.0) return 0.0;
    const bool routed = k.experts_chosen > 0.0 && k.experts_total > 0.0;
    // One copy's weights and the flops of one of its rows.
    const double weights = k.weight_bytes / k.copies;
    const double row_flops = k.flops / (k.rows * k.copies);
    const double all_rows = k.rows * k.copies;
    if (routed ? all_rows <= routed_tokens * k.experts_chosen : k.rows <= dot_product_rows) {
        const double read = routed ? all_rows : k.copies * std::ceil(k.rows / rows_of_one_read);
        return over(read * weights, m.bandwidth * c[stream]) + over(k.flops, m.vector_peak * c[dot_product]);
    }
    const double copies =
        routed ? experts_touched(all_rows / k.experts_chosen, k.experts_total, k.experts_chosen, c[skew]) : k.copies;
    const double rows = all_rows / copies;
    const double padded = (routed ? rows : std::ceil(rows / tile_rows) * tile_rows) + c[tile_padding];
    // Too few tiles leave some of the cores idle.
    const double tiles = std::ceil(k.cols / tile_cols) * copies * std::ceil(rows / tile_rows);
    const double idle = m.units > 0.0 && tiles > 0.0 ? std::max(1.0, m.units / tiles) : 1.0;
    return std::max(over(copies * weights, m.bandwidth * tile_memory),
                    over(copies * padded * row_flops, m.peak * c[tile_compute]) * idle);
}

double attention(const Kernel& k, const Machine& m, std::span<const double> c) {
    if (k.queries > 1.0) {
        return std::max(over(k.weight_bytes, m.bandwidth * attention_memory),
                        over(k.flops, m.peak * c[attention_matrix]));
    }
    const double more = ggml::beyond_window(k);  // over a prompt masked blocks are left out
    return std::max(over(k.weight_bytes * more, m.bandwidth * attention_memory),
                    over(k.flops * more, m.vector_peak * c[attention_vector]));
}

double scan(const Kernel& k, const Machine& m) {
    if (k.queries <= 1.0) return over(k.weight_bytes, m.bandwidth * scan_memory);
    return std::max(over(ggml::recurrence_flops(k), m.vector_peak * scan_vector), over(k.flops, m.peak));
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
            return scan(k, m);
        case Pattern::stream:
        case Pattern::collective:  // has classes of its own
        case Pattern::step:
            break;
    }
    return 0.0;
}

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    if (k.pattern == Pattern::step) return k.kernel_seconds + ggml::host_seconds;
    const double of_launch = k.tokens > 1.0 ? c[launch] : c[single_launch];
    return work(k, m, c) + over(ggml::activation_bytes(k), m.bandwidth * c[activations]) + 1e-6 * of_launch;
}

}  // namespace

extern const KernelClass ggml_metal_class;
const KernelClass ggml_metal_class{"ggml_metal", "E14", constants, seconds};

}  // namespace roofline::predict
