// x86-64 with 512-bit vectors: AVX-512 and its extensions for fp16, bf16 (pairs into fp32) and int8 (fours into int32).
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
    return __builtin_cpu_supports("avx512f") != 0;
}
bool has_fp16() {
    return here() && __builtin_cpu_supports("avx512fp16") != 0;
}
bool has_bf16() {
    return here() && __builtin_cpu_supports("avx512bf16") != 0;
}
bool has_vnni() {
    return here() && __builtin_cpu_supports("avx512vnni") != 0;
}

bool has_bytes_without_vnni() {
    return here() && __builtin_cpu_supports("avx512bw") != 0 && !has_vnni();
}

#define ROOFLINE_AVX512(MORE) __attribute__((target("avx512f" MORE), noinline))

ROOFLINE_MEMORY_LOOPS(avx512, __attribute__((target("avx512f"))), 64)
#define STREAM_STORE(to, v) _mm512_stream_pd(reinterpret_cast<double*>(to), (__m512d)(v))
ROOFLINE_STREAMING_LOOPS(avx512, __attribute__((target("avx512f"))), 64, STREAM_STORE, _mm_sfence)

// Bytes of one pass: bytes. An addition for every load keeps both vector units as busy as both load units, and the two
// get in each other's way; here one instruction takes in two loads (exclusive or of three). Lanes are added up after
// every pass.
ROOFLINE_AVX512("")
std::uint64_t read_in_pairs(std::byte*, const std::byte* b, const std::byte*, std::size_t bytes, std::uint64_t passes) {
    __m512i total = _mm512_setzero_si512();
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
        asm volatile("" : "+r"(b) : : "memory");
        __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
        for (std::size_t at = 0; at < bytes; at += 16 * 64) {
            const auto* from = reinterpret_cast<const __m512i*>(b + at);
            constexpr int xor_of_three = 0x96;
            s0 = _mm512_ternarylogic_epi64(s0, from[0], from[1], xor_of_three);
            s1 = _mm512_ternarylogic_epi64(s1, from[2], from[3], xor_of_three);
            s2 = _mm512_ternarylogic_epi64(s2, from[4], from[5], xor_of_three);
            s3 = _mm512_ternarylogic_epi64(s3, from[6], from[7], xor_of_three);
            s4 = _mm512_ternarylogic_epi64(s4, from[8], from[9], xor_of_three);
            s5 = _mm512_ternarylogic_epi64(s5, from[10], from[11], xor_of_three);
            s6 = _mm512_ternarylogic_epi64(s6, from[12], from[13], xor_of_three);
            s7 = _mm512_ternarylogic_epi64(s7, from[14], from[15], xor_of_three);
        }
        total = _mm512_add_epi64(total, (s0 ^ s1 ^ s2 ^ s3) ^ (s4 ^ s5 ^ s6 ^ s7));
    }
    alignas(64) std::uint64_t lanes[8];
    _mm512_store_si512(lanes, total);
    std::uint64_t sum = 0;
    for (const std::uint64_t lane : lanes) sum += lane;
    return sum;
}

/// Pages are alike, so two of them cancel out: an odd number is as good as one.
std::uint64_t one_pass_in_pairs(std::size_t bytes) {
    std::uint64_t lanes[8] = {};
    for (std::size_t word = 0; word < page_words; ++word) lanes[word % 8] ^= page_word(word);
    std::uint64_t sum = 0;
    for (const std::uint64_t lane : lanes) sum += lane;
    return bytes / page_bytes % 2 * sum;
}

// FLOPs of one trip: 24 accumulators x 8 lanes x 2 = 384.
ROOFLINE_AVX512("") bool fp64(std::uint64_t trips) {
    constexpr std::size_t lanes = 8;
    double values[24 * lanes];
    __m512d x = _mm512_set1_pd(1.0);
    __m512d y = _mm512_loadu_pd(step_lanes<double>().value);
    asm volatile("" : "+v"(x), "+v"(y));
#define UPDATE(a) _mm512_fmadd_pd(x, y, a)
#define STORE(to, a) _mm512_storeu_pd(to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "v", _mm512_setzero_pd())
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, lanes, 1, trips);
}

// FLOPs of one trip: 24 accumulators x 16 lanes x 2 = 768.
ROOFLINE_AVX512("") bool fp32(std::uint64_t trips) {
    constexpr std::size_t lanes = 16;
    float values[24 * lanes];
    __m512 x = _mm512_set1_ps(1.0F);
    __m512 y = _mm512_loadu_ps(step_lanes<float>().value);
    asm volatile("" : "+v"(x), "+v"(y));
#define UPDATE(a) _mm512_fmadd_ps(x, y, a)
#define STORE(to, a) _mm512_storeu_ps(to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "v", _mm512_setzero_ps())
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, lanes, 1, trips);
}

// FLOPs of one trip: 24 accumulators x 32 lanes x 2 = 1536. To and fro: a' = y - x a.
ROOFLINE_AVX512(",avx512fp16") bool fp16(std::uint64_t trips) {
    constexpr std::size_t lanes = 32;
    std::uint16_t values[24 * lanes];
    __m512i ones = _mm512_set1_epi16(static_cast<short>(half_bits(1)));
    __m512i sums = _mm512_loadu_si512(swing_lanes().value);
    asm volatile("" : "+v"(ones), "+v"(sums));
    const __m512h x = _mm512_castsi512_ph(ones);
    const __m512h y = _mm512_castsi512_ph(sums);
    const __m512h start = _mm512_castsi512_ph(_mm512_set1_epi16(static_cast<short>(half_bits(swing_start))));
#define UPDATE(a) _mm512_fnmadd_ph(a, x, y)
#define STORE(to, a) _mm512_storeu_si512(to, _mm512_castph_si512(a))
    ROOFLINE_LOOP(ROOFLINE_24, "v", start)
#undef UPDATE
#undef STORE
    return swung(values, 24 * lanes, trips);
}

// FLOPs of one trip: 24 accumulators x 16 lanes x 2 products x 2 = 1536.
ROOFLINE_AVX512(",avx512bf16") bool bf16_dot(std::uint64_t trips) {
    constexpr std::size_t lanes = 16;
    float values[24 * lanes];
    __m512i ones = _mm512_set1_epi16(static_cast<short>(bfloat_bits(1)));
    __m512i steps = _mm512_loadu_si512(bfloat_step_lanes(2).value);
    asm volatile("" : "+v"(ones), "+v"(steps));
    const auto x = (__m512bh)ones;
    const auto y = (__m512bh)steps;
#define UPDATE(a) _mm512_dpbf16_ps(a, x, y)
#define STORE(to, a) _mm512_storeu_ps(to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "v", _mm512_setzero_ps())
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, lanes, 2, trips);
}

// Operations of one trip: 24 accumulators x 16 lanes x 4 products x 2 = 3072.
ROOFLINE_AVX512(",avx512vnni") bool int8_dot(std::uint64_t trips) {
    constexpr std::size_t lanes = 16;
    std::int32_t values[24 * lanes];
    __m512i x = _mm512_set1_epi8(1);
    __m512i y = _mm512_loadu_si512(step_lanes<std::int8_t>(4).value);
    asm volatile("" : "+v"(x), "+v"(y));
#define UPDATE(a) _mm512_dpbusd_epi32(a, x, y)
#define STORE(to, a) _mm512_storeu_si512(to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "v", _mm512_setzero_si512())
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, lanes, 4, trips);
}

/// Bytes without VNNI: unsigned with signed ones, whose products are added up by pairs in 16 bits (enough where one
/// side has seven bits), pairs of these in 32, and to the sum. (The first hidden from the compiler, which would find
/// the two once for all trips.)
__attribute__((target("avx512f,avx512bw"), always_inline)) inline __m512i add_pairs(__m512i sum, __m512i x, __m512i y,
                                                                                    __m512i ones) {
    __m512i pairs;
    asm volatile("vpmaddubsw %2, %1, %0" : "=v"(pairs) : "v"(x), "v"(y));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, ones));
}

// Operations of one trip: 24 accumulators x 16 lanes x 4 products x 2 = 3072, in three instructions each.
ROOFLINE_AVX512(",avx512bw") bool int8_in_pairs(std::uint64_t trips) {
    constexpr std::size_t lanes = 16;
    std::int32_t values[24 * lanes];
    __m512i x = _mm512_set1_epi8(1);
    __m512i y = _mm512_loadu_si512(step_lanes<std::int8_t>(4).value);
    __m512i ones = _mm512_set1_epi16(1);
    asm volatile("" : "+v"(x), "+v"(y), "+v"(ones));
#define UPDATE(a) add_pairs(a, x, y, ones)
#define STORE(to, a) _mm512_storeu_si512(to, a)
    ROOFLINE_LOOP(ROOFLINE_24, "v", _mm512_setzero_si512())
#undef UPDATE
#undef STORE
    return counted(values, 24 * lanes, lanes, 4, trips);
}

}  // namespace

void avx512_kernels(Kernels& kernels) {
    ROOFLINE_ADD_MEMORY_LOOPS(avx512, "avx512", 64, here);
    // On a Xeon with AVX-512 such a loop read 1 to 7% more than the best that does not ask
    // (docs/bench_processors_measured.md).
    ROOFLINE_ADD_ASKING_LOOP(avx512, "avx512", 64, here, 8, 1024, 3);
    ROOFLINE_ADD_STREAMING_LOOPS(avx512, "avx512", 64, here);
    kernels.memory.push_back(
        {"avx512, two loads at once", Motion::read, 1, false, 64, read_in_pairs, here, one_pass_in_pairs});
    auto& flops = kernels.flops;
    flops.push_back({"avx512", Engine::vector, DType::fp64, 384.0, long_enough, fp64, here});
    flops.push_back({"avx512", Engine::vector, DType::fp32, 768.0, long_enough, fp32, here});
    flops.push_back({"avx512-fp16", Engine::vector, DType::fp16, 1536.0, long_enough, fp16, has_fp16});
    flops.push_back({"avx512-bf16", Engine::vector, DType::bf16, 1536.0, long_enough, bf16_dot, has_bf16});
    flops.push_back({"avx512-vnni", Engine::vector, DType::int8, 3072.0, long_enough, int8_dot, has_vnni});
    flops.push_back(
        {"avx512", Engine::vector, DType::int8, 3072.0, long_enough, int8_in_pairs, has_bytes_without_vnni});
}
#else
void avx512_kernels(Kernels&) {}
#endif

}  // namespace roofline::measure
