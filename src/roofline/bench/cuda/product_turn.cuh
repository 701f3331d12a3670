// What a block of a product multiplies at its turn: a tile of rows of weights, with all activations or with a panel of
// them. Kernels are written once for both; of a plain product nothing is left of this when it is compiled.
#pragma once

#include <cuda_bf16.h>
#include <type_traits>

#include "roofline/bench/cuda/product.cuh"

namespace roofline::cuda::kernels {

template <class Work>
constexpr bool is_routed = std::is_same_v<Work, RoutedProduct>;

__device__ inline bool is_gated(const Product&) {
    return false;
}
__device__ inline bool is_gated(const RoutedProduct& product) {
    return product.gated;
}

__device__ inline int width_of_y(const Product& product) {
    return product.n;
}
__device__ inline int width_of_y(const RoutedProduct& product) {
    return product.gated ? product.n / 2 : product.n;
}

/// The row of weights that is a tiles' row of this number.
__device__ inline int weight_row(const Product& product, int row) {
    return min(row, product.n - 1);
}
__device__ inline int weight_row(const RoutedProduct& product, int row) {
    row = min(row, product.n - 1);
    return product.gated ? gated_row(row, product.n) : row;
}

/// What is added to the sums of a tiles' row of this number.
__device__ inline float bias_of(const Product&, int) {
    return 0.0f;
}
__device__ inline float bias_of(const RoutedProduct& product, int row) {
    if (product.bias == nullptr) return 0.0f;
    return __bfloat162float(static_cast<const __nv_bfloat16*>(product.bias)[weight_row(product, row)]);
}

__device__ inline float gated(float gate, float up) {
    return up * gate / (1.0f + __expf(-gate));
}

/// Turns there are: tiles, for each panel. Panels are known when the kernel before has ended, or earlier where they are
/// settled: so a kernel that waits for its panels lets the next start after that.
__device__ inline int turns(const Product&, int tiles) {
    return tiles;
}
__device__ inline int turns(const RoutedProduct& product, int tiles) {
    return tiles * (product.panel_count != nullptr ? *product.panel_count : product.most_panels);
}

__device__ inline Panel panel_of(const RoutedProduct& product, int number) {
    const int4 raw = __ldg(reinterpret_cast<const int4*>(product.panels) + number);
    return {raw.x, raw.y, raw.z};
}

/// The product that a turn is a tile of, by its number.
__device__ inline Product at_turn(const Product& product, int, int, int) {
    return product;
}
/// `row_bytes` of a row of weights, `x_bytes` of an activation.
__device__ inline RoutedProduct at_turn(const RoutedProduct& product, int turn, int tiles, int row_bytes,
                                        int x_bytes = 2) {
    const Panel panel = panel_of(product, turn / tiles);
    const auto expert = static_cast<std::size_t>(panel.expert);
    const std::size_t row = expert * static_cast<std::size_t>(product.n);
    const auto first = static_cast<std::size_t>(panel.first);
    RoutedProduct own = product;
    own.weights = static_cast<const std::uint8_t*>(product.weights) + row * static_cast<std::size_t>(row_bytes);
    own.scales = static_cast<const std::uint8_t*>(product.scales) + expert * product.scale_stride;
    if (product.whole_scale != nullptr) own.whole_scale = product.whole_scale + expert;
    own.y = static_cast<std::uint8_t*>(product.y) + first * static_cast<std::size_t>(width_of_y(product)) * 2;
    own.m = panel.rows;
    if (product.bias != nullptr) own.bias = static_cast<const std::uint8_t*>(product.bias) + row * 2;
    if (product.rows != nullptr) {
        own.rows = product.rows + first;
    } else {
        own.x = static_cast<const std::uint8_t*>(product.x) +
                first * static_cast<std::size_t>(product.k) * static_cast<std::size_t>(x_bytes);
        if (product.x_scales != nullptr) own.x_scales += first;
    }
    return own;
}

/// The row of x that an activation at a turn is, one of its m.
__device__ inline int row_of_x(const Product&, int activation) {
    return activation;
}
__device__ inline int row_of_x(const RoutedProduct& product, int activation) {
    return product.rows != nullptr ? __ldg(product.rows + activation) : activation;
}

/// Turns there are where a kernel takes panels of so many rows of either kind of product.
__device__ inline int panel_turns(const Product& product, int tiles, int panel_rows) {
    return (product.m + panel_rows - 1) / panel_rows * tiles;
}
__device__ inline int panel_turns(const RoutedProduct& product, int tiles, int) {
    return turns(product, tiles);
}

/// The panel whose turn it is, as a product, and its tile of weights. Bytes: of an activation, of a row of weights.
__device__ inline Product panel_at(const Product& product, int number, int tiles, int panel_rows, int x_bytes, int,
                                   int& tile) {
    const Turn turn = grouped_turn(number, tiles, (product.m + panel_rows - 1) / panel_rows);
    tile = turn.tile;
    const auto first = static_cast<std::size_t>(turn.panel) * static_cast<std::size_t>(panel_rows);
    Product own = product;
    own.m = min(panel_rows, product.m - static_cast<int>(first));
    own.x = static_cast<const std::uint8_t*>(product.x) +
            first * static_cast<std::size_t>(product.k) * static_cast<std::size_t>(x_bytes);
    own.y = static_cast<std::uint8_t*>(product.y) + 2 * first * static_cast<std::size_t>(product.n);
    if (product.x_scales != nullptr) own.x_scales += first;
    return own;
}
__device__ inline RoutedProduct panel_at(const RoutedProduct& product, int turn, int tiles, int, int x_bytes,
                                         int row_bytes, int& tile) {
    tile = turn % tiles;
    return at_turn(product, turn, tiles, row_bytes, x_bytes);
}

__device__ inline bool settled(const Product&) {
    return true;
}
__device__ inline bool settled(const RoutedProduct& product) {
    return product.settled;
}

/// What a block does when it has written its tile: of a product that is part of something larger.
__device__ inline void after_tile(const Product&) {}

/// Writes the results of a tile of `Rows` rows of weights, by `sum_of(activation, row of the tile)`.
template <int Rows, class Work, class SumOf>
__device__ void write_tile(const Work& product, int first_row, int most, int threads, const SumOf& sum_of) {
    auto* y = static_cast<__nv_bfloat16*>(product.y);
    const auto width = static_cast<std::size_t>(width_of_y(product));
    const int rows = is_gated(product) ? Rows / 2 : Rows;
    const int first = is_gated(product) ? first_row / 2 : first_row;
    const int outputs = min(product.m, most) * rows;
    for (int i = static_cast<int>(threadIdx.x); i < outputs; i += threads) {
        const int within = i % rows;
        const int activation = i / rows;
        if (first + within >= static_cast<int>(width)) continue;
        const int gate = within / 8 * 16 + within % 8;
        const auto result = [&](int row) { return sum_of(activation, row) + bias_of(product, first_row + row); };
        const float sum = is_gated(product) ? gated(result(gate), result(gate + 8)) : result(within);
        y[static_cast<std::size_t>(activation) * width + static_cast<std::size_t>(first + within)] =
            __float2bfloat16_rn(sum);
    }
}

}  // namespace roofline::cuda::kernels
