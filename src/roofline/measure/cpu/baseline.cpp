// What every processor of its kind can do: vectors of 16 bytes (SSE2 on x86-64, NEON on AArch64, whatever the compiler
// makes of them elsewhere). Arithmetic here is a multiplication and an addition; fused ones are in neon.cpp and
// avx2.cpp.
#include "roofline/measure/accumulators.hpp"
#include "roofline/measure/memory_loops.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace roofline::measure {
namespace {

#if defined(__x86_64__)
constexpr const char* called = "sse2";
#elif defined(__aarch64__)
constexpr const char* called = "neon";
#else
constexpr const char* called = "portable";
#endif

bool always() {
    return true;
}

ROOFLINE_MEMORY_LOOPS(sixteen, , 16)

#if defined(__x86_64__)
#define STREAM_STORE(to, v) _mm_stream_pd(reinterpret_cast<double*>(to), (__m128d)(v))
ROOFLINE_STREAMING_LOOPS(sixteen, , 16, STREAM_STORE, _mm_sfence)
#endif

#if !(defined(__aarch64__) && defined(__linux__))  // neon.cpp has better ones
typedef float Floats __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(16)));
#if defined(__x86_64__)
#define REGISTER "x"
#else
#define REGISTER "m"
#endif

// FLOPs of one trip: 12 accumulators x 4 lanes x (a multiplication + an addition) = 96.
bool fp32(std::uint64_t trips) {
    constexpr std::size_t lanes = 4;
    alignas(64) float values[12 * lanes];
    Floats x = Floats{} + 1.0F;
    Floats y = {1.0F, -1.0F, 2.0F, -2.0F};
    asm volatile("" : "+" REGISTER(x), "+" REGISTER(y));
#define UPDATE(a) ((a) * x + y)
#define STORE(to, a) (*reinterpret_cast<Floats*>(to) = (a))
    ROOFLINE_LOOP(ROOFLINE_12, REGISTER, Floats{})
#undef STORE
    return counted(values, 12 * lanes, lanes, 1, trips);
}

// FLOPs of one trip: 12 accumulators x 2 lanes x 2 = 48.
bool fp64(std::uint64_t trips) {
    constexpr std::size_t lanes = 2;
    alignas(64) double values[12 * lanes];
    Doubles x = Doubles{} + 1.0;
    Doubles y = {1.0, -1.0};
    asm volatile("" : "+" REGISTER(x), "+" REGISTER(y));
#define STORE(to, a) (*reinterpret_cast<Doubles*>(to) = (a))
    ROOFLINE_LOOP(ROOFLINE_12, REGISTER, Doubles{})
#undef STORE
#undef UPDATE
    return counted(values, 12 * lanes, lanes, 1, trips);
}
#endif

}  // namespace

void baseline_kernels(Kernels& kernels) {
    ROOFLINE_ADD_MEMORY_LOOPS(sixteen, called, 16, always);
#if defined(__aarch64__)
    // A Neoverse-V1 has too few misses under way to read more than 35 GB/s by itself; asking ahead it reads 45. Four
    // places and 8 KiB are what it takes: 6 to 24 are as good, 4 are too late, one place and eight are slower.
    ROOFLINE_ADD_ASKING_LOOP(sixteen, called, 16, always, 4, 8192, 1);
#endif
#if defined(__x86_64__)
    ROOFLINE_ADD_STREAMING_LOOPS(sixteen, called, 16, always);
#endif
#if !(defined(__aarch64__) && defined(__linux__))  // neon.cpp has better ones
    kernels.flops.push_back({called, Engine::vector, DType::fp32, 96.0, std::uint64_t{1} << 20U, fp32, always});
    kernels.flops.push_back({called, Engine::vector, DType::fp64, 48.0, std::uint64_t{1} << 20U, fp64, always});
#endif
}

}  // namespace roofline::measure
