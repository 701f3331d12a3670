// Products with int8 weights and int8 activations: the variants that are tried.
#include "roofline/bench/cuda/product_both.cuh"

namespace roofline::cuda::kernels {

const std::vector<ProductVariant>& int8_both_products() {
    static const auto variants = both_panels<PanelInt8Both>();
    return variants;
}

const std::vector<RoutedVariant>& int8_both_routed() {
    static const auto variants = routed_both_panels<PanelInt8Both>();
    return variants;
}

}  // namespace roofline::cuda::kernels
