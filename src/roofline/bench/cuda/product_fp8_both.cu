// Products with fp8 weights and fp8 activations: the variants that are tried (columns of 8 activations, warps, tiles of
// 16 rows, loads in flight, next loads issued ahead).
#include "roofline/bench/cuda/product_kernel.cuh"

namespace roofline::cuda {

const std::vector<ProductVariant>& fp8_both_products() {
    static const std::vector<ProductVariant> variants = {
        product_variant<Fp8Both, 1, 4, 1, 8, false>("4 warps, 1 tiles, 8 loads"),
        product_variant<Fp8Both, 1, 8, 1, 4, false>("8 warps, 1 tiles, 4 loads"),
        product_variant<Fp8Both, 1, 8, 1, 4, true>("8 warps, 1 tiles, 4 loads, ahead"),
        product_variant<Fp8Both, 1, 16, 1, 2, false>("16 warps, 1 tiles, 2 loads"),
        product_variant<Fp8Both, 1, 8, 2, 4, false>("8 warps, 2 tiles, 4 loads"),
        product_variant<Fp8Both, 2, 8, 1, 4, false>("8 warps, 1 tiles, 4 loads"),
        product_variant<Fp8Both, 4, 8, 1, 4, false>("8 warps, 1 tiles, 4 loads"),
        product_variant<Fp8Both, 8, 8, 1, 4, false>("8 warps, 1 tiles, 4 loads"),
    };
    return variants;
}

}  // namespace roofline::cuda
