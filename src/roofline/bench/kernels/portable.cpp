// The products for any processor: whatever the compiler makes of vectors of four.
#include <type_traits>

#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/kernels/products.hpp"

namespace roofline::bench {
namespace portable {
#define ROOFLINE_LANES 4
#include "roofline/bench/kernels/attention_lanes.inc"
#undef ROOFLINE_LANES
}  // namespace portable

const ProductKernels& portable_products() {
    static constexpr ProductKernels kernels = {
        "portable", portable::product_fp32, portable::product_bf16, portable::product_int8, portable::product_int4,
        false};
    return kernels;
}

const AttentionKernels& portable_attention() {
    static constexpr AttentionKernels kernels = {"portable", portable::attention_piece<Bf16>,
                                                 portable::attention_piece<float>};
    return kernels;
}

}  // namespace roofline::bench
