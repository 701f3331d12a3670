// Products with bf16 weights: the variants that are tried (columns of 8 activations, warps, tiles of 16 rows, loads in
// flight, next loads issued ahead).
#include "roofline/bench/cuda/product_kernel.cuh"

namespace roofline::cuda {

const std::vector<ProductVariant>& bf16_products() {
    static const std::vector<ProductVariant> variants = {
        product_variant<Bf16, 1, 4, 1, 8, false>("4 warps, 1 tiles, 8 loads"),
        product_variant<Bf16, 1, 8, 1, 4, false>("8 warps, 1 tiles, 4 loads"),
        product_variant<Bf16, 1, 8, 1, 8, false>("8 warps, 1 tiles, 8 loads"),
        product_variant<Bf16, 1, 8, 1, 4, true>("8 warps, 1 tiles, 4 loads, ahead"),
        product_variant<Bf16, 1, 16, 1, 4, false>("16 warps, 1 tiles, 4 loads"),
        product_variant<Bf16, 1, 8, 2, 4, false>("8 warps, 2 tiles, 4 loads"),
        product_variant<Bf16, 1, 4, 2, 4, true>("4 warps, 2 tiles, 4 loads, ahead"),
        product_variant<Bf16, 2, 8, 1, 4, false>("8 warps, 1 tiles, 4 loads"),
        product_variant<Bf16, 2, 8, 2, 4, false>("8 warps, 2 tiles, 4 loads"),
        product_variant<Bf16, 4, 8, 1, 4, false>("8 warps, 1 tiles, 4 loads"),
        product_variant<Bf16, 4, 8, 2, 4, false>("8 warps, 2 tiles, 4 loads"),
        product_variant<Bf16, 8, 8, 1, 4, false>("8 warps, 1 tiles, 4 loads"),
    };
    return variants;
}

}  // namespace roofline::cuda
