// AArch64 with 128-bit vectors: fused multiply-add in fp64, fp32 and fp16, dot products of bf16 and int8 on the vector
// units, products of small matrices (BFMMLA, SMMLA), and pairs of stores that pass by the caches (STNP).
#define ROOFLINE_KEEP const auto x_kept = x;
#define ROOFLINE_AGAIN asm volatile("ldr %q0, %1" : "=w"(x) : "m"(x_kept));
#include <cmath>

#include "roofline/measure/accumulators.hpp"
#include "roofline/measure/cpu_kernels.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

namespace roofline::measure {
#if defined(__aarch64__) && defined(__linux__)
namespace {

constexpr std::uint64_t long_enough = std::uint64_t{1} << 20U;

bool always() {
    return true;
}
bool has_fp16() {
    return (::getauxval(AT_HWCAP) & (1UL << 10U)) != 0;  // ASIMDHP
}
bool has_dot() {
    return (::getauxval(AT_HWCAP) & (1UL << 20U)) != 0;  // ASIMDDP
}
bool has_bf16() {
    return has_fp16() && (::getauxval(AT_HWCAP2) & (1UL << 14U)) != 0;
}
bool has_i8mm() {
    return (::getauxval(AT_HWCAP2) & (1UL << 13U)) != 0;
}

#define ROOFLINE_NEON(FEATURE) __attribute__((target("arch=armv8.2-a+" FEATURE), noinline))

#define UPDATE(a) FUSED(a, x, y)
#define UPDATE_BACK(a) FUSED(a, x, z)
#define ROOFLINE_EACH_COUNT(DO) DO(12) DO(16) DO(20) DO(24)

// FLOPs of one trip: COUNT accumulators x 2 lanes x 2.
#define FUSED vfmaq_f64
#define STORE(to, a) vst1q_f64(to, a)
#define ROOFLINE_FP64(COUNT)                                           \
    __attribute__((noinline)) bool fp64_##COUNT(std::uint64_t trips) { \
        constexpr std::size_t lanes = 2;                               \
        double values[COUNT * lanes];                                  \
        float64x2_t x = vdupq_n_f64(1.0);                              \
        float64x2_t y = vld1q_f64(step_lanes<double>().value);         \
        asm volatile("" : "+w"(x), "+w"(y));                           \
        ROOFLINE_LOOP(ROOFLINE_##COUNT, "w", vdupq_n_f64(0.0))         \
        return counted(values, COUNT * lanes, lanes, 1, trips);        \
    }
ROOFLINE_EACH_COUNT(ROOFLINE_FP64)
#undef FUSED
#undef STORE

// FLOPs of one trip: COUNT accumulators x 4 lanes x 2.
#define FUSED vfmaq_f32
#define STORE(to, a) vst1q_f32(to, a)
#define ROOFLINE_FP32(COUNT)                                           \
    __attribute__((noinline)) bool fp32_##COUNT(std::uint64_t trips) { \
        constexpr std::size_t lanes = 4;                               \
        float values[COUNT * lanes];                                   \
        float32x4_t x = vdupq_n_f32(1.0F);                             \
        float32x4_t y = vld1q_f32(step_lanes<float>().value);          \
        asm volatile("" : "+w"(x), "+w"(y));                           \
        ROOFLINE_LOOP(ROOFLINE_##COUNT, "w", vdupq_n_f32(0.0F))        \
        return counted(values, COUNT * lanes, lanes, 1, trips);        \
    }
ROOFLINE_EACH_COUNT(ROOFLINE_FP32)
#undef FUSED
#undef STORE

// FLOPs of one trip: COUNT accumulators x 8 lanes x 2. The instruction adds a product to its accumulator, so an
// accumulator goes to and fro by a product and its negative in turn.
#define FUSED vfmaq_f16
#define STORE(to, a) vst1q_u16(to, vreinterpretq_u16_f16(a))
#define ROOFLINE_FP16(COUNT)                                                                          \
    ROOFLINE_NEON("fp16") bool fp16_##COUNT(std::uint64_t trips) {                                    \
        constexpr std::size_t lanes = 8;                                                              \
        std::uint16_t values[COUNT * lanes];                                                          \
        std::uint16_t forth[lanes];                                                                   \
        for (std::size_t i = 0; i < lanes; ++i) forth[i] = half_bits(swing_sum(i) - 2 * swing_start); \
        float16x8_t x = vreinterpretq_f16_u16(vdupq_n_u16(half_bits(1)));                             \
        float16x8_t y = vreinterpretq_f16_u16(vld1q_u16(forth));                                      \
        float16x8_t z = vnegq_f16(y);                                                                 \
        asm volatile("" : "+w"(x), "+w"(y), "+w"(z));                                                 \
        const float16x8_t start = vreinterpretq_f16_u16(vdupq_n_u16(half_bits(swing_start)));         \
        ROOFLINE_SWING(ROOFLINE_##COUNT, "w", start)                                                  \
        return swung(values, COUNT * lanes, trips);                                                   \
    }
ROOFLINE_EACH_COUNT(ROOFLINE_FP16)
#undef FUSED
#undef STORE
#undef UPDATE
#undef UPDATE_BACK

// FLOPs of one trip: 24 accumulators x 4 lanes x 2 products x 2 = 384.
ROOFLINE_NEON("fp16+bf16") bool bf16_dot(std::uint64_t trips) {
    constexpr std::size_t lanes = 4;
    float values[24 * lanes];
    uint16x8_t ones = vdupq_n_u16(bfloat_bits(1));
    asm volatile("" : "+w"(ones));  // GCC 12 makes the constant 1.0 of bf16 with the instruction for fp16
    bfloat16x8_t x = vreinterpretq_bf16_u16(ones);
    bfloat16x8_t y = vreinterpretq_bf16_u16(vld1q_u16(bfloat_step_lanes(2).value));
    asm volatile("" : "+w"(x), "+w"(y));
#define UPDATE(a) vbfdotq_f32(a, x, y)
#define STORE(to, a) vst1q_f32(to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "w", vdupq_n_f32(0.0F))
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, lanes, 2, trips);
}

// FLOPs of one trip: 24 accumulators x (2 x 4 by 4 x 2: 16 multiply-adds) x 2 = 768.
ROOFLINE_NEON("fp16+bf16") bool bf16_matrix(std::uint64_t trips) {
    constexpr std::size_t lanes = 4;
    float values[24 * lanes];
    uint16x8_t ones = vdupq_n_u16(bfloat_bits(1));
    asm volatile("" : "+w"(ones));  // GCC 12 makes the constant 1.0 of bf16 with the instruction for fp16
    bfloat16x8_t x = vreinterpretq_bf16_u16(ones);
    bfloat16x8_t y = vreinterpretq_bf16_u16(vld1q_u16(bfloat_step_lanes(4).value));
    asm volatile("" : "+w"(x), "+w"(y));
#define UPDATE(a) vbfmmlaq_f32(a, x, y)
#define STORE(to, a) vst1q_f32(to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "w", vdupq_n_f32(0.0F))
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, 2, 4, trips);  // columns of the 2 x 2 result take turns
}

// Operations of one trip: 24 accumulators x 4 lanes x 4 products x 2 = 768.
ROOFLINE_NEON("dotprod") bool int8_dot(std::uint64_t trips) {
    constexpr std::size_t lanes = 4;
    std::int32_t values[24 * lanes];
    int8x16_t x = vdupq_n_s8(1);
    int8x16_t y = vld1q_s8(step_lanes<std::int8_t>(4).value);
    asm volatile("" : "+w"(x), "+w"(y));
#define UPDATE(a) vdotq_s32(a, x, y)
#define STORE(to, a) vst1q_s32(to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "w", vdupq_n_s32(0))
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, lanes, 4, trips);
}

// Operations of one trip: 24 accumulators x (2 x 8 by 8 x 2: 32 multiply-adds) x 2 = 1536.
ROOFLINE_NEON("i8mm") bool int8_matrix(std::uint64_t trips) {
    constexpr std::size_t lanes = 4;
    std::int32_t values[24 * lanes];
    int8x16_t x = vdupq_n_s8(1);
    int8x16_t y = vld1q_s8(step_lanes<std::int8_t>(8).value);
    asm volatile("" : "+w"(x), "+w"(y));
#define UPDATE(a) vmmlaq_s32(a, x, y)
#define STORE(to, a) vst1q_s32(to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "w", vdupq_n_s32(0))
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, 2, 8, trips);
}

// Bytes of one pass: bytes. Two loads to each instruction that uses them: a Neoverse N1 takes in four instructions a
// cycle, and a sum for every load leaves it no room for two loads (28 bytes a cycle instead of 32). What is added up
// are products of neighbouring vectors, whole numbers below 2^53 and so exact; a sum that is not whole is wrong.
std::uint64_t read_in_pairs(std::byte*, const std::byte* b, const std::byte*, std::size_t bytes, std::uint64_t passes) {
    float64x2_t sums[8] = {};
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
        asm volatile("" : "+r"(b) : : "memory");
        for (std::size_t at = 0; at < bytes; at += 256) {
            const auto* from = reinterpret_cast<const double*>(b + at);
#pragma GCC unroll 8
            for (std::size_t i = 0; i < 8; ++i)
                sums[i] = vfmaq_f64(sums[i], vld1q_f64(from + 4 * i), vld1q_f64(from + 4 * i + 2));
        }
    }
#pragma GCC unroll 8
    for (std::size_t i = 1; i < 8; ++i) sums[0] = vaddq_f64(sums[0], sums[i]);
    const double sum = vaddvq_f64(sums[0]);
    return sum == std::floor(sum) ? static_cast<std::uint64_t>(sum) : 0;
}

std::uint64_t one_pass_in_pairs(std::size_t bytes) {
    std::uint64_t page = 0;  // of the numbers 1 to 512, by fours
    for (std::uint64_t i = 1; i < page_words; i += 4) page += i * (i + 2) + (i + 1) * (i + 3);
    return bytes / page_bytes * page;
}

#define STORE_PAIR(to, v, w) asm volatile("stnp %q0, %q1, [%2]" : : "w"(v), "w"(w), "r"(to) : "memory")

// Bytes of one pass: 2 x bytes.
std::uint64_t streaming_copy(std::byte* a, const std::byte* b, const std::byte*, std::size_t bytes,
                             std::uint64_t passes) {
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
        for (std::size_t at = 0; at < bytes; at += 64) {
            asm volatile("" : : : "memory");
            const auto* from = reinterpret_cast<const double*>(b + at);
            const float64x2_t v0 = vld1q_f64(from), v1 = vld1q_f64(from + 2);
            const float64x2_t v2 = vld1q_f64(from + 4), v3 = vld1q_f64(from + 6);
            STORE_PAIR(a + at, v0, v1);
            STORE_PAIR(a + at + 32, v2, v3);
        }
    }
    return 0;
}

// Bytes of one pass: bytes.
std::uint64_t streaming_write(std::byte* a, const std::byte*, const std::byte*, std::size_t bytes,
                              std::uint64_t passes) {
    const float64x2_t value = vdupq_n_f64(written_value);
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
        for (std::size_t at = 0; at < bytes; at += 64) {
            STORE_PAIR(a + at, value, value);
            STORE_PAIR(a + at + 32, value, value);
        }
    }
    return 0;
}

}  // namespace

void neon_kernels(Kernels& kernels) {
    const char* set = "neon";
    auto& flops = kernels.flops;
#define ROOFLINE_ADD(COUNT)                                                                              \
    flops.push_back({set, Engine::vector, DType::fp64, COUNT * 4.0, long_enough, fp64_##COUNT, always}); \
    flops.push_back({set, Engine::vector, DType::fp32, COUNT * 8.0, long_enough, fp32_##COUNT, always}); \
    flops.push_back({set, Engine::vector, DType::fp16, COUNT * 16.0, long_enough, fp16_##COUNT, has_fp16});
    ROOFLINE_EACH_COUNT(ROOFLINE_ADD)
    flops.push_back({set, Engine::vector, DType::bf16, 384.0, long_enough, bf16_dot, has_bf16});
    flops.push_back({set, Engine::vector, DType::int8, 768.0, long_enough, int8_dot, has_dot});
    flops.push_back({set, Engine::matrix, DType::bf16, 768.0, long_enough, bf16_matrix, has_bf16});
    flops.push_back({set, Engine::matrix, DType::int8, 1536.0, long_enough, int8_matrix, has_i8mm});
    kernels.memory.push_back(
        {"neon, two loads at once", Motion::read, 1, false, 16, read_in_pairs, always, one_pass_in_pairs});
    kernels.memory.push_back({set, Motion::copy, 1, true, 16, streaming_copy, always});
    kernels.memory.push_back({set, Motion::write, 1, true, 16, streaming_write, always});
}
#else
void neon_kernels(Kernels&) {}
#endif

}  // namespace roofline::measure
