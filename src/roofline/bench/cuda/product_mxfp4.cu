// Products with mxfp4 weights: a power of two for 32 values of a row.
#include "roofline/bench/cuda/product_fp4.cuh"

namespace roofline::cuda::kernels {

const std::vector<ProductVariant>& mxfp4_products() {
    static const std::vector<ProductVariant> variants = [] {
        std::vector<ProductVariant> all = fp4_products<Mxfp4Digits<4>, Mxfp4Halves, Mxfp4>();
        all.push_back(digit_variant<Mxfp4Digits<2>, 1, 16, 1, 2>("digits, 1 x 16 warps, 2 early, two rows"));
        all.push_back(digit_variant<Mxfp4Digits<2>, 1, 8, 2, 2>("digits, 2 x 8 warps, 2 early, two rows"));
        return all;
    }();
    return variants;
}

const std::vector<RoutedVariant>& mxfp4_routed() {
    static const std::vector<RoutedVariant> variants = [] {
        std::vector<RoutedVariant> all = fp4_routed<Mxfp4Digits<4>, Mxfp4Halves, Mxfp4>();
        all.push_back(expert_variant<Mxfp4Digits<2>, 2, 8, 512>("digits, a tile a warp, 8 warps, 512 B"));
        all.push_back(expert_variant<Mxfp4Digits<2>, 2, 12, 256>("digits, a tile a warp, 12 warps, 256 B"));
        all.push_back(expert_variant<Mxfp4Digits<2>, 2, 16, 256>("digits, a tile a warp, 16 warps, 256 B"));
        return all;
    }();
    return variants;
}

}  // namespace roofline::cuda::kernels
