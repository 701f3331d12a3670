// Products with e2m1 weights and scales of groups, on Hopper: the variants that both kinds of scales have
// (columns of 8 activations, warps, blocks a multiprocessor, segments on their way before the activations).
#pragma once

#include "roofline/bench/cuda/product_digits.cuh"
#include "roofline/bench/cuda/product_experts.cuh"
#include "roofline/bench/cuda/product_panels.cuh"

namespace roofline::cuda::kernels {

/// `One` for one row, `Halves` for one or a few.
template <class One, class Halves, class Kind>
std::vector<ProductVariant> fp4_products() {
    using Many = PanelFp4<Kind>;
    return {
        digit_variant<One, 1, 8, 1, 4, true>("digits, 1 x 8 warps, 4 early, one row"),
        digit_variant<One, 1, 16, 1, 2, true>("digits, 1 x 16 warps, 2 early, one row"),
        digit_variant<One, 1, 16, 1, 4, true>("digits, 1 x 16 warps, 4 early, one row"),
        digit_variant<One, 1, 8, 2, 1, true>("digits, 2 x 8 warps, 1 early, one row"),
        digit_variant<One, 1, 8, 2, 2, true>("digits, 2 x 8 warps, 2 early, one row"),
        digit_variant<One, 1, 16, 1, 2, true, 1, 2>("digits, 1 x 16 warps, 2 early, 2 ahead, one row"),
        digit_variant<Halves, 1, 16, 1, 2, true>("halves, 1 x 16 warps, 2 early, one row"),
        digit_variant<Halves, 1, 8, 1, 4>("halves, 1 x 8 warps, 4 early"),
        digit_variant<Halves, 1, 16, 1, 2>("halves, 1 x 16 warps, 2 early"),
        digit_variant<Halves, 1, 8, 2, 2>("halves, 2 x 8 warps, 2 early"),
        panel_variant<Many, 4, 32, 2>("panels, 256 x 32"),
        panel_variant<Many, 4, 32, 2, 2>("panels, 256 x 32, 2 blocks a tile"),
        panel_variant<Many, 4, 32, 2, 4>("panels, 256 x 32, 4 blocks a tile"),
        panel_variant<Many, 4, 32, 2, 7>("panels, 256 x 32, 7 blocks a tile"),
        panel_variant<Many, 4, 64, 2>("panels, 256 x 64"),
        panel_variant<Many, 4, 64, 2, 2>("panels, 256 x 64, 2 blocks a tile"),
        panel_variant<Many, 4, 64, 2, 4>("panels, 256 x 64, 4 blocks a tile"),
        panel_variant<Many, 2, 128, 1>("panels, 128 x 128"),
        panel_variant<Many, 2, 128, 1, 2>("panels, 128 x 128, 2 blocks a tile"),
        panel_variant<Many, 2, 128, 1, 3>("panels, 128 x 128, 3 blocks a tile"),
        panel_variant<Many, 2, 256, 1>("panels, 128 x 256"),
    };
}

template <class One, class Halves, class Kind>
std::vector<RoutedVariant> fp4_routed() {
    using Many = PanelFp4<Kind>;
    return {
        expert_variant<One, 1, 8, 512>("digits, a tile a warp, 8 warps, 512 B"),
        expert_variant<One, 1, 8, 256>("digits, a tile a warp, 8 warps, 256 B"),
        expert_variant<One, 1, 12, 256>("digits, a tile a warp, 12 warps, 256 B"),
        expert_variant<One, 1, 16, 256>("digits, a tile a warp, 16 warps, 256 B"),
        expert_variant<Halves, 1, 8, 512>("a tile a warp, 8 warps, 512 B"),
        expert_variant<Halves, 1, 12, 256>("a tile a warp, 12 warps, 256 B"),
        expert_variant<Halves, 1, 14, 256>("a tile a warp, 14 warps, 256 B"),
        expert_variant<Halves, 1, 16, 256>("a tile a warp, 16 warps, 256 B"),
        expert_variant<Halves, 4, 8, 256>("a tile a warp, 8 warps, 256 B"),
        expert_variant<Halves, 4, 12, 256>("a tile a warp, 12 warps, 256 B"),
        expert_variant<Halves, 4, 14, 256>("a tile a warp, 14 warps, 256 B"),
        expert_variant<Halves, 8, 8, 512>("a tile a warp, 8 warps, 512 B"),
        expert_variant<Halves, 8, 8, 256>("a tile a warp, 8 warps, 256 B"),
        expert_variant<Halves, 8, 12, 256>("a tile a warp, 12 warps, 256 B"),
        expert_variant<Halves, 8, 6, 256>("a tile a warp, 6 warps, 256 B"),
        panel_variant<Many, 4, 32, 2, 1, RoutedProduct>("panels, 256 x 32"),
        panel_variant<Many, 4, 64, 2, 1, RoutedProduct>("panels, 256 x 64"),
        panel_variant<Many, 2, 128, 1, 1, RoutedProduct>("panels, 128 x 128"),
        panel_variant<Many, 2, 256, 1, 1, RoutedProduct>("panels, 128 x 256"),
    };
}

}  // namespace roofline::cuda::kernels
