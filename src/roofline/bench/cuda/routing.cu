// The kernels of routing.cuh.
#include <algorithm>

#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/launch.cuh"
#include "roofline/bench/cuda/product_kernel.cuh"
#include "roofline/bench/cuda/routing.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr int route_warps = 32;  // rows of a block

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

/// The sum of two bf16.
__device__ std::uint32_t biased(std::uint32_t score_bits, std::uint32_t bias_bits) {
    const float sum = __uint_as_float(score_bits << 16) + __uint_as_float(bias_bits << 16);
    return __bfloat16_as_ushort(__float2bfloat16_rn(sum));
}

/// Of the first warp: where each expert's rows begin, and its panels, by `count_of` its rows.
template <class CountOf>
__device__ void divide(const Routing& routing, const CountOf& count_of, int* begins) {
    constexpr int most = most_experts / 32;
    const int lane = static_cast<int>(threadIdx.x);
    const int each = (routing.experts + 31) / 32;
    // All are asked for before the first is used.
    int counts[most];
#pragma unroll
    for (int i = 0; i < most; ++i) {
        const int expert = lane * each + i;
        const int count = count_of(min(expert, routing.experts - 1));
        counts[i] = i < each && expert < routing.experts ? count : 0;
    }
    int rows = 0;
    int panels = 0;
    const auto panels_of_rows = [&](int count) { return (count + routing.panel_rows - 1) / routing.panel_rows; };
#pragma unroll
    for (int i = 0; i < most; ++i) {
        if (i >= each) break;
        rows += counts[i];
        panels += panels_of_rows(counts[i]);
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
#pragma unroll
    for (int i = 0; i < most; ++i) {
        const int expert = lane * each + i;
        if (i >= each || expert >= routing.experts) break;
        begins[expert] = place;
        for (int first = 0; first < counts[i]; first += routing.panel_rows) {
            routing.panels[panel++] = {expert, place + first, min(routing.panel_rows, counts[i] - first)};
        }
        place += counts[i];
    }
}

/// A warp chooses for a row: the expert of the lane's number among the chosen, and its share.
struct Choice {
    int expert;
    float share;
};

template <int LaneExperts>
__device__ Choice choose_among(const Routing& routing, const std::uint16_t* scores, int row) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::uint16_t* own = scores + static_cast<std::size_t>(row) * static_cast<std::size_t>(routing.experts);
    const auto* biases = static_cast<const std::uint16_t*>(routing.bias);
    // All are asked for before the first is used: a branch around each would make them wait for one another.
    std::uint32_t keys[LaneExperts];
    std::uint32_t added[LaneExperts];
#pragma unroll
    for (int i = 0; i < LaneExperts; ++i) {
        const int expert = min(lane + 32 * i, routing.experts - 1);
        keys[i] = __ldcg(own + expert);
        added[i] = biases != nullptr ? biases[expert] : 0;
    }
#pragma unroll
    for (int i = 0; i < LaneExperts; ++i) {
        const int expert = lane + 32 * i;
        const std::uint32_t score = biases != nullptr ? biased(keys[i], added[i]) : keys[i];
        keys[i] = expert < routing.experts ? key_of(score, expert) : 0;
    }
    std::uint32_t mine = 0;
    for (int i = 0; i < routing.chosen; ++i) {
        std::uint32_t best = 0;
#pragma unroll
        for (int j = 0; j < LaneExperts; ++j) best = max(best, keys[j]);
        best = __reduce_max_sync(~0u, best);
#pragma unroll
        for (int j = 0; j < LaneExperts; ++j) {
            if (keys[j] == best) keys[j] = 0;
        }
        if (lane == i) mine = best;
    }
    const float highest = score_of(__shfl_sync(~0u, mine, 0));
    const float share = lane < routing.chosen ? __expf(score_of(mine) - highest) : 0.0f;
    float total = share;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) total += __shfl_xor_sync(~0u, total, offset);
    return {expert_of(mine), share / total};
}

__device__ Choice choose_for(const Routing& routing, const std::uint16_t* scores, int row) {
    if (routing.experts <= 64) return choose_among<2>(routing, scores, row);
    if (routing.experts <= 128) return choose_among<4>(routing, scores, row);
    if (routing.experts <= 256) return choose_among<8>(routing, scores, row);
    return choose_among<most_experts / 32>(routing, scores, row);
}

/// One row, by a warp: each of its experts has it, in the order of their numbers.
__device__ void route_one(const Routing& routing, const std::uint16_t* scores) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const Choice choice = choose_for(routing, scores, 0);
    int place = 0;
    for (int i = 0; i < routing.chosen; ++i) place += __shfl_sync(~0u, choice.expert, i) < choice.expert ? 1 : 0;
    if (lane == 0) *routing.panel_count = routing.chosen;
    if (lane >= routing.chosen) return;
    routing.choices[lane] = choice.expert;
    routing.shares[lane] = choice.share;
    routing.places[lane] = place;
    routing.rows_at[place] = 0;
    routing.panels[place] = {choice.expert, place, 1};
}

/// All of it by one block of `Warps` warps.
template <int Warps, int Rows>
__device__ void route_alone(const Routing& routing, const std::uint16_t* scores) {
    __shared__ int counts[most_experts];
    __shared__ int begins[most_experts];
    __shared__ int choices[Rows * most_chosen];
    __shared__ int order[Rows * most_chosen];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (routing.rows == 1) {
        if (warp == 0) route_one(routing, scores);
        return;
    }
    for (int i = static_cast<int>(threadIdx.x); i < routing.experts; i += Warps * 32) counts[i] = 0;
    __syncthreads();
    for (int row = warp; row < routing.rows; row += Warps) {
        const Choice choice = choose_for(routing, scores, row);
        if (lane < routing.chosen) {
            const int at = row * routing.chosen + lane;
            routing.choices[at] = choices[at] = choice.expert;
            routing.shares[at] = choice.share;
            order[at] = atomicAdd(counts + choice.expert, 1);
        }
    }
    __syncthreads();
    if (warp == 0) divide(routing, [&](int i) { return counts[i]; }, begins);
    __syncthreads();
    for (int at = static_cast<int>(threadIdx.x); at < routing.rows * routing.chosen; at += Warps * 32) {
        const int place = begins[choices[at]] + order[at];
        routing.places[at] = place;
        routing.rows_at[place] = at / routing.chosen;
    }
}

/// Whether the block is the last of its kernel to come here; what the others wrote before is then visible. All threads
/// come. `ticket` is zero between kernels.
__device__ bool last_to_come(int* ticket) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(ticket, 1) == static_cast<int>(gridDim.x) - 1;
        if (last) *ticket = 0;
    }
    __syncthreads();
    __threadfence();
    return last;
}

__global__ __launch_bounds__(route_warps * 32) void route_few_kernel(Routing routing, const std::uint16_t* scores) {
    let_next_start();
    wait_for_previous();
    route_alone<route_warps, route_warps>(routing, scores);
}

/// A warp takes a row; blocks count in the L2, and the last one to come divides. Places are given by the next kernel.
__global__ __launch_bounds__(route_warps * 32) void route_many_kernel(Routing routing, const std::uint16_t* scores) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int row = static_cast<int>(blockIdx.x) * route_warps + warp;
    let_next_start();
    wait_for_previous();
    if (row < routing.rows) {
        const Choice choice = choose_for(routing, scores, row);
        if (lane < routing.chosen) {
            const int at = row * routing.chosen + lane;
            routing.choices[at] = choice.expert;
            routing.shares[at] = choice.share;
            routing.places[at] = atomicAdd(routing.counters + choice.expert, 1);  // for now the order
        }
    }
    if (!last_to_come(routing.counters + routing.experts)) return;
    if (warp == 0) divide(routing, [&](int i) { return __ldcg(routing.counters + i); }, routing.begins);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < routing.experts; i += route_warps * 32) routing.counters[i] = 0;
}

constexpr int place_threads = 256;

__global__ __launch_bounds__(place_threads) void place_kernel(Routing routing) {
    let_next_start();
    wait_for_previous();
    const int at = static_cast<int>(blockIdx.x) * place_threads + static_cast<int>(threadIdx.x);
    if (at >= routing.rows * routing.chosen) return;
    const int place = routing.begins[routing.choices[at]] + routing.places[at];
    routing.places[at] = place;
    routing.rows_at[place] = at / routing.chosen;
}

/// A router's product with what follows it.
struct RouterProduct : Product {
    Routing routing;
};

constexpr int router_warps = 8;

__device__ void after_tile(const RouterProduct& router) {
    if (last_to_come(router.routing.counters + router.routing.experts)) {
        route_alone<router_warps, most_routed_together>(router.routing, static_cast<const std::uint16_t*>(router.y));
    }
}

const std::vector<Variant<RouterProduct>>& router_products() {
    static const std::vector<Variant<RouterProduct>> variants = {
        product_variant<Bf16, 1, router_warps, 1, 4, true, RouterProduct>("8 warps, 1 tiles, 4 loads, ahead"),
        product_variant<Bf16, 2, router_warps, 1, 4, false, RouterProduct>("8 warps, 1 tiles, 4 loads"),
        product_variant<Bf16, 4, router_warps, 1, 4, false, RouterProduct>("8 warps, 1 tiles, 4 loads"),
    };
    return variants;
}

}  // namespace

void route(const Routing& routing, const void* scores, Launch launch) {
    const int blocks = (routing.rows + route_warps - 1) / route_warps;
    start(blocks == 1 ? &route_few_kernel : &route_many_kernel, dim3(static_cast<unsigned>(blocks)), route_warps * 32,
          0, launch.overlap, launch.stream, routing, static_cast<const std::uint16_t*>(scores));
    if (blocks == 1) return;
    const int places = routing.rows * routing.chosen;
    start(&place_kernel, dim3(static_cast<unsigned>((places + place_threads - 1) / place_threads)), place_threads, 0,
          launch.overlap, launch.stream, routing);
}

void route(const Routing& routing, const Product& router, Launch launch) {
    const auto& variants = router_products();
    const auto found = std::ranges::find_if(variants, [&](const auto& one) { return one.most_rows >= router.m; });
    if (found == variants.end()) throw Failure{"too many rows to route together"};
    RouterProduct work;
    static_cast<Product&>(work) = router;
    work.routing = routing;
    const int blocks = (router.n + found->block_rows - 1) / found->block_rows;
    start(found->kernel, dim3(static_cast<unsigned>(blocks)), found->threads, 0, launch.overlap, launch.stream, work);
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
    counters_ = Memory(static_cast<std::size_t>(2 * experts + 2) * sizeof(int));
    must(cudaMemsetAsync(counters_.at(), 0, counters_.bytes(), stream), "counters");
    must(cudaMemsetAsync(places_.at(), 0, places_.bytes(), stream),
         "places");  // read before any row has one, in trials
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
    routing.begins = routing.panel_count + 1;
    return routing;
}

}  // namespace roofline::cuda::kernels
