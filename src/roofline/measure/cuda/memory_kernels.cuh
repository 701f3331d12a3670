// The kernels that read, copy, add and write device memory, and the checks of what they leave. Their flops and bytes
// stand beside them; which of them is the fastest is for memory.cu to find.
#pragma once

#include "roofline/measure/cuda/bulk.cuh"
#include "roofline/measure/cuda/ramp.cuh"

namespace roofline::probe {
namespace {

constexpr std::uint32_t pattern_mask = 4095;  // what `write` writes repeats every 16 KiB
constexpr float triad_factor = 3.0F;

// --- read: 16 bytes a load, no flops, `count` * 16 bytes

template <int Unroll>
__global__ void read_chunks(const uint4* data, std::size_t chunks, std::uint32_t* partial) {
    std::uint32_t sum = 0;
    for (std::size_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const uint4* from = data + chunk * blockDim.x * Unroll + threadIdx.x;
        uint4 loaded[Unroll];
#pragma unroll
        for (int i = 0; i < Unroll; ++i) loaded[i] = load_streaming(from + i * blockDim.x);
#pragma unroll
        for (int i = 0; i < Unroll; ++i) sum += sum_of(loaded[i]);
    }
    leave_sum(sum, partial);
}

template <int Stages, int StageBytes>
__global__ void read_bulk(const uint4* data, std::size_t tiles, std::uint32_t* partial) {
#ifdef ROOFLINE_HAS_BULK
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ std::uint64_t full[Stages];
    constexpr int each = StageBytes / 16;
    if (threadIdx.x == 0) {
        for (int i = 0; i < Stages; ++i) barrier_init(&full[i]);
        barrier_init_done();
    }
    __syncthreads();
    const std::size_t mine = blockIdx.x < tiles ? (tiles - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
    const auto load = [&](std::size_t k) {
        const std::size_t stage = k % Stages;
        bulk_load(shared + stage * StageBytes, data + (blockIdx.x + k * gridDim.x) * each, StageBytes, &full[stage]);
    };
    if (threadIdx.x == 0)
        for (std::size_t k = 0; k < Stages && k < mine; ++k) load(k);
    std::uint32_t sum = 0;
    for (std::size_t k = 0; k < mine; ++k) {
        const std::size_t stage = k % Stages;
        barrier_wait(&full[stage], (k / Stages) & 1);
        const uint4* tile = reinterpret_cast<const uint4*>(shared + stage * StageBytes);
#pragma unroll 4
        for (int i = threadIdx.x; i < each; i += blockDim.x) sum += sum_of(tile[i]);
        __syncthreads();  // all have read the tile before the next one lands on it
        if (threadIdx.x == 0 && k + Stages < mine) load(k + Stages);
    }
    leave_sum(sum, partial);
#endif
}

// --- copy: no flops, 2 * `count` * 16 bytes

template <int Unroll, bool Streaming>
__global__ void copy_chunks(const uint4* from, uint4* to, std::size_t chunks) {
    for (std::size_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const std::size_t at = chunk * blockDim.x * Unroll + threadIdx.x;
        uint4 loaded[Unroll];
#pragma unroll
        for (int i = 0; i < Unroll; ++i) loaded[i] = load_streaming(from + at + i * blockDim.x);
#pragma unroll
        for (int i = 0; i < Unroll; ++i) {
            if constexpr (Streaming)
                __stcs(to + at + i * blockDim.x, loaded[i]);
            else
                to[at + i * blockDim.x] = loaded[i];
        }
    }
}

/// One thread a block drives the engine in both directions.
template <int Stages, int StageBytes>
__global__ void copy_bulk(const uint4* from, uint4* to, std::size_t tiles) {
#ifdef ROOFLINE_HAS_BULK
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ std::uint64_t full[Stages];
    constexpr int each = StageBytes / 16;
    if (threadIdx.x != 0) return;
    for (int i = 0; i < Stages; ++i) barrier_init(&full[i]);
    barrier_init_done();
    const std::size_t mine = blockIdx.x < tiles ? (tiles - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
    const auto load = [&](std::size_t k) {
        const std::size_t stage = k % Stages;
        bulk_load(shared + stage * StageBytes, from + (blockIdx.x + k * gridDim.x) * each, StageBytes, &full[stage]);
    };
    for (std::size_t k = 0; k < Stages && k < mine; ++k) load(k);
    for (std::size_t k = 0; k < mine; ++k) {
        const std::size_t stage = k % Stages;
        barrier_wait(&full[stage], (k / Stages) & 1);
        bulk_store(to + (blockIdx.x + k * gridDim.x) * each, shared + stage * StageBytes, StageBytes);
        bulk_stores_have_read<1>();  // the store before this one, whose stage can be filled again
        if (k > 0 && k - 1 + Stages < mine) load(k - 1 + Stages);
    }
    bulk_stores_done();
#endif
}

// --- triad a = b + 3 c in fp32: 2 flops and 12 bytes a number, so 8 flops and 48 bytes for each 16-byte store

template <int Unroll, bool Streaming>
__global__ void triad_chunks(const uint4* b, const uint4* c, float4* a, std::size_t chunks) {
    for (std::size_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const std::size_t at = chunk * blockDim.x * Unroll + threadIdx.x;
        uint4 left[Unroll];
        uint4 right[Unroll];
#pragma unroll
        for (int i = 0; i < Unroll; ++i) {
            left[i] = load_streaming(b + at + i * blockDim.x);
            right[i] = load_streaming(c + at + i * blockDim.x);
        }
#pragma unroll
        for (int i = 0; i < Unroll; ++i) {
            const auto add = [](std::uint32_t x, std::uint32_t y) {
                return __fmaf_rn(triad_factor, __uint_as_float(y), __uint_as_float(x));
            };
            const float4 sum = make_float4(add(left[i].x, right[i].x), add(left[i].y, right[i].y),
                                           add(left[i].z, right[i].z), add(left[i].w, right[i].w));
            if constexpr (Streaming)
                __stcs(a + at + i * blockDim.x, sum);
            else
                a[at + i * blockDim.x] = sum;
        }
    }
}

// --- write: no flops, `count` * 16 bytes

__device__ std::uint32_t pattern(std::size_t word, std::uint32_t mask, std::uint32_t seed) {
    return (static_cast<std::uint32_t>(word) & mask) * ramp_step + seed;
}

template <int Unroll, bool Streaming>
__global__ void write_chunks(uint4* to, std::size_t chunks, std::uint32_t seed) {
    for (std::size_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
#pragma unroll
        for (int i = 0; i < Unroll; ++i) {
            const std::size_t at = (chunk * Unroll + i) * blockDim.x + threadIdx.x;
            const uint4 value =
                make_uint4(pattern(4 * at, pattern_mask, seed), pattern(4 * at + 1, pattern_mask, seed),
                           pattern(4 * at + 2, pattern_mask, seed), pattern(4 * at + 3, pattern_mask, seed));
            if constexpr (Streaming)
                __stcs(to + at, value);
            else
                to[at] = value;
        }
    }
}

template <int StageBytes>
__global__ void write_bulk(uint4* to, std::size_t tiles, std::uint32_t seed) {
#ifdef ROOFLINE_HAS_BULK
    extern __shared__ __align__(128) unsigned char shared[];
    constexpr int each = StageBytes / 16;
    auto* words = reinterpret_cast<std::uint32_t*>(shared);
    for (std::size_t i = threadIdx.x; i < StageBytes / 4; i += blockDim.x) words[i] = pattern(i, pattern_mask, seed);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (std::size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        bulk_store(to + tile * each, shared, StageBytes);
        bulk_stores_have_read<4>();
    }
    bulk_stores_done();
#endif
}

// --- checks, over every word

struct Ramp {
    __device__ bool operator()(std::size_t i, std::uint32_t word) const {
        return word == static_cast<std::uint32_t>(i) * ramp_step;
    }
};
struct Pattern {
    std::uint32_t mask;
    std::uint32_t seed;
    __device__ bool operator()(std::size_t i, std::uint32_t word) const { return word == pattern(i, mask, seed); }
};
__device__ float left_of(std::size_t i) {
    return static_cast<float>(i & 1023);
}
__device__ float right_of(std::size_t i) {
    return static_cast<float>((i * 7) & 511);
}
struct Triad {  // small whole numbers: exact in fp32
    __device__ bool operator()(std::size_t i, std::uint32_t word) const {
        return __uint_as_float(word) == left_of(i) + triad_factor * right_of(i);
    }
};

__global__ void fill_operands(float* b, float* c, std::size_t count) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < count; i += stride) {
        b[i] = left_of(i);
        c[i] = right_of(i);
    }
}

template <class Right>
__global__ void count_wrong(const std::uint32_t* words, std::size_t count, Right right, unsigned long long* wrong) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    unsigned long long mine = 0;
    for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < count; i += stride)
        if (!right(i, words[i])) ++mine;
    if (mine > 0) atomicAdd(wrong, mine);
}

}  // namespace
}  // namespace roofline::probe
