// AArch64 with vectors whose size only the machine knows. The same instructions as in neon.cpp, as wide as they come.
#include "roofline/measure/accumulators.hpp"
#include "roofline/measure/cpu_kernels.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <arm_sve.h>
#include <sys/auxv.h>
#endif

namespace roofline::measure {
#if defined(__aarch64__) && defined(__linux__)
namespace {

constexpr std::uint64_t long_enough = std::uint64_t{1} << 20U;
// Function by function, never for the whole file: what runs everywhere, and what the linker may take from any file,
// must not hold an instruction that only some machines have.
#define ROOFLINE_SVE __attribute__((target("arch=armv8.2-a+sve+bf16+i8mm"), noinline))

constexpr std::size_t widest = 256;  // bytes

bool here() {
    return (::getauxval(AT_HWCAP) & (1UL << 22U)) != 0;
}
bool has_bf16() {
    return here() && (::getauxval(AT_HWCAP2) & (1UL << 12U)) != 0;  // SVEBF16
}
bool has_i8mm() {
    return here() && (::getauxval(AT_HWCAP2) & (1UL << 9U)) != 0;  // SVEI8MM
}

// FLOPs of one trip: 24 accumulators x lanes x 2.
ROOFLINE_SVE bool fp64(std::uint64_t trips) {
    const std::size_t lanes = svcntd();
    double values[24 * widest / sizeof(double)];
    const svbool_t on = svptrue_b64();
    svfloat64_t x = svdup_f64(1.0);
    svfloat64_t y = svld1_f64(on, step_lanes<double>().value);
    asm volatile("" : "+w"(x), "+w"(y));
#define UPDATE(a) svmla_f64_x(on, a, x, y)
#define STORE(to, a) svst1_f64(on, to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "w", svdup_f64(0.0))
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, lanes, 1, trips);
}

ROOFLINE_SVE bool fp32(std::uint64_t trips) {
    const std::size_t lanes = svcntw();
    float values[24 * widest / sizeof(float)];
    const svbool_t on = svptrue_b32();
    svfloat32_t x = svdup_f32(1.0F);
    svfloat32_t y = svld1_f32(on, step_lanes<float>().value);
    asm volatile("" : "+w"(x), "+w"(y));
#define UPDATE(a) svmla_f32_x(on, a, x, y)
#define STORE(to, a) svst1_f32(on, to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "w", svdup_f32(0.0F))
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, lanes, 1, trips);
}

// To and fro, as in neon.cpp.
ROOFLINE_SVE bool fp16(std::uint64_t trips) {
    const std::size_t lanes = svcnth();
    std::uint16_t values[24 * widest / sizeof(std::uint16_t)];
    std::uint16_t differences[widest / sizeof(std::uint16_t)];
    for (std::size_t lane = 0; lane < lanes; ++lane) differences[lane] = half_bits(swing_sum(lane) - 2 * swing_start);
    const svbool_t on = svptrue_b16();
    svfloat16_t x = svreinterpret_f16_u16(svdup_u16(half_bits(1)));
    svfloat16_t y = svreinterpret_f16_u16(svld1_u16(on, differences));
    svfloat16_t z = svneg_f16_x(on, y);
    asm volatile("" : "+w"(x), "+w"(y), "+w"(z));
#define UPDATE(a) svmla_f16_x(on, a, x, y)
#define STORE(to, a) svst1_u16(on, to, svreinterpret_u16_f16(a))
#define UPDATE_BACK(a) svmla_f16_x(on, a, x, z)
    ROOFLINE_SWING(ROOFLINE_24, "w", svreinterpret_f16_u16(svdup_u16(half_bits(swing_start))))
#undef UPDATE
#undef UPDATE_BACK
#undef STORE
    return swung(values, 24 * lanes, trips);
}

// FLOPs of one trip: 24 accumulators x lanes x 2 products x 2.
ROOFLINE_SVE bool bf16_dot(std::uint64_t trips) {
    const std::size_t lanes = svcntw();
    float values[24 * widest / sizeof(float)];
    const svbool_t on = svptrue_b32();
    svuint16_t ones = svdup_u16(bfloat_bits(1));
    asm volatile("" : "+w"(ones));  // see neon.cpp
    svbfloat16_t x = svreinterpret_bf16_u16(ones);
    svbfloat16_t y = svreinterpret_bf16_u16(svld1_u16(svptrue_b16(), bfloat_step_lanes(2).value));
    asm volatile("" : "+w"(x), "+w"(y));
#define UPDATE(a) svbfdot_f32(a, x, y)
#define STORE(to, a) svst1_f32(on, to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "w", svdup_f32(0.0F))
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, lanes, 2, trips);
}

// FLOPs of one trip: 24 accumulators x (16 multiply-adds for every 16 bytes) x 2. Every 16 bytes see the operands of
// the first 16, so that the columns of all 2 x 2 results take the same turns.
ROOFLINE_SVE bool bf16_matrix(std::uint64_t trips) {
    const std::size_t lanes = svcntw();
    float values[24 * widest / sizeof(float)];
    const svbool_t on = svptrue_b32();
    svuint16_t ones = svdup_u16(bfloat_bits(1));
    asm volatile("" : "+w"(ones));  // see neon.cpp
    svbfloat16_t x = svreinterpret_bf16_u16(ones);
    svbfloat16_t y = svreinterpret_bf16_u16(svld1rq_u16(svptrue_b16(), bfloat_step_lanes(4).value));
    asm volatile("" : "+w"(x), "+w"(y));
#define UPDATE(a) svbfmmla_f32(a, x, y)
#define STORE(to, a) svst1_f32(on, to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "w", svdup_f32(0.0F))
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, 2, 4, trips);
}

// Operations of one trip: 24 accumulators x lanes x 4 products x 2.
ROOFLINE_SVE bool int8_dot(std::uint64_t trips) {
    const std::size_t lanes = svcntw();
    std::int32_t values[24 * widest / sizeof(std::int32_t)];
    const svbool_t on = svptrue_b32();
    svint8_t x = svdup_s8(1);
    svint8_t y = svld1_s8(svptrue_b8(), step_lanes<std::int8_t>(4).value);
    asm volatile("" : "+w"(x), "+w"(y));
#define UPDATE(a) svdot_s32(a, x, y)
#define STORE(to, a) svst1_s32(on, to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "w", svdup_s32(0))
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, lanes, 4, trips);
}

// Operations of one trip: 24 accumulators x (32 multiply-adds for every 16 bytes) x 2.
ROOFLINE_SVE bool int8_matrix(std::uint64_t trips) {
    const std::size_t lanes = svcntw();
    std::int32_t values[24 * widest / sizeof(std::int32_t)];
    const svbool_t on = svptrue_b32();
    svint8_t x = svdup_s8(1);
    svint8_t y = svld1rq_s8(svptrue_b8(), step_lanes<std::int8_t>(8).value);
    asm volatile("" : "+w"(x), "+w"(y));
#define UPDATE(a) svmmla_s32(a, x, y)
#define STORE(to, a) svst1_s32(on, to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "w", svdup_s32(0))
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, 2, 8, trips);
}

// Bytes of one pass: bytes. Vectors of up to 256 bytes, eight a trip, divide a page for every size a machine may have.
ROOFLINE_SVE std::uint64_t read(std::byte*, const std::byte* b, const std::byte*, std::size_t bytes,
                                std::uint64_t passes) {
    const svbool_t on = svptrue_b64();
    const std::size_t lanes = svcntd();
    svuint64_t s0 = svdup_u64(0), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
        asm volatile("" : "+r"(b) : : "memory");
        const auto* from = reinterpret_cast<const std::uint64_t*>(b);
        const auto* end = from + bytes / sizeof(std::uint64_t);
        for (; from < end; from += 8 * lanes) {
            s0 = svadd_u64_x(on, s0, svld1_vnum_u64(on, from, 0));
            s1 = svadd_u64_x(on, s1, svld1_vnum_u64(on, from, 1));
            s2 = svadd_u64_x(on, s2, svld1_vnum_u64(on, from, 2));
            s3 = svadd_u64_x(on, s3, svld1_vnum_u64(on, from, 3));
            s4 = svadd_u64_x(on, s4, svld1_vnum_u64(on, from, 4));
            s5 = svadd_u64_x(on, s5, svld1_vnum_u64(on, from, 5));
            s6 = svadd_u64_x(on, s6, svld1_vnum_u64(on, from, 6));
            s7 = svadd_u64_x(on, s7, svld1_vnum_u64(on, from, 7));
        }
    }
    s0 = svadd_u64_x(on, svadd_u64_x(on, s0, s1), svadd_u64_x(on, s2, s3));
    s4 = svadd_u64_x(on, svadd_u64_x(on, s4, s5), svadd_u64_x(on, s6, s7));
    return svaddv_u64(on, svadd_u64_x(on, s0, s4));
}

// Bytes of one pass: 2 x bytes.
ROOFLINE_SVE std::uint64_t copy(std::byte* a, const std::byte* b, const std::byte*, std::size_t bytes,
                                std::uint64_t passes) {
    const svbool_t on = svptrue_b64();
    const std::size_t lanes = svcntd();
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
        const auto* from = reinterpret_cast<const double*>(b);
        const auto* end = from + bytes / sizeof(double);
        auto* to = reinterpret_cast<double*>(a);
        for (; from < end; from += 4 * lanes, to += 4 * lanes) {
            asm volatile("" : : : "memory");
            const svfloat64_t v0 = svld1_vnum_f64(on, from, 0), v1 = svld1_vnum_f64(on, from, 1);
            const svfloat64_t v2 = svld1_vnum_f64(on, from, 2), v3 = svld1_vnum_f64(on, from, 3);
            svst1_vnum_f64(on, to, 0, v0);
            svst1_vnum_f64(on, to, 1, v1);
            svst1_vnum_f64(on, to, 2, v2);
            svst1_vnum_f64(on, to, 3, v3);
        }
    }
    return 0;
}

// Bytes of one pass: 3 x bytes.
ROOFLINE_SVE std::uint64_t triad(std::byte* a, const std::byte* b, const std::byte* c, std::size_t bytes,
                                 std::uint64_t passes) {
    const svbool_t on = svptrue_b64();
    const std::size_t lanes = svcntd();
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
        const auto* first = reinterpret_cast<const double*>(b);
        const auto* second = reinterpret_cast<const double*>(c);
        const auto* end = first + bytes / sizeof(double);
        auto* to = reinterpret_cast<double*>(a);
        for (; first < end; first += 2 * lanes, second += 2 * lanes, to += 2 * lanes) {
            asm volatile("" : : : "memory");
            const svfloat64_t v0 =
                svmla_n_f64_x(on, svld1_vnum_f64(on, first, 0), svld1_vnum_f64(on, second, 0), triad_factor);
            const svfloat64_t v1 =
                svmla_n_f64_x(on, svld1_vnum_f64(on, first, 1), svld1_vnum_f64(on, second, 1), triad_factor);
            svst1_vnum_f64(on, to, 0, v0);
            svst1_vnum_f64(on, to, 1, v1);
        }
    }
    return 0;
}

// Bytes of one pass: bytes.
ROOFLINE_SVE std::uint64_t write(std::byte* a, const std::byte*, const std::byte*, std::size_t bytes,
                                 std::uint64_t passes) {
    const svbool_t on = svptrue_b64();
    const std::size_t lanes = svcntd();
    const svfloat64_t value = svdup_f64(written_value);
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
        auto* to = reinterpret_cast<double*>(a);
        const auto* end = to + bytes / sizeof(double);
        for (; to < end; to += 4 * lanes) {
            asm volatile("" : : : "memory");
            svst1_vnum_f64(on, to, 0, value);
            svst1_vnum_f64(on, to, 1, value);
            svst1_vnum_f64(on, to, 2, value);
            svst1_vnum_f64(on, to, 3, value);
        }
    }
    return 0;
}

/// Only asked where SVE is there: elsewhere the instruction does not exist.
ROOFLINE_SVE std::size_t vector_bytes() {
    return svcntb();
}

}  // namespace

void sve_kernels(Kernels& kernels) {
    const char* set = "sve";
    const std::size_t width = here() ? vector_bytes() : 16;
    const double vectors = static_cast<double>(width) / 16.0;  // of 16 bytes in one
    auto& flops = kernels.flops;
    flops.push_back({set, Engine::vector, DType::fp64, 96.0 * vectors, long_enough, fp64, here});
    flops.push_back({set, Engine::vector, DType::fp32, 192.0 * vectors, long_enough, fp32, here});
    flops.push_back({set, Engine::vector, DType::fp16, 384.0 * vectors, long_enough, fp16, here});
    flops.push_back({set, Engine::vector, DType::bf16, 384.0 * vectors, long_enough, bf16_dot, has_bf16});
    flops.push_back({set, Engine::vector, DType::int8, 768.0 * vectors, long_enough, int8_dot, here});
    flops.push_back({set, Engine::matrix, DType::bf16, 768.0 * vectors, long_enough, bf16_matrix, has_bf16});
    flops.push_back({set, Engine::matrix, DType::int8, 1536.0 * vectors, long_enough, int8_matrix, has_i8mm});
    kernels.memory.push_back({set, Motion::read, 1, false, width, read, here});
    kernels.memory.push_back({set, Motion::copy, 1, false, width, copy, here});
    kernels.memory.push_back({set, Motion::triad, 1, false, width, triad, here});
    kernels.memory.push_back({set, Motion::write, 1, false, width, write, here});
}
#else
void sve_kernels(Kernels&) {}
#endif

}  // namespace roofline::measure
