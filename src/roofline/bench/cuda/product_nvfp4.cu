// Products with nvfp4 weights: an e4m3 for 16 values of a row, and a scale for the whole matrix.
#include "roofline/bench/cuda/product_fp4.cuh"

namespace roofline::cuda::kernels {

const std::vector<ProductVariant>& nvfp4_products() {
    return fp4_products<Nvfp4Halves, Nvfp4>();
}

const std::vector<RoutedVariant>& nvfp4_routed() {
    return fp4_routed<Nvfp4Halves, Nvfp4>();
}

}  // namespace roofline::cuda::kernels
