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
__global__ __launch_bounds__(Warps * 32) void decode_kernel(Attention a) {
    using Warp = DecodeWarp<Cache, Dimension, Heads>;
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
    const std::uint8_t* values = static_cast<const std::uint8_t*>(a.values) + head_offset + lane / 4 * 16;

    let_next_start();
    wait_for_previous();
    Warp state;
    state.begin(a);
    const float to_exponent = log2_e * a.key_scale * rsqrtf(static_cast<float>(Dimension));
    for (int first = begin + warp * unit; first < end; first += Warps * unit) {
        Loaded loaded;
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
            const int row = min(first + 8 * step + lane / 4, end - 1);
            const std::uint8_t* source = keys + static_cast<std::size_t>(row) * Warp::row_bytes;
#pragma unroll
            for (int i = 0; i < Warp::key_loads; ++i) loaded.keys[step][i] = read_once(source + i * 64);
        }
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
#pragma unroll
            for (int which = 0; which < 2; ++which) {
                const int row = min(first + 8 * step + 2 * (lane % 4) + which, end - 1);
                const std::uint8_t* source = values + static_cast<std::size_t>(row) * Warp::row_bytes;
#pragma unroll
                for (int i = 0; i < Warp::value_loads; ++i) loaded.values[step][which][i] = read_once(source + i * 128);
            }
        }
        state.template take<Steps>(loaded, end - first, to_exponent);
    }
    extern __shared__ __align__(128) float shared[];
    state.template end<Warps, false>(a, shared);
}

/// The same for Hopper: each warp has a ring of its own in shared memory that bulk copies fill, 8 Steps keys and their
/// values a stage, and waits for no other warp.
template <class Cache, int Dimension, int Heads, int Warps, int Steps, int Stages, bool Cluster>
__global__ __launch_bounds__(Warps * 32) void bulk_decode_kernel(Attention a) {
#if __CUDA_ARCH__ >= 900
    using Warp = DecodeWarp<Cache, Dimension, Heads>;
    constexpr int unit = 8 * Steps;
    constexpr int unit_bytes = unit * Warp::row_bytes;
    struct Stage {
        std::uint32_t keys;
        std::uint32_t values;
        int last;
        __device__ uint4 key(int step, int load) const {
            const int row = min(8 * step + static_cast<int>(threadIdx.x) % 32 / 4, last);
            return shared_read(keys + static_cast<std::uint32_t>(row * Warp::row_bytes + load * 64));
        }
        __device__ uint4 value(int step, int which, int load) const {
            const int row = min(8 * step + 2 * (static_cast<int>(threadIdx.x) % 4) + which, last);
            return shared_read(values + static_cast<std::uint32_t>(row * Warp::row_bytes + load * 128));
        }
    };
    extern __shared__ __align__(128) float shared[];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const std::uint32_t ring = shared_address(shared) + static_cast<std::uint32_t>(warp * Stages * 2 * unit_bytes);
    const std::uint32_t full =
        shared_address(shared) + static_cast<std::uint32_t>(Warps * Stages * 2 * unit_bytes + warp * Stages * 8);
    const int begin = static_cast<int>(blockIdx.x) * a.split_keys + warp * unit;
    const int end = min(a.context, static_cast<int>(blockIdx.x) * a.split_keys + a.split_keys);
    const std::size_t head_offset =
        static_cast<std::size_t>(blockIdx.y) * static_cast<std::size_t>(a.capacity) * Warp::row_bytes;
    const std::uint8_t* keys = static_cast<const std::uint8_t*>(a.keys) + head_offset;
    const std::uint8_t* values = static_cast<const std::uint8_t*>(a.values) + head_offset;
    if (lane == 0) {
        for (int i = 0; i < Stages; ++i) barrier_make(full + i * 8, 1);
        barriers_ready();
    }
    __syncwarp();
    let_next_start();

    const auto fetch = [&](int first, int stage) {
        if (first >= end || !elected()) return;
        const auto bytes = static_cast<std::uint32_t>(min(unit, end - first) * Warp::row_bytes);
        const std::size_t from = static_cast<std::size_t>(first) * Warp::row_bytes;
        const std::uint32_t to = ring + static_cast<std::uint32_t>(stage * 2 * unit_bytes);
        barrier_expect(full + stage * 8, 2 * bytes);
        bulk_copy(to, keys + from, bytes, full + stage * 8);
        bulk_copy(to + unit_bytes, values + from, bytes, full + stage * 8);
    };
    // The kernel before may write the newest key and value, and no other: those before it need not wait.
    int early = 0;
    while (early < Stages && begin + early * Warps * unit + unit < a.context) {
        fetch(begin + early * Warps * unit, early);
        ++early;
    }
    wait_for_previous();
    for (int i = early; i < Stages; ++i) fetch(begin + i * Warps * unit, i);
    Warp state;
    state.begin(a);
    const float to_exponent = log2_e * a.key_scale * rsqrtf(static_cast<float>(Dimension));
    int stage = 0;
    std::uint32_t parity = 0;
    for (int first = begin; first < end; first += Warps * unit) {
        barrier_wait(full + stage * 8, parity);
        const std::uint32_t at = ring + static_cast<std::uint32_t>(stage * 2 * unit_bytes);
        state.template take<Steps>(
            Stage{at + static_cast<std::uint32_t>(lane % 4 * 16),
                  at + static_cast<std::uint32_t>(unit_bytes + lane / 4 * 16), min(unit, end - first) - 1},
            end - first, to_exponent);
        __syncwarp();
        fetch(first + Stages * Warps * unit, stage);
        if (++stage == Stages) stage = 0, parity ^= 1;
    }
    __syncthreads();  // the rings are free for the end
    state.template end<Warps, Cluster>(a, shared);
#endif
}

template <class Cache, int Dimension, int Heads, int Warps, int Steps>
DecodeVariant variant(const char* name) {
    return {name, Warps * 32, Warps * 8 * Steps, DecodeWarp<Cache, Dimension, Heads>::shared_bytes(Warps),
            &decode_kernel<Cache, Dimension, Heads, Warps, Steps>};
}

template <class Cache, int Dimension, int Heads, int Warps, int Steps, int Stages, bool Cluster = false>
DecodeVariant bulk_variant(const char* name) {
    using Warp = DecodeWarp<Cache, Dimension, Heads>;
    constexpr int ring = Warps * Stages * (2 * 8 * Steps * Warp::row_bytes + 8);
    constexpr int shared = std::max(ring, Warp::shared_bytes(Warps));
    static_assert(shared <= 227 * 1024);
    return {name,
            Warps * 32,
            Warps * 8 * Steps,
            shared,
            &bulk_decode_kernel<Cache, Dimension, Heads, Warps, Steps, Stages, Cluster>,
            true,
            Cluster};
}

/// Compiled for an older architecture, the kernels with bulk copies are empty.
std::vector<DecodeVariant> usable(std::vector<DecodeVariant> all) {
    std::erase_if(all, [](const DecodeVariant& one) {
        if (!one.hopper) return false;
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
        bulk_variant<Bf16, Dimension, Heads, 8, steps, 3>("bulk, 8 warps, 3 x 4 KiB"),
        bulk_variant<Bf16, Dimension, Heads, 4, steps, 3>("bulk, 4 warps, 3 x 4 KiB"),
        bulk_variant<Bf16, Dimension, Heads, 8, steps, 3, true>("bulk, clusters, 8 warps, 3 x 4 KiB"),
        bulk_variant<Bf16, Dimension, Heads, 4, steps, 3, true>("bulk, clusters, 4 warps, 3 x 4 KiB"),
    };
    if constexpr (Heads == 1 && Dimension <= 128) {
        all.push_back(bulk_variant<Bf16, Dimension, Heads, 8, steps / 2, 6>("bulk, 8 warps, 6 x 2 KiB"));
        all.push_back(bulk_variant<Bf16, Dimension, Heads, 16, steps / 2, 3>("bulk, 16 warps, 3 x 2 KiB"));
        all.push_back(variant<Bf16, Dimension, Heads, 8, 2>("8 warps, 16 keys"));
    }
    return usable(std::move(all));
}

template <int Dimension, int Heads>
std::vector<DecodeVariant> fp8_variants() {
    std::vector<DecodeVariant> all = {
        variant<Fp8, Dimension, Heads, 8, 1>("8 warps, 8 keys"),
        bulk_variant<Fp8Cache, Dimension, Heads, 4, 4, 3>("bulk, 4 warps, 3 x 32 keys"),
        bulk_variant<Fp8Cache, Dimension, Heads, 8, 2, 3>("bulk, 8 warps, 3 x 16 keys"),
        bulk_variant<Fp8Cache, Dimension, Heads, 4, 4, 3, true>("bulk, clusters, 4 warps, 3 x 32 keys"),
        bulk_variant<Fp8Cache, Dimension, Heads, 8, 2, 3, true>("bulk, clusters, 8 warps, 3 x 16 keys"),
    };
    if constexpr (Dimension <= 128) {
        all.push_back(bulk_variant<Fp8Cache, Dimension, Heads, 8, 4, 3>("bulk, 8 warps, 3 x 32 keys"));
        all.push_back(bulk_variant<Fp8Cache, Dimension, Heads, 8, 4, 3, true>("bulk, clusters, 8 warps, 3 x 32 keys"));
        all.push_back(bulk_variant<Fp8Cache, Dimension, Heads, 8, 4, 2>("bulk, 8 warps, 2 x 32 keys"));
        all.push_back(bulk_variant<Fp8Cache, Dimension, Heads, 8, 2, 5>("bulk, 8 warps, 5 x 16 keys"));
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

void launch(const DecodeVariant& variant, const Attention& attention, bool overlap, cudaStream_t stream) {
    const dim3 blocks(static_cast<unsigned>(attention.splits),
                      static_cast<unsigned>(attention.batch * attention.kv_heads));
    start_clusters(variant.kernel, blocks, variant.cluster ? attention.splits : 1, variant.threads,
                   static_cast<std::size_t>(variant.shared_bytes), overlap, stream, attention);
}

}  // namespace roofline::cuda::kernels
