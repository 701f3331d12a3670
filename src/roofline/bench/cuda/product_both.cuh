// Panels of weights and activations in the same eight bits, under scales of rows: the variants that are tried.
#pragma once

#include "roofline/bench/cuda/product_panels.cuh"

namespace roofline::cuda::kernels {

template <class Weights>
std::vector<ProductVariant> both_panels() {
    return {
        panel_variant<Weights, 4, 32, 1>("panels, 256 x 32"),
        panel_variant<Weights, 4, 32, 1, 2>("panels, 256 x 32, 2 blocks a tile"),
        panel_variant<Weights, 4, 32, 1, 4>("panels, 256 x 32, 4 blocks a tile"),
        panel_variant<Weights, 4, 32, 1, 7>("panels, 256 x 32, 7 blocks a tile"),
        panel_variant<Weights, 4, 64, 1>("panels, 256 x 64"),
        panel_variant<Weights, 4, 64, 1, 2>("panels, 256 x 64, 2 blocks a tile"),
        panel_variant<Weights, 4, 64, 1, 4>("panels, 256 x 64, 4 blocks a tile"),
        panel_variant<Weights, 4, 64, 1, 7>("panels, 256 x 64, 7 blocks a tile"),
        panel_variant<Weights, 2, 128, 1>("panels, 128 x 128"),
        panel_variant<Weights, 2, 128, 1, 2>("panels, 128 x 128, 2 blocks a tile"),
        panel_variant<Weights, 2, 128, 1, 3>("panels, 128 x 128, 3 blocks a tile"),
        panel_variant<Weights, 2, 256, 1>("panels, 128 x 256"),
    };
}
template <class Weights>
std::vector<RoutedVariant> routed_both_panels() {
    return {
        panel_variant<Weights, 4, 32, 1, 1, RoutedProduct>("panels, 256 x 32"),
        panel_variant<Weights, 4, 64, 1, 1, RoutedProduct>("panels, 256 x 64"),
        panel_variant<Weights, 2, 128, 1, 1, RoutedProduct>("panels, 128 x 128"),
        panel_variant<Weights, 2, 256, 1, 1, RoutedProduct>("panels, 128 x 256"),
    };
}

}  // namespace roofline::cuda::kernels
