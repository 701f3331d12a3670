// Products with fp8 weights under scales of 128 x 128: the variants that are tried (as in product_fp8.cu).
#include "roofline/bench/cuda/product_digits.cuh"
#include "roofline/bench/cuda/product_experts.cuh"
#include "roofline/bench/cuda/product_kernel.cuh"
#include "roofline/bench/cuda/product_panels.cuh"

namespace roofline::cuda::kernels {

const std::vector<ProductVariant>& fp8_block_products() {
    static const std::vector<ProductVariant> variants = {
        digit_variant<Fp8BlockHalves, 1, 8, 1, 4>("halves, 1 x 8 warps, 4 early"),
        digit_variant<Fp8BlockHalves, 1, 16, 1, 2>("halves, 1 x 16 warps, 2 early"),
        digit_variant<Fp8BlockHalves, 1, 16, 1, 4>("halves, 1 x 16 warps, 4 early"),
        digit_variant<Fp8BlockHalves, 1, 8, 2, 2>("halves, 2 x 8 warps, 2 early"),
        digit_variant<Fp8BlockHalves, 1, 16, 1, 4, true>("halves, 1 x 16 warps, 4 early, one row"),
        digit_variant<Fp8BlockHalves, 1, 8, 2, 2, true>("halves, 2 x 8 warps, 2 early, one row"),
        digit_variant<Fp8BlockHalves, 1, 16, 1, 2, true, 1, 2>("halves, 1 x 16 warps, 2 early, 2 ahead, one row"),
        digit_variant<Fp8BlockHalves, 1, 8, 2, 2, true, 1, 1>("halves, 2 x 8 warps, 2 early, 1 ahead, one row"),
        digit_variant<Fp8BlockHalves, 1, 16, 1, 4, true, 1, 2>("halves, 1 x 16 warps, 4 early, 2 ahead, one row"),
        digit_variant<Fp8BlockHalves, 1, 16, 1, 4, true, 2>("halves, 1 x 16 warps, 4 early, one row, 8 x 4 KiB"),
        digit_variant<Fp8BlockHalves, 1, 8, 1, 4, true, 2>("halves, 1 x 8 warps, 4 early, one row, 8 x 4 KiB"),
        digit_variant<Fp8BlockHalves, 1, 16, 1, 4, true, 2, 2>(
            "halves, 1 x 16 warps, 4 early, 2 ahead, one row, 8 x 4 KiB"),
        product_variant<Fp8Block, 1, 8, 1, 2, true>("8 warps, 1 tiles, 2 loads, ahead"),
        product_variant<Fp8Block, 1, 4, 2, 2, false>("4 warps, 2 tiles, 2 loads"),
        product_variant<Fp8Block, 2, 8, 2, 2, false>("8 warps, 2 tiles, 2 loads"),
        product_variant<Fp8Block, 4, 8, 1, 2, false>("8 warps, 1 tiles, 2 loads"),
        product_variant<Fp8Block, 8, 8, 1, 1, false>("8 warps, 1 tiles, 1 loads"),
        panel_variant<PanelFp8Block, 4, 32, 2>("panels, 256 x 32"),
        panel_variant<PanelFp8Block, 4, 32, 2, 2>("panels, 256 x 32, 2 blocks a tile"),
        panel_variant<PanelFp8Block, 4, 32, 2, 4>("panels, 256 x 32, 4 blocks a tile"),
        panel_variant<PanelFp8Block, 4, 32, 2, 7>("panels, 256 x 32, 7 blocks a tile"),
        panel_variant<PanelFp8Block, 4, 64, 2>("panels, 256 x 64"),
        panel_variant<PanelFp8Block, 4, 64, 2, 2>("panels, 256 x 64, 2 blocks a tile"),
        panel_variant<PanelFp8Block, 4, 64, 2, 4>("panels, 256 x 64, 4 blocks a tile"),
        panel_variant<PanelFp8Block, 2, 128, 1>("panels, 128 x 128"),
        panel_variant<PanelFp8Block, 2, 128, 1, 2>("panels, 128 x 128, 2 blocks a tile"),
        panel_variant<PanelFp8Block, 2, 128, 1, 3>("panels, 128 x 128, 3 blocks a tile"),
        panel_variant<PanelFp8Block, 2, 256, 1>("panels, 128 x 256"),
    };
    return variants;
}

const std::vector<RoutedVariant>& fp8_block_routed() {
    static const std::vector<RoutedVariant> variants = {
        expert_variant<Fp8BlockHalves, 1, 8, 512>("a tile a warp, 8 warps, 512 B"),
        expert_variant<Fp8BlockHalves, 1, 12, 512>("a tile a warp, 12 warps, 512 B"),
        expert_variant<Fp8BlockHalves, 4, 8, 512>("a tile a warp, 8 warps, 512 B"),
        expert_variant<Fp8BlockHalves, 4, 12, 256>("a tile a warp, 12 warps, 256 B"),
        expert_variant<Fp8BlockHalves, 8, 8, 512>("a tile a warp, 8 warps, 512 B"),
        expert_variant<Fp8BlockHalves, 8, 8, 256>("a tile a warp, 8 warps, 256 B"),
        expert_variant<Fp8BlockHalves, 8, 12, 256>("a tile a warp, 12 warps, 256 B"),
        expert_variant<Fp8BlockHalves, 1, 4, 1024>("a tile a warp, 4 warps, 1024 B"),
        product_variant<Fp8Block, 1, 8, 1, 2, true, RoutedProduct>("8 warps, 1 tiles, 2 loads, ahead"),
        product_variant<Fp8Block, 1, 4, 1, 2, true, RoutedProduct>("4 warps, 1 tiles, 2 loads, ahead"),
        product_variant<Fp8Block, 1, 4, 2, 2, false, RoutedProduct>("4 warps, 2 tiles, 2 loads"),
        product_variant<Fp8Block, 2, 8, 2, 2, false, RoutedProduct>("8 warps, 2 tiles, 2 loads"),
        product_variant<Fp8Block, 4, 8, 1, 2, false, RoutedProduct>("8 warps, 1 tiles, 2 loads"),
        product_variant<Fp8Block, 8, 8, 1, 1, false, RoutedProduct>("8 warps, 1 tiles, 1 loads"),
        panel_variant<PanelFp8Block, 4, 32, 2, 1, RoutedProduct>("panels, 256 x 32"),
        panel_variant<PanelFp8Block, 4, 64, 2, 1, RoutedProduct>("panels, 256 x 64"),
        panel_variant<PanelFp8Block, 2, 128, 1, 1, RoutedProduct>("panels, 128 x 128"),
        panel_variant<PanelFp8Block, 2, 256, 1, 1, RoutedProduct>("panels, 128 x 256"),
    };
    return variants;
}

}  // namespace roofline::cuda::kernels
