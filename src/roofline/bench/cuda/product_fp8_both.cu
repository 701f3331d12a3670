// Products with fp8 weights and fp8 activations: the variants that are tried (columns of 8 activations, warps, tiles of
// 16 rows, loads in flight, next loads issued ahead).
#include "roofline/bench/cuda/product_bulk.cuh"
#include "roofline/bench/cuda/product_kernel.cuh"
#include "roofline/bench/cuda/product_panels.cuh"

namespace roofline::cuda::kernels {

const std::vector<ProductVariant>& fp8_both_products() {
    static const std::vector<ProductVariant> variants = {
        product_variant<Fp8Both, 1, 8, 1, 4, false>("8 warps, 1 tiles, 4 loads"),
        product_variant<Fp8Both, 1, 16, 1, 2, false>("16 warps, 1 tiles, 2 loads"),
        product_variant<Fp8Both, 2, 8, 1, 4, false>("8 warps, 1 tiles, 4 loads"),
        product_variant<Fp8Both, 4, 8, 1, 4, false>("8 warps, 1 tiles, 4 loads"),
        product_variant<Fp8Both, 8, 8, 1, 4, false>("8 warps, 1 tiles, 4 loads"),
        bulk_variant<Fp8Both, 1, 8, 1, 2048, 6, 1>("bulk, 1 x 8 warps, 1 tiles, 6 x 2048 B"),
        bulk_variant<Fp8Both, 1, 16, 1, 2048, 6, 1>("bulk, 1 x 16 warps, 1 tiles, 6 x 2048 B"),
        bulk_variant<Fp8Both, 1, 8, 1, 1024, 5, 2>("bulk, 2 x 8 warps, 1 tiles, 5 x 1024 B"),
        bulk_variant<Fp8Both, 1, 8, 1, 2048, 3, 2>("bulk, 2 x 8 warps, 1 tiles, 3 x 2048 B"),
        bulk_variant<Fp8Both, 1, 8, 1, 4096, 3, 1>("bulk, 1 x 8 warps, 1 tiles, 3 x 4096 B"),
        bulk_variant<Fp8Both, 1, 16, 1, 4096, 3, 1>("bulk, 1 x 16 warps, 1 tiles, 3 x 4096 B"),
        bulk_variant<Fp8Both, 2, 8, 2, 2048, 3, 1>("bulk, 1 x 8 warps, 2 tiles, 3 x 2048 B"),
        bulk_variant<Fp8Both, 4, 8, 2, 2048, 2, 1>("bulk, 1 x 8 warps, 2 tiles, 2 x 2048 B"),
        bulk_variant<Fp8Both, 8, 8, 2, 1024, 4, 1>("bulk, 1 x 8 warps, 2 tiles, 4 x 1024 B"),
        panel_variant<PanelFp8Both, 4, 32, 1>("panels, 256 x 32"),
        panel_variant<PanelFp8Both, 4, 32, 1, 2>("panels, 256 x 32, 2 blocks a tile"),
        panel_variant<PanelFp8Both, 4, 32, 1, 4>("panels, 256 x 32, 4 blocks a tile"),
        panel_variant<PanelFp8Both, 4, 32, 1, 7>("panels, 256 x 32, 7 blocks a tile"),
        panel_variant<PanelFp8Both, 4, 64, 1>("panels, 256 x 64"),
        panel_variant<PanelFp8Both, 4, 64, 1, 2>("panels, 256 x 64, 2 blocks a tile"),
        panel_variant<PanelFp8Both, 4, 64, 1, 4>("panels, 256 x 64, 4 blocks a tile"),
        panel_variant<PanelFp8Both, 4, 64, 1, 7>("panels, 256 x 64, 7 blocks a tile"),
        panel_variant<PanelFp8Both, 2, 128, 1>("panels, 128 x 128"),
        panel_variant<PanelFp8Both, 2, 128, 1, 2>("panels, 128 x 128, 2 blocks a tile"),
        panel_variant<PanelFp8Both, 2, 128, 1, 3>("panels, 128 x 128, 3 blocks a tile"),
        panel_variant<PanelFp8Both, 2, 256, 1>("panels, 128 x 256"),
    };
    return variants;
}

const std::vector<RoutedVariant>& fp8_both_routed() {
    static const std::vector<RoutedVariant> variants = {
        panel_variant<PanelFp8Both, 4, 32, 1, 1, RoutedProduct>("panels, 256 x 32"),
        panel_variant<PanelFp8Both, 4, 64, 1, 1, RoutedProduct>("panels, 256 x 64"),
        panel_variant<PanelFp8Both, 2, 128, 1, 1, RoutedProduct>("panels, 128 x 128"),
        panel_variant<PanelFp8Both, 2, 256, 1, 1, RoutedProduct>("panels, 128 x 256"),
    };
    return variants;
}

}  // namespace roofline::cuda::kernels
