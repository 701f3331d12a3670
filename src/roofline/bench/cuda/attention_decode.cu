// Decode attention: one query a sequence, all query heads of a group at once over each key and value, the cache split
// over blocks and, in a block, over warps that never wait for each other (or work as a team: attention_team.cuh).
#include <algorithm>
#include <string>
#include <vector>

#include "roofline/bench/cuda/attention.cuh"
#include "roofline/bench/cuda/attention_division.hpp"
#include "roofline/bench/cuda/attention_fp8.cuh"
#include "roofline/bench/cuda/attention_latent.cuh"
#include "roofline/bench/cuda/attention_team.cuh"
#include "roofline/bench/cuda/attention_warp.cuh"
#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/launch.cuh"

namespace roofline::cuda::kernels {

namespace {

/// Steps: groups of 8 keys a warp reads together.
template <class Cache, int Dimension, int Heads, int Warps, int Steps>
__global__ __launch_bounds__(Warps * 32) void decode_kernel(const __grid_constant__ Attention a) {
    using Warp = DecodeWarp<Cache, Dimension, Heads>;
    using Order = typename Warp::Order;
    struct Loaded {
        uint4 keys[Steps][Warp::key_loads];
        uint4 values[Steps][2][Warp::value_loads];
        __device__ uint4 key(int step, int load) const { return keys[step][load]; }
        __device__ uint4 value(int step, int which, int load) const { return values[step][which][load]; }
    };
    constexpr int unit = 8 * Steps;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int begin = split_index() * a.split_keys;
    const int end = min(a.context, begin + a.split_keys);
    const std::size_t head_offset =
        static_cast<std::size_t>(blockIdx.z) * static_cast<std::size_t>(a.capacity) * Warp::row_bytes;
    const std::uint8_t* keys = static_cast<const std::uint8_t*>(a.keys) + head_offset + lane % 4 * 16;
    const std::uint8_t* values = static_cast<const std::uint8_t*>(a.values) + head_offset + Order::piece(lane / 4) * 16;

    let_next_start();
    wait_for_previous();
    Warp state;
    state.begin(typename Warp::Queries(a));
    const float to_exponent = log2_e * a.key_scale * rsqrtf(static_cast<float>(Dimension));
    for (int first = begin + warp * unit; first < end; first += Warps * unit) {
        Loaded loaded;
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
            const int row = min(first + 8 * step + Order::row(lane / 4), end - 1);
            const std::uint8_t* source = keys + static_cast<std::size_t>(row) * Warp::row_bytes;
#pragma unroll
            for (int i = 0; i < Warp::key_loads; ++i) loaded.keys[step][i] = read_once(source + i * 64);
        }
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
#pragma unroll
            for (int which = 0; which < 2; ++which) {
                const int row = min(first + 8 * step + Order::row(2 * (lane % 4) + which), end - 1);
                const std::uint8_t* source = values + static_cast<std::size_t>(row) * Warp::row_bytes;
#pragma unroll
                for (int i = 0; i < Warp::value_loads; ++i) loaded.values[step][which][i] = read_once(source + i * 128);
            }
        }
        state.template take<Steps>(loaded, end - first, to_exponent);
    }
    extern __shared__ __align__(1024) float shared[];
    state.template end<Warps, false>(a, shared, nullptr);
}

/// Where things lie in the shared memory of a kernel with rings.
template <class Warp, int Warps, int Steps, int Stages, bool Cluster>
struct RingRoom {
    static constexpr int rings = std::max(Warps * Stages * 2 * 8 * Steps * Warp::row_bytes, Warp::shared_bytes(Warps));
    static constexpr int meeting = (rings + 15) / 16 * 16;
    static constexpr int barriers = meeting + Warp::template meeting_bytes<Warps, Cluster>;
    static constexpr int turn = barriers + Warps * Stages * 8;
    static constexpr int bytes = turn + 4;
    static_assert(bytes <= 227 * 1024);
    /// What the compiler is to take for granted: that a block is alone, or nothing. Else it would save registers to
    /// make room for a second block that there is no memory for.
    static constexpr int blocks_at_once = 2 * (bytes + 1024) > 227 * 1024 ? 1 : 0;
};

/// The same for Hopper: each warp has a ring of its own in shared memory that the copy engine fills, 8 Steps keys and
/// their values a stage, and waits for no other warp.
template <class Cache, int Dimension, int Heads, int Warps, int Steps, int Stages, bool Cluster>
__global__ __launch_bounds__(
    Warps * 32, RingRoom<DecodeWarp<Cache, Dimension, Heads>, Warps, Steps, Stages,
                         Cluster>::blocks_at_once) void ring_decode_kernel(const __grid_constant__ Attention a) {
#if __CUDA_ARCH__ >= 900
    using Warp = DecodeWarp<Cache, Dimension, Heads>;
    using Order = typename Warp::Order;
    using Room = RingRoom<Warp, Warps, Steps, Stages, Cluster>;
    constexpr int unit = 8 * Steps;
    constexpr int unit_bytes = unit * Warp::row_bytes;
    struct Stage {
        std::uint32_t keys;
        std::uint32_t values[2];
        __device__ uint4 key(int step, int load) const { return row_piece(keys, load, 8 * step * Warp::row_bytes); }
        __device__ uint4 value(int step, int which, int line) const {
            return shared_read((values[which] ^ static_cast<std::uint32_t>(line * 16)) +
                               static_cast<std::uint32_t>(8 * step * Warp::row_bytes + line * 128));
        }
    };
    extern __shared__ __align__(1024) float shared[];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int quad = lane / 4;
    const int corner = lane % 4;
    const std::uint32_t ring = shared_address(shared) + static_cast<std::uint32_t>(warp * Stages * 2 * unit_bytes);
    const std::uint32_t full = shared_address(shared) + static_cast<std::uint32_t>(Room::barriers + warp * Stages * 8);
    volatile float* our_turn = shared + Room::turn / 4;  // whether the kernel before has ended
    const int begin = split_index() * a.split_keys + warp * unit;
    const int end = min(a.context, split_index() * a.split_keys + a.split_keys);
    const int first_row = static_cast<int>(blockIdx.z) * a.capacity;
    if constexpr (Cluster) cluster_arrive();
    if (lane == 0) {
        for (int i = 0; i < Stages; ++i) barrier_make(full + i * 8, 1);
        barriers_ready();
        if (warp == 0) *our_turn = 0.0f;
    }
    __syncthreads();
    let_next_start();

    const std::uint64_t policy = read_once_policy();
    const auto fetch = [&](int first, int stage) {
        if (first >= end || !elected()) return;
        const std::uint32_t to = ring + static_cast<std::uint32_t>(stage * 2 * unit_bytes);
        const int line = (first_row + first) * Order::lines;
        barrier_expect(full + stage * 8, 2 * unit_bytes);
        tile_copy(to, a.key_tiles, line, full + stage * 8, policy);
        tile_copy(to + unit_bytes, a.value_tiles, line, full + stage * 8, policy);
    };
    // The kernel before may write the newest key and value, and no other: those before it need not wait. But what it
    // has still to do must not queue behind them, so while it runs a warp asks for a tile only when the one before has
    // come. The first warp asks for all of its own at once, and so is free to see when our turn comes.
    int asked = 0;
    for (int first = begin; asked < Stages && first < end && first + unit < a.context; first += Warps * unit) {
        bool turn = false;
        while (warp > 0 && asked > 0 && !turn && !barrier_passed(full + (asked - 1) * 8, 0)) turn = *our_turn != 0.0f;
        if (__any_sync(~0u, turn)) break;
        fetch(first, asked++);
    }
    // The newest key's tile can only come as far as the L2, where the kernel before leaves that key.
    if (const int next = begin + asked * Warps * unit;
        asked < Stages && next < end && next + unit >= a.context && elected()) {
        const int line = (first_row + next) * Order::lines;
        tile_prefetch(a.key_tiles, line);
        tile_prefetch(a.value_tiles, line);
    }
    wait_for_previous();
    if (threadIdx.x == 0) *our_turn = 1.0f;
    const typename Warp::Queries queries(a);  // before the rest of the tiles: behind them they would come late
    for (; asked < Stages; ++asked) fetch(begin + asked * Warps * unit, asked);
    // The rings are full, and until the queries have come nothing makes room in them: memory goes on with a tile more.
    if (const int next = begin + Stages * Warps * unit; next < end && elected()) {
        const int line = (first_row + next) * Order::lines;
        tile_prefetch(a.key_tiles, line);
        tile_prefetch(a.value_tiles, line);
    }
    Warp state;
    state.begin(queries);
    const float to_exponent = log2_e * a.key_scale * rsqrtf(static_cast<float>(Dimension));
    const Stage lanes{static_cast<std::uint32_t>(Order::place(Order::row(quad), corner)),
                      {static_cast<std::uint32_t>(Order::place(Order::row(2 * corner), Order::piece(quad))),
                       static_cast<std::uint32_t>(Order::place(Order::row(2 * corner + 1), Order::piece(quad)))}};
    int stage = 0;
    std::uint32_t parity = 0;
    for (int first = begin; first < end; first += Warps * unit) {
        const int inside = end - first;
        barrier_wait(full + stage * 8, parity);
        const std::uint32_t keys = ring + static_cast<std::uint32_t>(stage * 2 * unit_bytes);
        const std::uint32_t values = keys + unit_bytes;
        if (inside < unit) {  // what lies behind the last value has a weight of zero, but may be no number
            for (int i = inside * Warp::row_bytes + lane * 16; i < unit_bytes; i += 32 * 16) {
                shared_clear(values + static_cast<std::uint32_t>(i));
            }
            __syncwarp();
        }
        state.template take<Steps>(Stage{keys + lanes.keys, {values + lanes.values[0], values + lanes.values[1]}},
                                   inside, to_exponent);
        __syncwarp();
        fetch(first + Stages * Warps * unit, stage);
        if (++stage == Stages) stage = 0, parity ^= 1;
    }
    __syncthreads();  // the rings are free for the end
    state.template end<Warps, Cluster>(a, shared, shared + Room::meeting / 4);
#endif
}

template <class Cache, int Dimension, int Heads, int Warps, int Steps>
DecodeVariant variant(const char* name) {
    using Warp = DecodeWarp<Cache, Dimension, Heads>;
    return {name,
            Warps * 32,
            Warps * 8 * Steps,
            Warps * 8 * Steps * 2 * Warp::row_bytes,
            Warp::shared_bytes(Warps),
            &decode_kernel<Cache, Dimension, Heads, Warps, Steps>};
}

template <class Cache, int Dimension, int Heads, int Warps, int Steps, int Stages, bool Cluster>
DecodeVariant ring_variant(const char* name) {
    using Warp = DecodeWarp<Cache, Dimension, Heads>;
    return {name,
            Warps * 32,
            Warps * 8 * Steps,
            Warps * 8 * Steps * 2 * Warp::row_bytes,
            RingRoom<Warp, Warps, Steps, Stages, Cluster>::bytes,
            &ring_decode_kernel<Cache, Dimension, Heads, Warps, Steps, Stages, Cluster>,
            8 * Steps * Warp::Order::lines,
            Cluster};
}

/// With and without clusters.
template <class Cache, int Dimension, int Heads, int Warps, int Steps, int Stages>
void add_rings(std::vector<DecodeVariant>& all, const char* name) {
    all.push_back(ring_variant<Cache, Dimension, Heads, Warps, Steps, Stages, false>(name));
    all.push_back(ring_variant<Cache, Dimension, Heads, Warps, Steps, Stages, true>(name));
}

template <class Cache, int Dimension, int Tiles, int Steps, int Stages, bool Cluster>
DecodeVariant team_variant(const char* name) {
    using Room = Team<Cache, Dimension, Tiles, Steps, Stages, Cluster>;
    return {name,
            Room::threads,
            Room::unit,
            2 * Room::unit_bytes,
            Room::bytes,
            &team_decode_kernel<Cache, Dimension, Tiles, Steps, Stages, Cluster>,
            Room::unit * Room::Warp::Order::lines,
            Cluster};
}

template <class Cache, int Dimension, int Tiles, int Steps, int Stages>
void add_teams(std::vector<DecodeVariant>& all, const char* name) {
    all.push_back(team_variant<Cache, Dimension, Tiles, Steps, Stages, false>(name));
    all.push_back(team_variant<Cache, Dimension, Tiles, Steps, Stages, true>(name));
}

template <int Heads, bool Shared, bool Cluster>
DecodeVariant latent_variant(const char* name) {
    using Room = LatentRoom<Heads, Shared, Cluster>;
    return {name,
            Room::threads,
            Room::keys,
            Room::keys * latent_width * 2,
            Room::bytes,
            &latent_decode_kernel<Heads, Shared, Cluster>,
            Room::keys,
            Cluster,
            Room::block_heads};
}

/// Compiled for an older architecture, the kernels with rings are empty.
std::vector<DecodeVariant> usable(std::vector<DecodeVariant> all) {
    std::erase_if(all, [](const DecodeVariant& one) {
        if (one.tile_lines == 0) return false;
        cudaFuncAttributes attributes{};
        must(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(one.kernel)), "kernel attributes");
        // Instructions of warp groups are Hopper's alone.
        return attributes.ptxVersion < 90 || (one.most_heads > 0 && attributes.binaryVersion != 90);
    });
    return all;
}

template <int Dimension, int Heads>
std::vector<DecodeVariant> bf16_variants() {
    constexpr int steps = 4096 / (8 * Dimension * 2);  // copies of 4 KiB
    std::vector<DecodeVariant> all = {variant<Bf16, Dimension, Heads, 8, 1>("8 warps, 8 keys")};
    add_rings<Bf16, Dimension, Heads, 8, steps, 3>(all, "ring, 8 warps, 3 x 4 KiB");
    add_rings<Bf16, Dimension, Heads, 4, steps, 3>(all, "ring, 4 warps, 3 x 4 KiB");
    if constexpr (Heads == 1 && Dimension <= 128) {
        all.push_back(ring_variant<Bf16, Dimension, Heads, 8, steps / 2, 6, false>("ring, 8 warps, 6 x 2 KiB"));
        all.push_back(variant<Bf16, Dimension, Heads, 8, 2>("8 warps, 16 keys"));
    }
    if constexpr (Dimension == 256) add_teams<Bf16, Dimension, Heads, 1, 3>(all, "team of 8 warps, 3 x 64 keys");
    return usable(std::move(all));
}

template <int Dimension, int Heads>
std::vector<DecodeVariant> fp8_variants() {
    std::vector<DecodeVariant> all = {variant<Fp8, Dimension, Heads, 8, 1>("8 warps, 8 keys")};
    if constexpr (Dimension == 128 || Heads == 1) {
        add_rings<Fp8Cache, Dimension, Heads, 4, 4, 3>(all, "ring, 4 warps, 3 x 32 keys");
        add_rings<Fp8Cache, Dimension, Heads, 8, 2, 3>(all, "ring, 8 warps, 3 x 16 keys");
    }
    if constexpr (Dimension == 128) {
        add_rings<Fp8Cache, Dimension, Heads, 8, 4, 3>(all, "ring, 8 warps, 3 x 32 keys");
        all.push_back(ring_variant<Fp8Cache, Dimension, Heads, 8, 4, 2, false>("ring, 8 warps, 2 x 32 keys"));
        add_rings<Fp8Cache, Dimension, Heads, 8, 2, 5>(all, "ring, 8 warps, 5 x 16 keys");
    } else if constexpr (Heads == 1) {
        add_teams<Fp8Cache, Dimension, 1, 2, 3>(all, "team of 8 warps, 3 x 128 keys");
    } else {
        add_teams<Fp8Cache, Dimension, 2, 4, 3>(all, "team of 8 warps, 3 x 128 keys");
        add_teams<Fp8Cache, Dimension, 2, 2, 6>(all, "team of 8 warps, 6 x 64 keys");
    }
    return usable(std::move(all));
}

/// The variants for a head dimension, a group (query heads a kv head) and a format of the cache.
std::vector<DecodeVariant> variants(int head_dim, int group, Format cache) {
    if (group < 1 || group > 16) return {};
    const bool wide = group > 8;
    if (cache == Format::bf16 && head_dim == 64) return wide ? bf16_variants<64, 2>() : bf16_variants<64, 1>();
    if (cache == Format::bf16 && head_dim == 128) return wide ? bf16_variants<128, 2>() : bf16_variants<128, 1>();
    if (cache == Format::bf16 && head_dim == 256) return wide ? bf16_variants<256, 2>() : bf16_variants<256, 1>();
    if (cache == Format::fp8 && head_dim == 128) return wide ? fp8_variants<128, 2>() : fp8_variants<128, 1>();
    if (cache == Format::fp8 && head_dim == 256) return wide ? fp8_variants<256, 2>() : fp8_variants<256, 1>();
    return {};
}

std::vector<DecodeVariant> latent_variants(int heads) {
    if (heads <= 16) {
        return usable({latent_variant<16, false, false>("16 heads"), latent_variant<16, false, true>("16 heads")});
    }
    std::vector<DecodeVariant> all = {
        latent_variant<32, false, false>("32 heads"), latent_variant<32, false, true>("32 heads"),
        latent_variant<16, true, false>("2 x 16 heads"), latent_variant<16, true, true>("2 x 16 heads")};
    if (heads > 32) all.push_back(latent_variant<32, true, false>("2 x 32 heads"));
    return usable(std::move(all));
}

std::vector<DecodeVariant> variants(const Attention& shape, Format cache) {
    if (shape.latent) {
        const bool known = cache == Format::bf16 && shape.head_dim == latent_width && shape.value_dim == latent_rank;
        return known ? latent_variants(shape.query_heads) : std::vector<DecodeVariant>();
    }
    if (shape.head_dim != shape.value_dim) return {};
    return variants(shape.head_dim, shape.query_heads / shape.kv_heads, cache);
}

/// Blocks that share the query heads of a kv head: of a latent cache as few as take all of them, evenly; else one.
int head_blocks(const DecodeVariant& variant, int heads) {
    int blocks = 1;
    while (variant.most_heads > 0 && (heads % blocks != 0 || heads / blocks > variant.most_heads)) ++blocks;
    return blocks;
}

int blocks_at_once(const DecodeVariant& variant) {
    int device = 0;
    int multiprocessors = 1;
    int resident = 1;
    must(cudaGetDevice(&device), "device");
    must(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "device attribute");
    must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, variant.kernel, variant.threads,
                                                       static_cast<std::size_t>(variant.shared_bytes)),
         "occupancy");
    return multiprocessors * std::max(resident, 1);
}

}  // namespace

std::vector<DecodeWay> decode_ways(const Attention& shape, Format cache) {
    std::vector<DecodeWay> ways;
    const int group = shape.query_heads / shape.kv_heads;
    for (const DecodeVariant& variant : variants(shape, cache)) {
        must(cudaFuncSetAttribute(reinterpret_cast<const void*>(variant.kernel),
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, variant.shared_bytes),
             "shared memory of decode attention");
        const int blocks = head_blocks(variant, group);
        const Work work{shape.batch * shape.kv_heads * blocks,
                        shape.context,
                        group / blocks * shape.value_dim / 4,
                        variant.threads,
                        variant.unit,
                        variant.unit_bytes};
        const auto at_once = [&](int cluster) {
            return variant.clustered
                       ? cluster * clusters_at_once(variant.kernel, cluster, variant.threads, variant.shared_bytes)
                       : blocks_at_once(variant);
        };
        const int fewest = variant.clustered ? 2 : 1;
        const int most = variant.clustered ? most_in_cluster : 1;
        for (const Division& division : divisions(work, fewest, most, at_once)) {
            std::string name =
                std::string(variant.name) + ", " + std::to_string(division.clusters * division.blocks) + " splits";
            if (division.blocks > 1) name += " in clusters of " + std::to_string(division.blocks);
            ways.push_back({std::move(name), variant, division.clusters, division.blocks, division.split_keys});
        }
    }
    return ways;
}

std::size_t part_bytes(const Attention& shape) {
    return static_cast<std::size_t>(most_meeting) * static_cast<std::size_t>(shape.query_heads / shape.kv_heads) *
           (static_cast<std::size_t>(shape.value_dim) * sizeof(float) + sizeof(float2));
}

std::size_t ticket_bytes() {
    return most_meeting * sizeof(unsigned);
}

void launch(const DecodeWay& way, Attention attention, bool overlap, cudaStream_t stream) {
    const DecodeVariant& variant = way.variant;
    attention.split_keys = way.split_keys;
    // Blocks that share a latent entry are as if each had a kv head of its own.
    attention.kv_heads *= head_blocks(variant, attention.query_heads / attention.kv_heads);
    attention.share = ceil_of(attention.query_heads / attention.kv_heads * attention.value_dim / 4, way.cluster);
    if (attention.latent) {
        attention.key_tiles = tiles_of(Entries{attention.keys, attention.head_dim, attention.context,
                                               attention.capacity, attention.batch, variant.unit});
    } else if (variant.tile_lines > 0) {
        const int lines = variant.unit_bytes / 2 / variant.unit / 128;  // of a key or value
        const auto all = static_cast<std::size_t>(attention.batch) * static_cast<std::size_t>(attention.kv_heads) *
                         static_cast<std::size_t>(attention.capacity) * static_cast<std::size_t>(lines);
        attention.key_tiles = tiles_of(attention.keys, all, variant.tile_lines);
        attention.value_tiles = tiles_of(attention.values, all, variant.tile_lines);
    }
    const dim3 blocks(static_cast<unsigned>(way.cluster), static_cast<unsigned>(way.clusters),
                      static_cast<unsigned>(attention.batch * attention.kv_heads));
    start_clusters(variant.kernel, blocks, way.cluster, variant.threads, static_cast<std::size_t>(variant.shared_bytes),
                   overlap, stream, attention);
}

}  // namespace roofline::cuda::kernels
