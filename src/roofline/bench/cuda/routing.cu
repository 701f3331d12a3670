// The kernels of routing.cuh.
#include <cuda_bf16.h>

#include "roofline/bench/cuda/eights.cuh"
#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/launch.cuh"
#include "roofline/bench/cuda/routing.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr int route_warps = 32;  // rows of a block
constexpr int lane_experts = most_experts / 32;

/// A score and its expert in one number that is larger for a higher score, and of equal ones for the first.
__device__ std::uint32_t key_of(std::uint32_t score_bits, int expert) {
    const std::uint32_t ordered = (score_bits & 0x8000u) != 0 ? ~score_bits & 0xFFFFu : score_bits | 0x8000u;
    return ordered << 16 | (0xFFFFu - static_cast<std::uint32_t>(expert));
}

__device__ int expert_of(std::uint32_t key) {
    return static_cast<int>(0xFFFFu - (key & 0xFFFFu));
}

__device__ float score_of(std::uint32_t key) {
    const std::uint32_t ordered = key >> 16;
    return __uint_as_float(((ordered & 0x8000u) != 0 ? ordered & 0x7FFFu : ~ordered & 0xFFFFu) << 16);
}

/// Of the first warp: where each expert's rows begin, and its panels, by `count_of` its rows.
template <class CountOf>
__device__ void divide(const Routing& routing, const CountOf& count_of, int* begins) {
    const int lane = static_cast<int>(threadIdx.x);
    const int each = (routing.experts + 31) / 32;
    int rows = 0;
    int panels = 0;
    const auto panels_of_rows = [&](int count) { return (count + routing.panel_rows - 1) / routing.panel_rows; };
    for (int i = 0; i < each; ++i) {
        const int expert = lane * each + i;
        const int count = expert < routing.experts ? count_of(expert) : 0;
        rows += count;
        panels += panels_of_rows(count);
    }
    int place = rows;
    int panel = panels;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        const int rows_before = __shfl_up_sync(~0u, place, offset);
        const int panels_before = __shfl_up_sync(~0u, panel, offset);
        if (lane >= offset) place += rows_before, panel += panels_before;
    }
    if (lane == 31) *routing.panel_count = panel;
    place -= rows;
    panel -= panels;
    for (int i = 0; i < each; ++i) {
        const int expert = lane * each + i;
        if (expert >= routing.experts) break;
        const int count = count_of(expert);
        begins[expert] = place;
        for (int first = 0; first < count; first += routing.panel_rows) {
            routing.panels[panel++] = {expert, place + first, min(routing.panel_rows, count - first)};
        }
        place += count;
    }
}

/// A warp chooses for a row. Where one block has all rows it counts in shared memory; else blocks count in the L2, and
/// the last one to come divides.
__global__ __launch_bounds__(route_warps * 32) void route_kernel(Routing routing, const std::uint16_t* scores) {
    __shared__ int own_counts[most_experts];
    __shared__ int own_choices[route_warps * most_chosen];
    __shared__ int own_order[route_warps * most_chosen];
    __shared__ int begins[most_experts];
    __shared__ bool last;
    const bool alone = gridDim.x == 1;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int row = static_cast<int>(blockIdx.x) * route_warps + warp;
    for (int i = static_cast<int>(threadIdx.x); i < routing.experts; i += route_warps * 32) own_counts[i] = 0;
    __syncthreads();
    let_next_start();
    wait_for_previous();

    if (row < routing.rows) {
        std::uint32_t keys[lane_experts];
#pragma unroll
        for (int i = 0; i < lane_experts; ++i) {
            const int expert = lane + 32 * i;
            keys[i] = expert < routing.experts
                          ? key_of(scores[static_cast<std::size_t>(row) * static_cast<std::size_t>(routing.experts) +
                                          static_cast<std::size_t>(expert)],
                                   expert)
                          : 0;
        }
        std::uint32_t mine = 0;  // of the choices: the one of the lane's number
        for (int i = 0; i < routing.chosen; ++i) {
            std::uint32_t best = 0;
#pragma unroll
            for (int j = 0; j < lane_experts; ++j) best = max(best, keys[j]);
            best = __reduce_max_sync(~0u, best);
#pragma unroll
            for (int j = 0; j < lane_experts; ++j) {
                if (keys[j] == best) keys[j] = 0;
            }
            if (lane == i) mine = best;
        }
        const float highest = score_of(__shfl_sync(~0u, mine, 0));
        float share = lane < routing.chosen ? __expf(score_of(mine) - highest) : 0.0f;
        float total = share;
#pragma unroll
        for (int offset = 16; offset > 0; offset /= 2) total += __shfl_xor_sync(~0u, total, offset);
        share /= total;
        if (lane < routing.chosen) {
            const int expert = expert_of(mine);
            const int at = row * routing.chosen + lane;
            const int order = atomicAdd((alone ? own_counts : routing.counters) + expert, 1);
            routing.choices[at] = expert;
            routing.shares[at] = share;
            if (alone) {
                own_choices[at] = expert;
                own_order[at] = order;
            } else {
                routing.places[at] = order;
            }
        }
    }
    if (alone) {
        __syncthreads();
    } else {
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) {
            last = atomicAdd(routing.counters + routing.experts, 1) == static_cast<int>(gridDim.x) - 1;
        }
        __syncthreads();
        if (!last) return;
        __threadfence();
    }
    if (warp == 0) {
        divide(routing, [&](int i) { return alone ? own_counts[i] : __ldcg(routing.counters + i); }, begins);
    }
    __syncthreads();
    const int places = routing.rows * routing.chosen;
    for (int at = static_cast<int>(threadIdx.x); at < places; at += route_warps * 32) {
        const int expert = alone ? own_choices[at] : __ldcg(routing.choices + at);
        const int place = begins[expert] + (alone ? own_order[at] : __ldcg(routing.places + at));
        routing.places[at] = place;
        routing.rows_at[place] = at / routing.chosen;
    }
    if (!alone) {
        for (int i = static_cast<int>(threadIdx.x); i <= routing.experts; i += route_warps * 32) {
            routing.counters[i] = 0;
        }
    }
}

__global__ void combine_kernel(void* to, const void* results, const int* places, const float* shares, int chosen,
                               int pieces, std::size_t total) {
    let_next_start();
    wait_for_previous();
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= total) return;
    const std::size_t row = index / pieces;
    Eight sum = {};
    for (int i = 0; i < chosen; ++i) {
        const std::size_t at = row * chosen + i;
        const Eight part = read(results, static_cast<std::size_t>(places[at]) * pieces + index % pieces);
        const float share = shares[at];
#pragma unroll
        for (int j = 0; j < 8; ++j) sum.v[j] += share * part.v[j];
    }
    write(to, index, sum);
}

}  // namespace

void route(const Routing& routing, const void* scores, Launch launch) {
    const int blocks = (routing.rows + route_warps - 1) / route_warps;
    start(&route_kernel, dim3(static_cast<unsigned>(blocks)), route_warps * 32, 0, launch.overlap, launch.stream,
          routing, static_cast<const std::uint16_t*>(scores));
}

void combine(void* to, const void* results, const Routing& routing, int width, Launch launch) {
    constexpr int threads = 256;
    const std::size_t total = product_of({routing.rows, width / 8});
    start(&combine_kernel, dim3(static_cast<unsigned>((total + threads - 1) / threads)), threads, 0, launch.overlap,
          launch.stream, to, results, static_cast<const int*>(routing.places),
          static_cast<const float*>(routing.shares), routing.chosen, width / 8, total);
}

RoutingMemory::RoutingMemory(int rows, int experts, int chosen, int layers, cudaStream_t stream) {
    if (experts > most_experts || chosen > most_chosen || chosen > experts) {
        throw Failure{"our routing takes up to " + std::to_string(most_experts) + " experts of which a row chooses " +
                      std::to_string(most_chosen) + " at most, not " + std::to_string(chosen) + " of " +
                      std::to_string(experts)};
    }
    sizes_.rows = rows;
    sizes_.experts = experts;
    sizes_.chosen = chosen;
    const std::size_t places = product_of({rows, chosen});
    choices_ = Memory(places * static_cast<std::size_t>(layers) * sizeof(int));
    shares_ = Memory(places * sizeof(float));
    places_ = Memory(places * sizeof(int));
    rows_at_ = Memory(places * sizeof(int));
    panels_ = Memory(places * sizeof(Panel));
    counters_ = Memory(static_cast<std::size_t>(experts + 2) * sizeof(int));
    must(cudaMemsetAsync(counters_.at(), 0, counters_.bytes(), stream), "counters");
}

Routing RoutingMemory::of(int layer, int panel_rows) const {
    Routing routing = sizes_;
    routing.panel_rows = panel_rows;
    routing.choices = choices_.at<int>() + product_of({layer, routing.rows, routing.chosen});
    routing.shares = shares_.at<float>();
    routing.places = places_.at<int>();
    routing.rows_at = rows_at_.at<int>();
    routing.panels = panels_.at<Panel>();
    routing.counters = counters_.at<int>();
    routing.panel_count = routing.counters + routing.experts + 1;
    return routing;
}

}  // namespace roofline::cuda::kernels
