// Where the sums of x86-64 go: lanes of registers, each of a row of W and one of x, are added up into y.
#pragma once

#if defined(__x86_64__)
#include <cstdint>
#include <immintrin.h>
#include <type_traits>
#include <utility>

#include "roofline/bench/kernels/products.hpp"

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace roofline::bench::eight_lanes {

#define ROOFLINE_LANES 8
#include "roofline/bench/kernels/lanes.inc"
#undef ROOFLINE_LANES
#define ROOFLINE_REGISTER __m256
#include "roofline/bench/kernels/save_lanes.inc"
#undef ROOFLINE_REGISTER

}  // namespace roofline::bench::eight_lanes
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")
namespace roofline::bench::sixteen_lanes {

#define ROOFLINE_LANES 16
#include "roofline/bench/kernels/lanes.inc"
#undef ROOFLINE_LANES
#define ROOFLINE_REGISTER __m512
#include "roofline/bench/kernels/save_lanes.inc"
#undef ROOFLINE_REGISTER

}  // namespace roofline::bench::sixteen_lanes
#pragma GCC pop_options

namespace roofline::bench {
using eight_lanes::save_lanes;
using sixteen_lanes::save_lanes;
}  // namespace roofline::bench
#endif
