// Decode attention: one query a sequence, all query heads of a group at once over each key and value, the cache split
// over blocks and, in a block, over warps that never wait for each other.
#include <algorithm>
#include <vector>

#include "roofline/bench/cuda/attention.cuh"
#include "roofline/bench/cuda/attention_fp8.cuh"
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
    const int begin = static_cast<int>(blockIdx.x) * a.split_keys;
    const int end = min(a.context, begin + a.split_keys);
    const std::size_t head_offset =
        static_cast<std::size_t>(blockIdx.y) * static_cast<std::size_t>(a.capacity) * Warp::row_bytes;
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
    static constexpr int received = (rings + 15) / 16 * 16;
    static constexpr int barriers = received + (Cluster ? Warp::received_bytes : 0);
    static constexpr int turn = barriers + Warps * Stages * 8;
    static constexpr int bytes = turn + 4;
    static_assert(bytes <= 227 * 1024);
};

/// The same for Hopper: each warp has a ring of its own in shared memory that the copy engine fills, 8 Steps keys and
/// their values a stage, and waits for no other warp.
template <class Cache, int Dimension, int Heads, int Warps, int Steps, int Stages, bool Cluster>
__global__ __launch_bounds__(Warps * 32) void ring_decode_kernel(const __grid_constant__ Attention a) {
#if __CUDA_ARCH__ >= 900
    using Warp = DecodeWarp<Cache, Dimension, Heads>;
    using Order = typename Warp::Order;
    using Room = RingRoom<Warp, Warps, Steps, Stages, Cluster>;
    constexpr int unit = 8 * Steps;
    constexpr int unit_bytes = unit * Warp::row_bytes;
    struct Stage {
        std::uint32_t keys;
        std::uint32_t values[2];
        __device__ uint4 key(int step, int load) const {
            const int line = load / 2;
            return shared_read((keys ^ static_cast<std::uint32_t>(load % 2 * 64 ^ line * 16)) +
                               static_cast<std::uint32_t>(8 * step * Warp::row_bytes + line * 128));
        }
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
    const int begin = static_cast<int>(blockIdx.x) * a.split_keys + warp * unit;
    const int end = min(a.context, static_cast<int>(blockIdx.x) * a.split_keys + a.split_keys);
    const int first_row = static_cast<int>(blockIdx.y) * a.capacity;
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
    wait_for_previous();
    if (warp == 0 && lane == 0) *our_turn = 1.0f;
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
    state.template end<Warps, Cluster>(a, shared, reinterpret_cast<float4*>(shared + Room::received / 4));
#endif
}

template <class Cache, int Dimension, int Heads, int Warps, int Steps>
DecodeVariant variant(const char* name) {
    return {name, Warps * 32, Warps * 8 * Steps, DecodeWarp<Cache, Dimension, Heads>::shared_bytes(Warps),
            &decode_kernel<Cache, Dimension, Heads, Warps, Steps>};
}

template <class Cache, int Dimension, int Heads, int Warps, int Steps, int Stages, bool Cluster = false>
DecodeVariant ring_variant(const char* name) {
    using Warp = DecodeWarp<Cache, Dimension, Heads>;
    using Room = RingRoom<Warp, Warps, Steps, Stages, Cluster>;
    return {name,
            Warps * 32,
            Warps * 8 * Steps,
            Room::bytes,
            &ring_decode_kernel<Cache, Dimension, Heads, Warps, Steps, Stages, Cluster>,
            8 * Steps,
            Warp::row_bytes,
            Cluster};
}

/// Compiled for an older architecture, the kernels with rings are empty.
std::vector<DecodeVariant> usable(std::vector<DecodeVariant> all) {
    std::erase_if(all, [](const DecodeVariant& one) {
        if (one.tile_keys == 0) return false;
        cudaFuncAttributes attributes{};
        must(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(one.kernel)), "kernel attributes");
        return attributes.ptxVersion < 90;
    });
    return all;
}

template <int Dimension, int Heads>
std::vector<DecodeVariant> bf16_variants() {
    constexpr int steps = 4096 / (8 * Dimension * 2);  // copies of 4 KiB
    std::vector<DecodeVariant> all = {
        variant<Bf16, Dimension, Heads, 8, 1>("8 warps, 8 keys"),
        ring_variant<Bf16, Dimension, Heads, 8, steps, 3>("ring, 8 warps, 3 x 4 KiB"),
        ring_variant<Bf16, Dimension, Heads, 4, steps, 3>("ring, 4 warps, 3 x 4 KiB"),
        ring_variant<Bf16, Dimension, Heads, 8, steps, 3, true>("ring, clusters, 8 warps, 3 x 4 KiB"),
        ring_variant<Bf16, Dimension, Heads, 4, steps, 3, true>("ring, clusters, 4 warps, 3 x 4 KiB"),
    };
    if constexpr (Heads == 1 && Dimension <= 128) {
        all.push_back(ring_variant<Bf16, Dimension, Heads, 8, steps / 2, 6>("ring, 8 warps, 6 x 2 KiB"));
        all.push_back(variant<Bf16, Dimension, Heads, 8, 2>("8 warps, 16 keys"));
    }
    return usable(std::move(all));
}

template <int Dimension, int Heads>
std::vector<DecodeVariant> fp8_variants() {
    std::vector<DecodeVariant> all = {
        variant<Fp8, Dimension, Heads, 8, 1>("8 warps, 8 keys"),
        ring_variant<Fp8Cache, Dimension, Heads, 4, 4, 3>("ring, 4 warps, 3 x 32 keys"),
        ring_variant<Fp8Cache, Dimension, Heads, 8, 2, 3>("ring, 8 warps, 3 x 16 keys"),
        ring_variant<Fp8Cache, Dimension, Heads, 4, 4, 3, true>("ring, clusters, 4 warps, 3 x 32 keys"),
        ring_variant<Fp8Cache, Dimension, Heads, 8, 2, 3, true>("ring, clusters, 8 warps, 3 x 16 keys"),
    };
    if constexpr (Dimension <= 128) {
        all.push_back(ring_variant<Fp8Cache, Dimension, Heads, 8, 4, 3>("ring, 8 warps, 3 x 32 keys"));
        all.push_back(ring_variant<Fp8Cache, Dimension, Heads, 8, 4, 3, true>("ring, clusters, 8 warps, 3 x 32 keys"));
        all.push_back(ring_variant<Fp8Cache, Dimension, Heads, 8, 4, 2>("ring, 8 warps, 2 x 32 keys"));
        all.push_back(ring_variant<Fp8Cache, Dimension, Heads, 8, 2, 5>("ring, 8 warps, 5 x 16 keys"));
    }
    return usable(std::move(all));
}

}  // namespace

std::vector<DecodeVariant> decode_variants(int head_dim, int group, Format cache) {
    if (group < 1 || group > 16) return {};
    const bool wide = group > 8;
    if (cache == Format::bf16 && head_dim == 64) return wide ? bf16_variants<64, 2>() : bf16_variants<64, 1>();
    if (cache == Format::bf16 && head_dim == 128) return wide ? bf16_variants<128, 2>() : bf16_variants<128, 1>();
    if (cache == Format::bf16 && head_dim == 256) return wide ? bf16_variants<256, 2>() : bf16_variants<256, 1>();
    if (cache == Format::fp8 && head_dim == 128) return wide ? fp8_variants<128, 2>() : fp8_variants<128, 1>();
    if (cache == Format::fp8 && head_dim == 256) return wide ? fp8_variants<256, 2>() : fp8_variants<256, 1>();
    return {};
}

namespace {

/// Clusters of so many blocks that run at the same time.
int clusters_at_once(const DecodeVariant& chosen, int splits) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(splits), 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(splits), 65535);
    config.blockDim = dim3(static_cast<unsigned>(chosen.threads));
    config.dynamicSmemBytes = static_cast<std::size_t>(chosen.shared_bytes);
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = 0;
    must(cudaOccupancyMaxActiveClusters(&clusters, chosen.kernel, &config), "occupancy of clusters");
    return clusters;
}

}  // namespace

void split(Attention& attention, const DecodeVariant& chosen) {
    int device = 0;
    int multiprocessors = 1;
    int resident = 1;
    must(cudaGetDevice(&device), "device");
    must(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "device attribute");
    must(cudaFuncSetAttribute(reinterpret_cast<const void*>(chosen.kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                              chosen.shared_bytes),
         "shared memory of decode attention");
    must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, chosen.kernel, chosen.threads,
                                                       static_cast<std::size_t>(chosen.shared_bytes)),
         "occupancy");
    const int slots = multiprocessors * std::max(resident, 1);
    const int heads = attention.batch * attention.kv_heads;
    const int units = (attention.context + chosen.unit - 1) / chosen.unit;
    // A split costs the time of its keys, and a little to begin and to end (as long as about one unit of keys takes).
    double least = 0.0;
    int best = 1;
    for (int splits = 1; splits <= std::min(units, chosen.cluster ? most_in_cluster : most_splits); ++splits) {
        const int together = chosen.cluster ? splits * clusters_at_once(chosen, splits) : slots;  // blocks
        if (together == 0) continue;
        const int rounds = (heads * splits + together - 1) / together;
        const double cost = rounds * ((units + splits - 1) / splits + 1.0);
        if (splits == 1 || cost < least) least = cost, best = splits;
    }
    const int split_units = (units + best - 1) / best;
    attention.split_keys = split_units * chosen.unit;
    attention.splits = (units + split_units - 1) / split_units;
}

std::size_t part_bytes(const Attention& attention) {
    return static_cast<std::size_t>(attention.batch) * static_cast<std::size_t>(attention.query_heads) * most_splits *
           static_cast<std::size_t>(attention.head_dim + 2) * sizeof(float);
}

std::size_t ticket_bytes(const Attention& attention) {
    return static_cast<std::size_t>(attention.batch) * static_cast<std::size_t>(attention.kv_heads) * sizeof(unsigned);
}

void launch(const DecodeVariant& variant, Attention attention, bool overlap, cudaStream_t stream) {
    if (variant.tile_keys > 0) {
        const int lines = variant.row_bytes / 128;  // of a key or value
        const auto all = static_cast<std::size_t>(attention.batch) * static_cast<std::size_t>(attention.kv_heads) *
                         static_cast<std::size_t>(attention.capacity) * static_cast<std::size_t>(lines);
        attention.key_tiles = tiles_of(attention.keys, all, variant.tile_keys * lines);
        attention.value_tiles = tiles_of(attention.values, all, variant.tile_keys * lines);
    }
    const dim3 blocks(static_cast<unsigned>(attention.splits),
                      static_cast<unsigned>(attention.batch * attention.kv_heads));
    start_clusters(variant.kernel, blocks, variant.cluster ? attention.splits : 1, variant.threads,
                   static_cast<std::size_t>(variant.shared_bytes), overlap, stream, attention);
}

}  // namespace roofline::cuda::kernels
