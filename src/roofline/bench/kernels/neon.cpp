// The products for AArch64 with the bf16 and i8mm instructions (Neoverse V1 and N2, Apple M2 and later). bf16 and int8
// are in neon_tiles.cpp, int4 in neon_int4.cpp and neon_int4_rows.cpp.
#include "roofline/bench/kernels/fp8.hpp"
#include "roofline/bench/kernels/groups.hpp"
#include "roofline/bench/kernels/neon_tiles.hpp"
#include "roofline/bench/kernels/products.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <algorithm>
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <cstring>
#include <sys/auxv.h>

#include "roofline/bench/kernels/side_by_side.hpp"

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+bf16+i8mm+dotprod,tune=neoverse-v1")
namespace roofline::bench::neon {
namespace {

void product_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    call.m == 1 ? vector_int4(call, first, last) : rows_int4(call, first, last);
}

/// fp32: 4 rows of W against 4 rows of x.
void block_fp32(const ProductCall& call, std::int64_t n, std::int64_t last, std::int64_t column) {
    const auto* w = static_cast<const float*>(call.weights.values);
    const float* rows[4];
    for (std::int64_t i = 0; i < 4; ++i) rows[i] = w + std::min(n + i, last - 1) * call.k;
    const float* x = static_cast<const float*>(call.x) + column * call.k;
    float32x4_t sums[4][4];
    for (auto& row : sums) {
        for (auto& sum : row) sum = vdupq_n_f32(0.0F);
    }
    for (std::int64_t at = 0; at < call.k; at += 4) {
        float32x4_t values[4];
        for (int j = 0; j < 4; ++j) values[j] = vld1q_f32(x + j * call.k + at);
        for (int i = 0; i < 4; ++i) {
            const float32x4_t weight = vld1q_f32(rows[i] + at);
            for (int j = 0; j < 4; ++j) sums[i][j] = vfmaq_f32(sums[i][j], weight, values[j]);
        }
    }
    for (std::int64_t i = 0; i < std::min<std::int64_t>(4, last - n); ++i) {
        for (int j = 0; j < 4; ++j) call.y[(column + j) * call.pitch() + n + i] = vaddvq_f32(sums[i][j]);
    }
}

/// fp32 with one row of x: four rows of W side by side, a line of each at a time, as in neon_tiles.cpp.
void vector_fp32(const ProductCall& call, std::int64_t column, std::int64_t first, std::int64_t last) {
    constexpr int runs = 4;
    const auto* w = static_cast<const float*>(call.weights.values);
    const float* x = static_cast<const float*>(call.x) + column * call.k;
    side_by_side<runs>(first, last, [&](const std::int64_t(&rows)[runs]) {
        float32x4_t sums[runs][2];
        for (auto& row : sums) row[0] = row[1] = vdupq_n_f32(0.0F);
        for (std::int64_t at = 0; at < call.k; at += 16) {
            float32x4_t line[4];
            for (int j = 0; j < 4; ++j) line[j] = vld1q_f32(x + at + 4 * j);
            for (int i = 0; i < runs; ++i) {
                const float* row = w + rows[i] * call.k + at;
                __builtin_prefetch(row + 2048, 0, 1);
                for (int j = 0; j < 4; ++j) sums[i][j % 2] = vfmaq_f32(sums[i][j % 2], vld1q_f32(row + 4 * j), line[j]);
            }
        }
        for (int i = 0; i < runs; ++i)
            call.y[column * call.pitch() + rows[i]] = vaddvq_f32(vaddq_f32(sums[i][0], sums[i][1]));
    });
}

/// 16 bytes of each row after another, pairs of rows interleaved by 8 bytes: what instructions that multiply 2 x 8
/// bytes with 8 bytes x 2 read without shuffling.
void pack_pairs(const void* x, std::int64_t m, std::int64_t row_bytes, WeightFormat, void* packed) {
    const auto* from = static_cast<const char*>(x);
    auto* to = static_cast<char*>(packed);
    for (std::int64_t at = 0; at < row_bytes; at += 16) {
        for (std::int64_t pair = 0; pair < panel_rows; pair += 2) {
            for (std::int64_t half = 0; half < 16; half += 8) {
                for (std::int64_t row = pair; row < pair + 2; ++row, to += 8) {
                    if (row < m)
                        std::memcpy(to, from + row * row_bytes + at + half, 8);
                    else
                        std::memset(to, 0, 8);
                }
            }
        }
    }
}

bool reads_panels(WeightFormat type, std::int64_t m, std::int64_t, std::int64_t) {
    return type != WeightFormat::fp32 && !stays_in_rows(type) && m > 1;
}

void product_fp32(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const std::int64_t in_fours = call.m / 4 * 4;
    for (std::int64_t n = first; n < last; n += 4) {
        for (std::int64_t column = 0; column < in_fours; column += 4) block_fp32(call, n, last, column);
    }
    for (std::int64_t column = in_fours; column < call.m; ++column) vector_fp32(call, column, first, last);
}

}  // namespace
}  // namespace roofline::bench::neon
#pragma GCC pop_options

namespace roofline::bench {
const ProductKernels* neon_products() {
    static constexpr ProductKernels kernels = {.name = "NEON with bf16 and i8mm",
                                               .fp32 = neon::product_fp32,
                                               .bf16 = neon::product_bf16,
                                               .int8 = neon::product_int8,
                                               .int4 = neon::product_int4,
                                               .groups = neon_groups,
                                               .fp8 = neon_fp8,
                                               .panels = {.pack = neon::pack_pairs, .read = neon::reads_panels},
                                               .tiles = Tiles::eights,
                                               .abreast = 4,
                                               .whole_bytes = WholeBytes::of_signed_x};
    const bool here = (::getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0 && (::getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
    return here ? &kernels : nullptr;
}
}  // namespace roofline::bench
#else
namespace roofline::bench {
const ProductKernels* neon_products() {
    return nullptr;
}
}  // namespace roofline::bench
#endif
