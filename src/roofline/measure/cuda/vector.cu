// The plain multiply-add units: chains x = x * a + b in registers, enough of them side by side that no instruction
// waits for another. Flops: 2 for each multiply-add, 4 where an instruction does two. No bytes.
#include <cmath>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "roofline/measure/cuda/frame.cuh"

namespace roofline::probe {
namespace {

constexpr int threads = 256;
constexpr int unroll = 8;  // of the loop; the chains are a parameter

// One type of number a struct: what a chain starts with, how it goes on, and the same on the host.
struct Fp32 {
    using Value = float;
    static constexpr const char* name = "vector.fp32";
    static constexpr double lanes = 1.0;
    static __host__ __device__ Value make(float value) { return value; }
    static __device__ Value step(Value x, Value a, Value b) { return __fmaf_rn(x, a, b); }
    static double host_step(double x, double a, double b) {
        return std::fma(static_cast<float>(x), static_cast<float>(a), static_cast<float>(b));
    }
    static double read(Value value) { return value; }
};

struct Fp64 {
    using Value = double;
    static constexpr const char* name = "vector.fp64";
    static constexpr double lanes = 1.0;
    static __host__ __device__ Value make(float value) { return static_cast<double>(value); }
    static __device__ Value step(Value x, Value a, Value b) { return __fma_rn(x, a, b); }
    static double host_step(double x, double a, double b) { return std::fma(x, a, b); }
    static double read(Value value) { return value; }
};

struct Fp16 {
    using Value = __half2;
    static constexpr const char* name = "vector.fp16";
    static constexpr double lanes = 2.0;
    static __host__ __device__ Value make(float value) { return __float2half2_rn(value); }
    static __device__ Value step(Value x, Value a, Value b) { return __hfma2(x, a, b); }
    // Products of two halves near one, and their sums, are exact in double; one rounding remains.
    static double host_step(double x, double a, double b) {
        return static_cast<double>(__half2float(__double2half(x * a + b)));
    }
    static double read(Value value) { return static_cast<double>(__low2float(value)); }
};

struct Bf16 {
    using Value = __nv_bfloat162;
    static constexpr const char* name = "vector.bf16";
    static constexpr double lanes = 2.0;
    static __host__ __device__ Value make(float value) { return __float2bfloat162_rn(value); }
    static __device__ Value step(Value x, Value a, Value b) { return __hfma2(x, a, b); }
    static double host_step(double x, double a, double b) {
        return static_cast<double>(__bfloat162float(__double2bfloat16(x * a + b)));
    }
    static double read(Value value) { return static_cast<double>(__low2float(value)); }
};

// Exact in every type here. A chain swings ever closer around b / (1 - a), by 1/256 a step: hundreds of steps differ
// from one another, and none reaches infinity, zero or a denormal.
constexpr float factor = -0.99609375F;
constexpr float addend = 1.75F;
__host__ __device__ inline float start(int thread, int chain) {
    return 1.0F + static_cast<float>((thread * 7 + chain * 3) % 64) / 64.0F;
}

/// rounds * unroll * Chains multiply-adds a thread.
template <class Type, int Chains>
__global__ void __launch_bounds__(threads)
    multiply_add(int rounds, typename Type::Value a, typename Type::Value b, typename Type::Value* out) {
    typename Type::Value x[Chains];
#pragma unroll
    for (int i = 0; i < Chains; ++i) x[i] = Type::make(start(static_cast<int>(threadIdx.x), i));
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int j = 0; j < unroll; ++j) {
#pragma unroll
            for (int i = 0; i < Chains; ++i) x[i] = Type::step(x[i], a, b);
        }
    }
    // Every chain is stored, so that none can be left out.
    const std::size_t at = (blockIdx.x * static_cast<std::size_t>(threads) + threadIdx.x) * Chains;
#pragma unroll
    for (int i = 0; i < Chains; ++i) out[at + i] = x[i];
}

template <class Type, int Chains>
void try_chains(const Chip& chip, int per_multiprocessor, Json& best, Json& rates) {
    const int grid = chip.multiprocessors * per_multiprocessor;
    const int rounds = Type::lanes == 1.0 && sizeof(typename Type::Value) == 8 ? 2048 : 4096;
    const std::size_t values = static_cast<std::size_t>(grid) * threads * Chains;
    Stream stream;
    Buffer out(values * sizeof(typename Type::Value));
    const auto launch = [&] {
        multiply_add<Type, Chains><<<grid, threads, 0, stream>>>(rounds, Type::make(factor), Type::make(addend),
                                                                 out.as<typename Type::Value>());
    };
    // Few steps, whose count shows in the result, and then as many as are timed.
    for (const int checked_rounds : {16, rounds}) {
        check(cudaMemsetAsync(out.data(), 0xff, out.bytes(), stream), "cudaMemset");  // NaN in every type
        multiply_add<Type, Chains><<<grid, threads, 0, stream>>>(checked_rounds, Type::make(factor), Type::make(addend),
                                                                 out.as<typename Type::Value>());
        check_launch("multiply-adds");
        std::vector<typename Type::Value> ended(values);
        check(cudaMemcpyAsync(ended.data(), out.data(), out.bytes(), cudaMemcpyDeviceToHost, stream), "cudaMemcpy");
        stream.wait();
        for (int thread = 5; thread < threads; thread += 125) {
            for (int chain = 0; chain < Chains; ++chain) {
                double x = start(thread, chain);
                for (int i = 0; i < checked_rounds * unroll; ++i) x = Type::host_step(x, factor, addend);
                for (int block = 0; block < grid; block += grid - 1) {
                    const std::size_t at = (static_cast<std::size_t>(block) * threads + thread) * Chains + chain;
                    if (Type::read(ended[at]) != x) throw Refused("multiply-adds gave a wrong answer");
                }
            }
        }
    }
    const double flops = 2.0 * Type::lanes * unroll * rounds * static_cast<double>(values);
    const Spread time = spread_of(time_each(stream, 2, chip.quick ? 10 : 20, launch));
    const std::string how =
        std::to_string(Chains) + " chains a thread, " + std::to_string(per_multiprocessor * threads) + " threads an SM";
    rates[how] = flops / time.median;
    if (best.is_null() || flops / time.median > best.value("value", 0.0)) {
        best = rate_figure(Type::name, "FLOP/s", flops, time, how);
        best["flops"] = flops;
        best["error"] = 0.0;
        best["tolerance"] = 0.0;
    }
}

template <class Type>
void probe_type(const Chip& chip, Found& found) {
    if (!chip.wants(Type::name)) return;
    try {
        Json best;
        Json rates = Json::object();
        try_chains<Type, 4>(chip, 8, best, rates);
        try_chains<Type, 8>(chip, 4, best, rates);
        try_chains<Type, 8>(chip, 8, best, rates);
        try_chains<Type, 16>(chip, 4, best, rates);
        best["variants"] = rates;
        found.figures.push_back(std::move(best));
    } catch (const Refused& why) {
        found.refuse(Type::name, why.what());
    }
}

void probe_vector(const Chip& chip, Found& found) {
    chip.say("multiply-adds");
    probe_type<Fp64>(chip, found);
    probe_type<Fp32>(chip, found);
    probe_type<Fp16>(chip, found);
    probe_type<Bf16>(chip, found);
}

const Registered registered({40, "vector", probe_vector});

}  // namespace
}  // namespace roofline::probe
