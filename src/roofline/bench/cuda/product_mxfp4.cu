// Products with mxfp4 weights: a power of two for 32 values of a row.
#include "roofline/bench/cuda/product_fp4.cuh"

namespace roofline::cuda::kernels {

const std::vector<ProductVariant>& mxfp4_products() {
    return fp4_products<Mxfp4Halves, Mxfp4>();
}

const std::vector<RoutedVariant>& mxfp4_routed() {
    return fp4_routed<Mxfp4Halves, Mxfp4>();
}

}  // namespace roofline::cuda::kernels
