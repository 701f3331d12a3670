// What a block of a product multiplies at its turn: a tile of rows of weights, with all activations or with a panel of
// them. Kernels are written once for both; of a plain product nothing is left of this when it is compiled.
#pragma once

#include <type_traits>

#include "roofline/bench/cuda/product.cuh"

namespace roofline::cuda::kernels {

template <class Work>
constexpr bool is_routed = std::is_same_v<Work, RoutedProduct>;

/// Turns there are: tiles, for each panel. Panels are known when the kernel before has ended.
__device__ inline int turns(const Product&, int tiles) {
    return tiles;
}
__device__ inline int turns(const RoutedProduct& product, int tiles) {
    return tiles * *product.panel_count;
}

/// The product that a turn is a tile of, by its number.
__device__ inline Product at_turn(const Product& product, int, int, int, int) {
    return product;
}
/// `row_bytes` of a row of weights, `scale_bytes` of its scales.
__device__ inline RoutedProduct at_turn(const RoutedProduct& product, int turn, int tiles, int row_bytes,
                                        int scale_bytes) {
    const int4 raw = __ldg(reinterpret_cast<const int4*>(product.panels) + turn / tiles);
    const Panel panel{raw.x, raw.y, raw.z};
    const std::size_t row = static_cast<std::size_t>(panel.expert) * static_cast<std::size_t>(product.n);
    const auto first = static_cast<std::size_t>(panel.first);
    RoutedProduct own = product;
    own.weights = static_cast<const std::uint8_t*>(product.weights) + row * static_cast<std::size_t>(row_bytes);
    own.scales = static_cast<const std::uint8_t*>(product.scales) + row * static_cast<std::size_t>(scale_bytes);
    own.y = static_cast<std::uint8_t*>(product.y) + first * static_cast<std::size_t>(product.n) * 2;
    own.m = panel.rows;
    if (product.rows != nullptr) {
        own.rows = product.rows + first;
    } else {
        own.x = static_cast<const std::uint8_t*>(product.x) + first * static_cast<std::size_t>(product.k) * 2;
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

}  // namespace roofline::cuda::kernels
