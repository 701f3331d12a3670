// What `measure` finds against the best loop we can write by hand, in one run on the same processor: counters `found`,
// `by_hand` (GFLOP/s or GB/s) and their ratio. The loops here are written apart from those of the room: nothing but
// instructions, no check of the answer.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <vector>

#include <benchmark/benchmark.h>

#include "roofline/measure/cpu_device.hpp"
#include "roofline/measure/tile_registers.hpp"

namespace {

using namespace roofline;

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The fastest of many windows of about two milliseconds.
template <class Loop>
double best_rate(const Loop& loop) {
    double best = 0.0;
    std::uint64_t units = 1;
    for (int window = 0; window < 300; ++window) {
        const double start = seconds_now();
        const double work = loop(units);
        const double taken = seconds_now() - start;
        if (work == 0.0) return 0.0;
        if (taken < 0.001) {
            units *= 2;
            continue;
        }
        best = std::max(best, work / taken);
    }
    return best;
}

#if defined(__x86_64__)
// Into fourteen sums, each of which waits for nothing but itself. Nothing else here uses these registers.
#define ROOFLINE_SUMS(instruction)                                                   \
    ".irp sum, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29\n" instruction \
    " %%zmm30, %%zmm31, %%zmm\\sum\n"                                                \
    ".endr\n"
constexpr double sums = 14.0;

// Bytes without VNNI: products in pairs, pairs of these, and the sum; twelve sums.
#define ROOFLINE_PAIRS(wide, first, operands, pairs, ones)                                            \
    ".irp sum, " first "\n vpmaddubsw " operands ", " pairs "\n vpmaddwd " ones ", " pairs ", " pairs \
    "\n vpaddd " pairs ", " wide "\\sum, " wide "\\sum\n.endr\n"
constexpr double pair_sums = 12.0;

double int8_in_pairs(std::uint64_t trips) {
    if (__builtin_cpu_supports("avx512bw")) {
        for (std::uint64_t i = 0; i < trips; ++i)
            asm volatile(ROOFLINE_PAIRS("%%zmm", "16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27", "%%zmm30, %%zmm31",
                                        "%%zmm28", "%%zmm29")
                         :
                         :
                         :);
        return static_cast<double>(trips) * pair_sums * 128.0;
    }
    if (!__builtin_cpu_supports("avx2")) return 0.0;
    for (std::uint64_t i = 0; i < trips; ++i)
        asm volatile(
            ROOFLINE_PAIRS("%%ymm", "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11", "%%ymm14, %%ymm15", "%%ymm12", "%%ymm13")
            :
            :
            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
              "xmm12");
    return static_cast<double>(trips) * pair_sums * 64.0;
}

double int8_dots(std::uint64_t trips) {
    if (!__builtin_cpu_supports("avx512vnni")) return int8_in_pairs(trips);
    for (std::uint64_t i = 0; i < trips; ++i) asm volatile(ROOFLINE_SUMS("vpdpbusd") : : :);
    return static_cast<double>(trips) * sums * 128.0;
}

double bf16_dots(std::uint64_t trips) {
    if (!__builtin_cpu_supports("avx512bf16")) return 0.0;
    for (std::uint64_t i = 0; i < trips; ++i) asm volatile(ROOFLINE_SUMS("vdpbf16ps") : : :);
    return static_cast<double>(trips) * sums * 64.0;
}

// Four tiles of sums, each of 16 x 16, and two pairs of operands.
#define ROOFLINE_FOUR_TILES(instruction)                                                        \
    instruction " %%tmm6, %%tmm4, %%tmm0\n" instruction " %%tmm7, %%tmm4, %%tmm1\n" instruction \
                " %%tmm6, %%tmm5, %%tmm2\n" instruction " %%tmm7, %%tmm5, %%tmm3\n"

/// Of ones: by zeros a processor multiplies 18% faster, because it then draws less power and runs at a higher clock.
template <class Products>
double tile_rate(std::uint16_t one, const Products& products) {
    const std::vector<std::uint16_t> ones(512, one);
    measure::configure(measure::TileConfig{});
    asm volatile(
        "tilezero %%tmm0\n tilezero %%tmm1\n tilezero %%tmm2\n tilezero %%tmm3\n"
        "tileloadd (%0, %1), %%tmm4\n tileloadd (%0, %1), %%tmm5\n"
        "tileloadd (%0, %1), %%tmm6\n tileloadd (%0, %1), %%tmm7\n"
        :
        : "r"(ones.data()), "r"(std::int64_t{64})
        : "memory");
    const double rate = best_rate(products);
    asm volatile("tilerelease");
    return rate;
}
#endif

/// Multiply-adds in fp32 and nothing else; returns FLOPs.
double multiply_adds(std::uint64_t trips) {
#if defined(__aarch64__)
    for (std::uint64_t i = 0; i < trips; ++i) {
        asm volatile(
            "fmla v0.4s, v30.4s, v31.4s\n fmla v1.4s, v30.4s, v31.4s\n fmla v2.4s, v30.4s, v31.4s\n"
            "fmla v3.4s, v30.4s, v31.4s\n fmla v4.4s, v30.4s, v31.4s\n fmla v5.4s, v30.4s, v31.4s\n"
            "fmla v6.4s, v30.4s, v31.4s\n fmla v7.4s, v30.4s, v31.4s\n fmla v16.4s, v30.4s, v31.4s\n"
            "fmla v17.4s, v30.4s, v31.4s\n fmla v18.4s, v30.4s, v31.4s\n fmla v19.4s, v30.4s, v31.4s\n"
            "fmla v20.4s, v30.4s, v31.4s\n fmla v21.4s, v30.4s, v31.4s\n fmla v22.4s, v30.4s, v31.4s\n"
            "fmla v23.4s, v30.4s, v31.4s\n"
            :
            :
            : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23");
    }
    return static_cast<double>(trips) * 16.0 * 8.0;
#elif defined(__x86_64__)
    if (!__builtin_cpu_supports("avx512f")) return 0.0;
    for (std::uint64_t i = 0; i < trips; ++i) asm volatile(ROOFLINE_SUMS("vfmadd231ps") : : :);
    return static_cast<double>(trips) * sums * 32.0;
#else
    (void)trips;
    return 0.0;
#endif
}

/// Loads and nothing else; returns bytes.
double loads(const std::byte* memory, std::size_t bytes, std::uint64_t passes) {
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
        for (std::size_t at = 0; at < bytes; at += 512) {
            const std::byte* from = memory + at;
#if defined(__aarch64__)
            asm volatile(
                "ldp q0, q1, [%0]\n ldp q2, q3, [%0, #32]\n ldp q4, q5, [%0, #64]\n ldp q6, q7, [%0, #96]\n"
                "ldp q16, q17, [%0, #128]\n ldp q18, q19, [%0, #160]\n ldp q20, q21, [%0, #192]\n"
                "ldp q22, q23, [%0, #224]\n ldp q0, q1, [%0, #256]\n ldp q2, q3, [%0, #288]\n"
                "ldp q4, q5, [%0, #320]\n ldp q6, q7, [%0, #352]\n ldp q16, q17, [%0, #384]\n"
                "ldp q18, q19, [%0, #416]\n ldp q20, q21, [%0, #448]\n ldp q22, q23, [%0, #480]\n"
                :
                : "r"(from)
                : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22",
                  "v23", "memory");
#elif defined(__x86_64__)
            if (!__builtin_cpu_supports("avx512f")) return 0.0;
            asm volatile(
                "vmovaps (%0), %%zmm16\n vmovaps 64(%0), %%zmm17\n vmovaps 128(%0), %%zmm18\n"
                "vmovaps 192(%0), %%zmm19\n vmovaps 256(%0), %%zmm20\n vmovaps 320(%0), %%zmm21\n"
                "vmovaps 384(%0), %%zmm22\n vmovaps 448(%0), %%zmm23\n"
                :
                : "r"(from)
                : "memory");
#else
            benchmark::DoNotOptimize(from);
            return 0.0;
#endif
        }
    }
    return static_cast<double>(bytes) * static_cast<double>(passes);
}

/// Loads from several places of a large array in turn: a core fetches more that way, and more still where it asks for
/// what comes 8 KiB on into the cache that all share.
double loads_apart(const std::byte* memory, std::size_t bytes, std::size_t streams, bool asking, std::uint64_t passes) {
    const std::size_t part = bytes / streams / 512 * 512;
    double done = 0.0;
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
        for (std::size_t at = 0; at < part; at += 512) {
            for (std::size_t stream = 0; stream < streams; ++stream) {
                const std::byte* from = memory + stream * part + at;
                for (std::size_t line = 0; asking && line < 512; line += 64)
                    __builtin_prefetch(from + 8192 + line, 0, 1);
                done += loads(from, 512, 1);
            }
        }
    }
    return done;
}

/// What `measure` says of one figure on one thread.
double found(const std::string& figure) {
    measure::CpuOptions options;
    options.threads = 1;
    options.only = {figure};
    options.seconds = 4.0;
    const auto measured = measure::measure_cpu(options);
    if (!measured) return 0.0;
    for (const measure::Found& one : measured->found) {
        if (one.name == figure) return one.value;
    }
    return 0.0;
}

void compare(benchmark::State& state, const std::string& figure, double (*by_hand)()) {
    for (auto _ : state) {
        const double ours = found(figure);
        const double theirs = by_hand();
        if (ours <= 0.0 || theirs <= 0.0) {
            state.SkipWithError("no loop written by hand for this machine");
            return;
        }
        state.counters["found_G"] = ours / 1e9;
        state.counters["by_hand_G"] = theirs / 1e9;
        state.counters["ratio"] = ours / theirs;
    }
}

double fp32_by_hand() {
    return best_rate(multiply_adds);
}

#if defined(__x86_64__)
double tile_bf16_by_hand() {
    if (!measure::has_tile_products_bf16()) return 0.0;
    return tile_rate(0x3F80, [](std::uint64_t trips) {
        for (std::uint64_t i = 0; i < trips; ++i) asm volatile(ROOFLINE_FOUR_TILES("tdpbf16ps") : : :);
        return static_cast<double>(trips) * 4.0 * 16.0 * 16.0 * 32.0 * 2.0;
    });
}

double tile_int8_by_hand() {
    if (!measure::has_tile_products_int8()) return 0.0;
    return tile_rate(0x0101, [](std::uint64_t trips) {
        for (std::uint64_t i = 0; i < trips; ++i) asm volatile(ROOFLINE_FOUR_TILES("tdpbssd") : : :);
        return static_cast<double>(trips) * 4.0 * 16.0 * 16.0 * 64.0 * 2.0;
    });
}
#endif

double read_by_hand(std::size_t bytes) {
    const std::unique_ptr<std::byte[], void (*)(std::byte*)> memory(
        static_cast<std::byte*>(std::aligned_alloc(4096, bytes)), [](std::byte* block) { std::free(block); });
    std::memset(memory.get(), 1, bytes);
    return best_rate([&](std::uint64_t units) { return loads(memory.get(), bytes, units); });
}

/// One place, two and four, with and without asking ahead; 16 MiB at a time through all of it.
double memory_by_hand() {
    constexpr std::size_t bytes = std::size_t{512} << 20U;
    constexpr std::size_t piece = std::size_t{16} << 20U;
    const std::unique_ptr<std::byte[], void (*)(std::byte*)> memory(
        static_cast<std::byte*>(std::aligned_alloc(std::size_t{2} << 20U, bytes)),
        [](std::byte* block) { std::free(block); });
#if defined(MADV_HUGEPAGE)
    ::madvise(memory.get(), bytes, MADV_HUGEPAGE);
#endif
    std::memset(memory.get(), 1, bytes);
    double best = 0.0;
    std::size_t at = 0;
    for (int round = 0; round < 100; ++round) {
        for (const std::size_t streams : {1, 2, 4}) {
            for (const bool asking : {false, true}) {
                const double start = seconds_now();
                const double work = loads_apart(memory.get() + at, piece, streams, asking, 1);
                if (work == 0.0) return 0.0;
                best = std::max(best, work / (seconds_now() - start));
                at = (at + piece) % bytes;
            }
        }
    }
    return best;
}

BENCHMARK_CAPTURE(compare, fp32, "vector.fp32", fp32_by_hand)->Iterations(1)->Unit(benchmark::kSecond);
#if defined(__x86_64__)
BENCHMARK_CAPTURE(compare, int8, "vector.int8", [] { return best_rate(int8_dots); })
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(compare, bf16, "vector.bf16", [] { return best_rate(bf16_dots); })
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(compare, tile_bf16, "matrix.bf16", tile_bf16_by_hand)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(compare, tile_int8, "matrix.int8", tile_int8_by_hand)->Iterations(1)->Unit(benchmark::kSecond);
#endif
BENCHMARK_CAPTURE(compare, l1_read, "l1.read", [] { return read_by_hand(16 * 1024); })
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
// Well inside the second and third level of the machines we know.
BENCHMARK_CAPTURE(compare, l2_read, "l2.read", [] { return read_by_hand(400 * 1024); })
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(compare, l3_read, "l3.read", [] { return read_by_hand(std::size_t{6} << 20U); })
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(compare, memory_read, "memory.read", memory_by_hand)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
