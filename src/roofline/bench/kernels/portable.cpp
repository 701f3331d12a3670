// The products for any processor: whatever the compiler makes of vectors of four.
#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/kernels/fp8.hpp"
#include "roofline/bench/kernels/group_factors.hpp"
#include "roofline/bench/kernels/groups.hpp"
#include "roofline/bench/kernels/panels.hpp"
#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/side_by_side.hpp"

namespace roofline::bench {
namespace portable {
#define ROOFLINE_LANES 4
// clang-format off: the first says what the others are written with
#include "roofline/bench/kernels/lanes.inc"
#include "roofline/bench/kernels/attention_lanes.inc"
#include "roofline/bench/kernels/product_lanes.inc"
// clang-format on
#undef ROOFLINE_LANES
}  // namespace portable

const ProductKernels& portable_products() {
    static constexpr ProductKernels kernels = {"portable",
                                               portable::product_fp32,
                                               portable::product_bf16,
                                               portable::product_int8,
                                               portable::product_int4,
                                               portable_groups,
                                               portable_fp8};
    return kernels;
}

const AttentionKernels& portable_attention() {
    static constexpr AttentionKernels kernels = {"portable",
                                                 portable::attention_piece<Bf16>,
                                                 portable::attention_piece<Bf16>,
                                                 portable::attention_piece<float>,
                                                 KvLayout::rows,
                                                 16};
    return kernels;
}

}  // namespace roofline::bench
