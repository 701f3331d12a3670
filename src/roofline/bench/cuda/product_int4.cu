// Products with int4 weights: the variants that are tried (columns of 8 activations, warps, tiles of 16 rows, loads in
// flight, next loads issued ahead).
#include "roofline/bench/cuda/product_kernel.cuh"

namespace roofline::cuda {

const std::vector<ProductVariant>& int4_products() {
    static const std::vector<ProductVariant> variants = {
        product_variant<Int4, 1, 4, 1, 4, false>("4 warps, 1 tiles, 4 loads"),
        product_variant<Int4, 1, 4, 1, 2, true>("4 warps, 1 tiles, 2 loads, ahead"),
        product_variant<Int4, 1, 8, 1, 4, false>("8 warps, 1 tiles, 4 loads"),
        product_variant<Int4, 1, 8, 1, 2, true>("8 warps, 1 tiles, 2 loads, ahead"),
        product_variant<Int4, 1, 8, 1, 2, false>("8 warps, 1 tiles, 2 loads"),
        product_variant<Int4, 1, 8, 2, 2, false>("8 warps, 2 tiles, 2 loads"),
        product_variant<Int4, 1, 4, 2, 2, true>("4 warps, 2 tiles, 2 loads, ahead"),
        product_variant<Int4, 1, 4, 2, 4, false>("4 warps, 2 tiles, 4 loads"),
        product_variant<Int4, 2, 8, 1, 2, false>("8 warps, 1 tiles, 2 loads"),
        product_variant<Int4, 2, 4, 1, 2, false>("4 warps, 1 tiles, 2 loads"),
        product_variant<Int4, 4, 8, 1, 2, false>("8 warps, 1 tiles, 2 loads"),
        product_variant<Int4, 8, 8, 1, 1, false>("8 warps, 1 tiles, 1 loads"),
    };
    return variants;
}

}  // namespace roofline::cuda
