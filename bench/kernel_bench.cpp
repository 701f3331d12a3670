// Our own decode kernels against a loop that reads as many bytes, in turns on one thread: counters `kernel` and
// `reading` (GB/s, each the best of many short calls on weights or a cache that are cold) and `ratio`. Calls in turns
// meet the same moods of the machine, so the ratio can be had where it is not quiet.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include <benchmark/benchmark.h>

#include "roofline/bench/backend.hpp"

namespace {

using namespace roofline;
using namespace roofline::bench;

constexpr std::int64_t past_the_caches = 240 << 20;

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// At four places side by side, a line at a time, while what comes 8 KiB on is asked for into the cache that all share:
/// what a core reads fastest (measure/cpu/baseline.cpp). Places are an odd number of lines apart, so that they do not
/// push each other out of the first-level cache; a few bytes are left out at the end. Returns the bytes read.
std::size_t read_all(std::span<const std::byte> bytes) {
    using Words = std::uint64_t __attribute__((vector_size(16), aligned(16)));
    const std::size_t part = ((bytes.size() / 4 / 64 - 1) | 1U) * 64;
    Words sums[4] = {};
    for (std::size_t at = 0; at < part; at += 64) {
#pragma GCC unroll 4
        for (std::size_t place = 0; place < 4; ++place) {
            const std::byte* from = bytes.data() + place * part + at;
            __builtin_prefetch(from + 8192, 0, 1);
#pragma GCC unroll 4
            for (std::size_t i = 0; i < 4; ++i) sums[i] += reinterpret_cast<const Words*>(from)[i];
        }
    }
    benchmark::DoNotOptimize(sums[0] + sums[1] + sums[2] + sums[3]);
    return 4 * part;
}

void hold_against_reading(benchmark::State& state, const Task& task, double bytes) {
    const auto threads = Threads::start(1);
    auto operands = threads ? make_operands(task, past_the_caches, **threads) : std::unexpected(threads.error());
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
    double fastest_call = 1e9;
    double fastest_read = 1e9;  // of a byte
    std::size_t copy = 0;
    for (auto _ : state) {
        const double before = seconds_now();
        kernel->run(copy % copies);
        const double between = seconds_now();
        const std::size_t read = read_all(memory_of((copy + copies / 2) % copies));  // not what the caches still hold
        const double after = seconds_now();
        fastest_call = std::min(fastest_call, between - before);
        fastest_read = std::min(fastest_read, (after - between) / static_cast<double>(read));
        ++copy;
    }
    state.counters["kernel"] = bytes / fastest_call / 1e9;
    state.counters["reading"] = 1.0 / fastest_read / 1e9;
    state.counters["ratio"] = bytes * fastest_read / fastest_call;
}

void product(benchmark::State& state, DType type) {
    Task task;
    task.name = "product";
    task.kind = TaskKind::product;
    task.m = 1;
    task.n = state.range(0);
    task.k = state.range(1);
    task.weights = type;
    hold_against_reading(state, task, static_cast<double>(WeightMatrix::bytes(task.n, task.k, type)));
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
    hold_against_reading(state, task, 4.0 * static_cast<double>(task.kv_heads * task.head_dim * task.context));
}

BENCHMARK_CAPTURE(product, fp32, DType::fp32)->Args({4096, 4096});
BENCHMARK_CAPTURE(product, bf16, DType::bf16)->Args({28672, 4096})->Args({4096, 14336});
BENCHMARK_CAPTURE(product, int8, DType::int8)->Args({28672, 4096})->Args({4096, 14336});
BENCHMARK_CAPTURE(product, int4, DType::int4)
    ->Args({28672, 4096})
    ->Args({4096, 14336})
    ->Args({4096, 4096})
    ->Args({16384, 2048})
    ->Args({2048, 8192});
BENCHMARK(attention)->ArgNames({"queries", "head", "context"})->ArgsProduct({{1, 4, 8}, {64, 128}, {1024, 8192}});

}  // namespace
