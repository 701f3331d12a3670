// x86-64 with 256-bit vectors: AVX2 and FMA, and the int8 dot products of AVX-VNNI where a processor has them without
// AVX-512. Sixteen registers hold twelve accumulators and two operands.
#include "roofline/measure/accumulators.hpp"
#include "roofline/measure/memory_loops.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace roofline::measure {
#if defined(__x86_64__)
namespace {

constexpr std::uint64_t long_enough = std::uint64_t{1} << 20U;

bool here() {
    return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}

#if __GNUC__ >= 12
bool has_vnni() {
    return here() && __builtin_cpu_supports("avxvnni") != 0;
}
#endif

bool has_no_vnni() {
    return here() && __builtin_cpu_supports("avx512vnni") == 0
#if __GNUC__ >= 12
           && !has_vnni()
#endif
        ;
}

#define ROOFLINE_AVX2 __attribute__((target("avx2,fma"), noinline))

ROOFLINE_MEMORY_LOOPS(avx2, __attribute__((target("avx2"))), 32)
#define STREAM_STORE(to, v) _mm256_stream_pd(reinterpret_cast<double*>(to), (__m256d)(v))
ROOFLINE_STREAMING_LOOPS(avx2, __attribute__((target("avx2"))), 32, STREAM_STORE, _mm_sfence)

// FLOPs of one trip: 12 accumulators x 4 lanes x 2 = 96.
ROOFLINE_AVX2 bool fp64(std::uint64_t trips) {
    constexpr std::size_t lanes = 4;
    double values[12 * lanes];
    __m256d x = _mm256_set1_pd(1.0);
    __m256d y = _mm256_load_pd(step_lanes<double>().value);
    asm volatile("" : "+x"(x), "+x"(y));
#define UPDATE(a) _mm256_fmadd_pd(x, y, a)
#define STORE(to, a) _mm256_storeu_pd(to, a)
    ROOFLINE_LOOP(ROOFLINE_12, "x", _mm256_setzero_pd())
#undef UPDATE
#undef STORE
    return counted(values, 12 * lanes, lanes, 1, trips);
}

// FLOPs of one trip: 12 accumulators x 8 lanes x 2 = 192.
ROOFLINE_AVX2 bool fp32(std::uint64_t trips) {
    constexpr std::size_t lanes = 8;
    float values[12 * lanes];
    __m256 x = _mm256_set1_ps(1.0F);
    __m256 y = _mm256_load_ps(step_lanes<float>().value);
    asm volatile("" : "+x"(x), "+x"(y));
#define UPDATE(a) _mm256_fmadd_ps(x, y, a)
#define STORE(to, a) _mm256_storeu_ps(to, a)
    ROOFLINE_LOOP(ROOFLINE_12, "x", _mm256_setzero_ps())
#undef UPDATE
#undef STORE
    return counted(values, 12 * lanes, lanes, 1, trips);
}

/// Bytes without VNNI: unsigned with signed ones, whose products are added up by pairs in 16 bits (enough where one
/// side has seven bits), pairs of these in 32, and to the sum. (The first hidden from the compiler, which would find
/// the two once for all trips.)
__attribute__((target("avx2,fma"), always_inline)) inline __m256i add_pairs(__m256i sum, __m256i x, __m256i y,
                                                                            __m256i ones) {
    __m256i pairs;
    asm volatile("vpmaddubsw %2, %1, %0" : "=x"(pairs) : "x"(x), "x"(y));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
}

// Operations of one trip: 12 accumulators x 8 lanes x 4 products x 2 = 768, in three instructions each.
ROOFLINE_AVX2 bool int8_in_pairs(std::uint64_t trips) {
    constexpr std::size_t lanes = 8;
    std::int32_t values[12 * lanes];
    __m256i x = _mm256_set1_epi8(1);
    __m256i y = _mm256_load_si256(reinterpret_cast<const __m256i*>(step_lanes<std::int8_t>(4).value));
    __m256i ones = _mm256_set1_epi16(1);
    asm volatile("" : "+x"(x), "+x"(y), "+x"(ones));
#define UPDATE(a) add_pairs(a, x, y, ones)
#define STORE(to, a) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a)
    ROOFLINE_LOOP(ROOFLINE_12, "x", _mm256_setzero_si256())
#undef UPDATE
#undef STORE
    return counted(values, 12 * lanes, lanes, 4, trips);
}

#if __GNUC__ >= 12
// Operations of one trip: 12 accumulators x 8 lanes x 4 products x 2 = 768.
__attribute__((target("avx2,avxvnni"), noinline)) bool int8_dot(std::uint64_t trips) {
    constexpr std::size_t lanes = 8;
    std::int32_t values[12 * lanes];
    __m256i x = _mm256_set1_epi8(1);
    __m256i y = _mm256_load_si256(reinterpret_cast<const __m256i*>(step_lanes<std::int8_t>(4).value));
    asm volatile("" : "+x"(x), "+x"(y));
#define UPDATE(a) _mm256_dpbusd_avx_epi32(a, x, y)
#define STORE(to, a) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a)
    ROOFLINE_LOOP(ROOFLINE_12, "x", _mm256_setzero_si256())
#undef UPDATE
#undef STORE
    return counted(values, 12 * lanes, lanes, 4, trips);
}
#endif

}  // namespace

void avx2_kernels(Kernels& kernels) {
    ROOFLINE_ADD_MEMORY_LOOPS(avx2, "avx2", 32, here);
    ROOFLINE_ADD_ASKING_LOOP(avx2, "avx2", 32, here, 8, 1024, 3);
    ROOFLINE_ADD_STREAMING_LOOPS(avx2, "avx2", 32, here);
    kernels.flops.push_back({"avx2", Engine::vector, DType::fp64, 96.0, long_enough, fp64, here});
    kernels.flops.push_back({"avx2", Engine::vector, DType::fp32, 192.0, long_enough, fp32, here});
    kernels.flops.push_back({"avx2", Engine::vector, DType::int8, 768.0, long_enough, int8_in_pairs, has_no_vnni});
#if __GNUC__ >= 12
    kernels.flops.push_back({"avx-vnni", Engine::vector, DType::int8, 768.0, long_enough, int8_dot, has_vnni});
#endif
}
#else
void avx2_kernels(Kernels&) {}
#endif

}  // namespace roofline::measure
