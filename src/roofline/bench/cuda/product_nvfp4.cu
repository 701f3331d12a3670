// Products with nvfp4 weights: an e4m3 for 16 values of a row, and a scale for the whole matrix.
#include "roofline/bench/cuda/product_fp4.cuh"

namespace roofline::cuda::kernels {

const std::vector<ProductVariant>& nvfp4_products() {
    static const std::vector<ProductVariant> variants = fp4_products<Nvfp4Digits, Nvfp4Halves, Nvfp4>();
    return variants;
}

const std::vector<RoutedVariant>& nvfp4_routed() {
    static const std::vector<RoutedVariant> variants = fp4_routed<Nvfp4Digits, Nvfp4Halves, Nvfp4>();
    return variants;
}

}  // namespace roofline::cuda::kernels
