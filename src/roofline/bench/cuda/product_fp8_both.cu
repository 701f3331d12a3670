// Products with fp8 weights and fp8 activations: the variants that are tried (columns of 8 activations, warps, tiles of
// 16 rows, loads in flight, next loads issued ahead).
#include <algorithm>
#include <iterator>

#include "roofline/bench/cuda/product_both.cuh"
#include "roofline/bench/cuda/product_bulk.cuh"
#include "roofline/bench/cuda/product_kernel.cuh"

namespace roofline::cuda::kernels {

namespace {

std::vector<ProductVariant> of_few_rows() {
    return {
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
    };
}

}  // namespace

const std::vector<ProductVariant>& fp8_both_products() {
    static const auto variants = [] {
        auto all = of_few_rows();
        std::ranges::move(both_panels<PanelFp8Both>(), std::back_inserter(all));
        return all;
    }();
    return variants;
}

const std::vector<RoutedVariant>& fp8_both_routed() {
    static const auto variants = routed_both_panels<PanelFp8Both>();
    return variants;
}

}  // namespace roofline::cuda::kernels
