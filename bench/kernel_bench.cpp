// Our own decode kernels against loops that read as many bytes, in turns, on one thread and on all: counters `kernel`
// and `reading` (GB/s, of the faster loop, each the median of many short calls on weights or a cache that are cold),
// `ratio`, and `best`, the ratio of the fastest calls. Calls in turns meet the same moods of the machine, so the ratio
// can be had where it is not quiet.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "roofline/bench/backend.hpp"

namespace {

using namespace roofline;
using namespace roofline::bench;

/// Three times the last cache, of which the system may report more than there is for us.
std::int64_t past_the_caches() {
    return std::max<std::int64_t>(240 << 20, 3 * std::int64_t{::sysconf(_SC_LEVEL3_CACHE_SIZE)});
}

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// At some places side by side, a line at a time, while what comes `ahead` bytes on is asked for into the cache that
/// all share. Places are an odd number of lines apart, so that they do not push each other out of the first-level
/// cache; a few bytes are left out at the end. Returns the bytes read.
template <std::size_t places, std::size_t ahead>
std::size_t read_all(std::span<const std::byte> bytes) {
    using Words = std::uint64_t __attribute__((vector_size(16), aligned(16)));
    if (bytes.size() < 2 * places * 64) return 0;  // what is left of a range
    const std::size_t part = ((bytes.size() / places / 64 - 1) | 1U) * 64;
    Words sums[4] = {};
    for (std::size_t at = 0; at < part; at += 64) {
#pragma GCC unroll 4
        for (std::size_t place = 0; place < places; ++place) {
            const std::byte* from = bytes.data() + place * part + at;
            if constexpr (ahead > 0) __builtin_prefetch(from + ahead, 0, 1);
#pragma GCC unroll 4
            for (std::size_t i = 0; i < 4; ++i) sums[i] += reinterpret_cast<const Words*>(from)[i];
        }
    }
    benchmark::DoNotOptimize(sums[0] + sums[1] + sums[2] + sums[3]);
    return places * part;
}
using Reading = std::size_t (*)(std::span<const std::byte>);
/// What cores read fastest with: a Neoverse V1 the first (measure/cpu/baseline.cpp), an N1 the second. Both take turns
/// with the kernel, and the faster one counts.
constexpr Reading readings[] = {read_all<4, 8192>, read_all<1, 0>, read_all<8, 1024>};

/// The same by all threads, in parts as kernels have them.
std::size_t read_by(Reading reading, std::span<const std::byte> bytes, Threads& threads) {
    constexpr std::size_t line = 64;
    std::atomic<std::size_t> read = 0;
    threads.ranges(
        static_cast<std::int64_t>(bytes.size() / line), 64,
        [&](std::int64_t first, std::int64_t last) {
            read += reading(
                bytes.subspan(static_cast<std::size_t>(first) * line, static_cast<std::size_t>(last - first) * line));
        },
        (std::int64_t{1} << 20) / (threads.count() * static_cast<std::int64_t>(line)));
    return read;
}

double median_of(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

void hold_against_reading(benchmark::State& state, const Task& task, double bytes, bool all_threads) {
    const auto threads = Threads::start(all_threads ? usable_processors() : 1);
    auto operands = threads ? make_operands(task, past_the_caches(), **threads) : std::unexpected(threads.error());
    if (!operands) return state.SkipWithError(operands.error().text.c_str());
    std::unique_ptr<Kernel> kernel;
    for (const auto& backend : cpu_backends()) {
        if (backend->name() != "own" || backend->refuses(task)) continue;
        if (auto made = backend->prepare(*operands, **threads)) kernel = std::move(*made);
    }
    if (kernel == nullptr) return state.SkipWithError("no kernel of our own");
    const auto memory_of = [&](std::size_t copy) -> std::span<const std::byte> {
        if (task.kind == TaskKind::attention)
            return {operands->keys[copy].data(), static_cast<std::size_t>(operands->keys[copy].bytes())};
        const Weights weights = operands->weights[copy].view();
        return {static_cast<const std::byte*>(weights.values),
                static_cast<std::size_t>(WeightMatrix::bytes(task.n, task.k, task.weights))};
    };
    const std::size_t copies = operands->copies();
    std::vector<double> calls;
    std::vector<double> reads[std::size(readings)];  // of a byte
    std::size_t copy = 0;
    for (auto _ : state) {
        // A core changes its clock for wide vectors and back, which takes tens of microseconds: a step does it once,
        // and not before every kernel, as here after the loops.
        kernel->run((copy + copies / 2) % copies);
        const double before = seconds_now();
        kernel->run(copy % copies);
        calls.push_back(seconds_now() - before);
        for (std::size_t i = 0; i < std::size(readings); ++i) {
            const std::size_t other = copy + (i + 1) * copies / (std::size(readings) + 1);  // not in a cache
            const double begin = seconds_now();
            const std::size_t read = read_by(readings[i], memory_of(other % copies), **threads);
            reads[i].push_back((seconds_now() - begin) / static_cast<double>(read));
        }
        ++copy;
    }
    const double call = median_of(calls);
    double byte = std::numeric_limits<double>::infinity();
    double least = byte;
    for (std::vector<double>& some : reads) {
        byte = std::min(byte, median_of(some));
        least = std::min(least, *std::ranges::min_element(some));
    }
    state.counters["kernel"] = bytes / call / 1e9;
    state.counters["reading"] = 1.0 / byte / 1e9;
    state.counters["ratio"] = bytes * byte / call;
    state.counters["best"] = bytes * least / *std::ranges::min_element(calls);
}

void product(benchmark::State& state, WeightFormat type) {
    Task task;
    task.name = "product";
    task.kind = TaskKind::product;
    task.m = state.range(0);
    task.n = state.range(1);
    task.k = state.range(2);
    task.weights = type;
    hold_against_reading(state, task, static_cast<double>(WeightMatrix::bytes(task.n, task.k, type)),
                         state.range(3) != 0);
}

void attention(benchmark::State& state) {
    Task task;
    task.name = "attention";
    task.kind = TaskKind::attention;
    task.batch = 1;
    task.tokens = 1;
    task.kv_heads = 8;
    task.query_heads = 8 * state.range(0);
    task.head_dim = state.range(1);
    task.context = state.range(2);
    task.kv = DType::bf16;
    hold_against_reading(state, task, 4.0 * static_cast<double>(task.kv_heads * task.head_dim * task.context),
                         state.range(3) != 0);
}

const std::vector<std::string> sizes = {"rows", "n", "k", "all threads"};
/// Gate-up and down of Llama 3.1 8B; output of it, gate-up and down of Llama 3.2 1B.
void shapes(benchmark::internal::Benchmark* bench, const std::vector<std::int64_t>& rows) {
    bench->ArgNames(sizes);
    for (const std::int64_t all : {0, 1}) {
        for (const std::int64_t m : rows) {
            for (const auto& [n, k] : std::vector<std::pair<std::int64_t, std::int64_t>>{
                     {28672, 4096}, {4096, 14336}, {4096, 4096}, {16384, 2048}, {2048, 8192}})
                bench->Args({m, n, k, all});
        }
    }
}
void one_row(benchmark::internal::Benchmark* bench) {
    shapes(bench, {1});
}
void few_rows(benchmark::internal::Benchmark* bench) {
    shapes(bench, {1, 2, 4, 8});
}

BENCHMARK_CAPTURE(product, fp32, WeightFormat::fp32)->Apply(one_row);
BENCHMARK_CAPTURE(product, bf16, WeightFormat::bf16)->Apply(few_rows);
BENCHMARK_CAPTURE(product, int8, WeightFormat::int8)->Apply(few_rows);
BENCHMARK_CAPTURE(product, int4, WeightFormat::int4)->Apply(few_rows);
BENCHMARK_CAPTURE(product, mxfp4, WeightFormat::mxfp4)->Apply(few_rows);
BENCHMARK_CAPTURE(product, nvfp4, WeightFormat::nvfp4)->Apply(few_rows);
BENCHMARK_CAPTURE(product, q4_0, WeightFormat::q4_0)->Apply(few_rows);
BENCHMARK_CAPTURE(product, q8_0, WeightFormat::q8_0)->Apply(few_rows);
BENCHMARK_CAPTURE(product, q4_k, WeightFormat::q4_k)->Apply(few_rows);
BENCHMARK_CAPTURE(product, q5_k, WeightFormat::q5_k)->Apply(few_rows);
BENCHMARK_CAPTURE(product, q6_k, WeightFormat::q6_k)->Apply(few_rows);
BENCHMARK_CAPTURE(product, fp8, WeightFormat::fp8)->Apply(few_rows);
BENCHMARK_CAPTURE(product, fp8_block, WeightFormat::fp8_block)->Apply(few_rows);
BENCHMARK(attention)
    ->ArgNames({"queries", "head", "context", "all threads"})
    ->ArgsProduct({{1, 4, 8}, {64, 128}, {1024, 8192}, {0, 1}});

}  // namespace
