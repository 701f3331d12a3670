// Prefill attention, causal, bf16: a block takes 128 queries of one head, a warp 16 of them; keys and values come
// through shared memory in tiles of 64, the next tile copied while the present one is used. Plain, and for any device;
// Hopper has its own (attention_prefill_groups.cuh).
#include <algorithm>
#include <cmath>
#include <cuda_bf16.h>

#include "roofline/bench/cuda/attention.cuh"
#include "roofline/bench/cuda/attention_prefill_groups.cuh"
#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/launch.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr int warps = 8;
constexpr int tile_queries = 16 * warps;
constexpr int tile_keys = 64;

__device__ void copy_async(std::uint32_t to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}

template <bool Transposed>
__device__ void load_matrices(std::uint32_t (&to)[4], std::uint32_t from) {
    if constexpr (Transposed) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from));
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from));
    }
}

__device__ std::uint32_t pack(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(pair);
}

/// Where 16 bytes of a row lie in a tile: pieces are exchanged within a row so that 8 rows meet in no bank.
template <int Dimension>
__device__ std::uint32_t place(int row, int piece) {
    return static_cast<std::uint32_t>(row * Dimension * 2 + ((piece ^ (row % 8)) * 16));
}

/// Rows of a tile, of `Dimension` values each, behind those of the tiles before; beyond the last comes that again.
template <int Dimension>
__device__ void fetch_rows(std::uint32_t to, const __nv_bfloat16* rows, int first, int last) {
    constexpr int pieces = Dimension / 8;  // of 16 bytes in a row
#pragma unroll
    for (int i = 0; i < tile_keys * pieces / (warps * 32); ++i) {
        const int index = static_cast<int>(threadIdx.x) + i * warps * 32;
        const int row = index / pieces;
        const int piece = index % pieces;
        copy_async(
            to + place<Dimension>(row, piece),
            rows + static_cast<std::size_t>(min(first + row, last)) * Dimension + static_cast<std::size_t>(piece) * 8);
    }
}

/// Keys, Values: numbers of a head's.
template <int Keys, int Values>
constexpr int tile_bytes = tile_keys * (Keys + Values) * 2;

template <int Keys, int Values>
__global__ __launch_bounds__(warps * 32) void prefill_kernel(Attention a) {
    extern __shared__ __align__(128) std::uint8_t tiles[];  // [2][keys, values]
    const auto shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(tiles));
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int quad = lane / 4;
    const int corner = lane % 4;
    const int sequence = static_cast<int>(blockIdx.z);
    const int head = static_cast<int>(blockIdx.y);
    const int kv_head = head / (a.query_heads / a.kv_heads);
    const int past = a.context - a.tokens;
    // The last queries see the most keys: they begin first.
    const int first_query = static_cast<int>(gridDim.x - 1 - blockIdx.x) * tile_queries;
    const int keys_seen = min(a.context, past + first_query + tile_queries);
    const int key_tiles = (keys_seen + tile_keys - 1) / tile_keys;
    const int first_tile = a.window > 0 ? max(0, past + first_query - a.window + 1) / tile_keys : 0;
    const std::size_t rows_before =
        (static_cast<std::size_t>(sequence) * a.kv_heads + kv_head) * static_cast<std::size_t>(a.capacity);
    const auto* keys = static_cast<const __nv_bfloat16*>(a.keys) + rows_before * Keys;
    const auto* values = static_cast<const __nv_bfloat16*>(a.values) + rows_before * Values;

    let_next_start();
    wait_for_previous();

    const auto fetch = [&](int tile) {
        const std::uint32_t to = shared + static_cast<std::uint32_t>(tile % 2) * tile_bytes<Keys, Values>;
        fetch_rows<Keys>(to, keys, tile * tile_keys, a.context - 1);
        fetch_rows<Values>(to + tile_keys * Keys * 2, values, tile * tile_keys, a.context - 1);
        asm volatile("cp.async.commit_group;");
    };
    fetch(first_tile);

    const int row[2] = {first_query + 16 * warp + quad, first_query + 16 * warp + quad + 8};
    std::uint32_t query[Keys / 16][4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const std::size_t token = static_cast<std::size_t>(sequence) * a.tokens + min(row[half], a.tokens - 1);
        const auto* source =
            static_cast<const __nv_bfloat16*>(a.queries) + token * a.query_stride + head * Keys + 2 * corner;
#pragma unroll
        for (int i = 0; i < Keys / 16; ++i) {
            query[i][half] = *reinterpret_cast<const std::uint32_t*>(source + 16 * i);
            query[i][half + 2] = *reinterpret_cast<const std::uint32_t*>(source + 16 * i + 8);
        }
    }

    const float to_exponent = log2_e * rsqrtf(static_cast<float>(Keys));
    float highest[2] = {unseen, unseen};
    float total[2] = {};
    float output[Values / 8][4] = {};
    for (int tile = first_tile; tile < key_tiles; ++tile) {
        if (tile + 1 < key_tiles) {
            fetch(tile + 1);
            asm volatile("cp.async.wait_group 1;");
        } else {
            asm volatile("cp.async.wait_group 0;");
        }
        __syncthreads();
        const std::uint32_t key_tile = shared + static_cast<std::uint32_t>(tile % 2) * tile_bytes<Keys, Values>;
        const std::uint32_t value_tile = key_tile + tile_keys * Keys * 2;

        float scores[tile_keys / 8][4] = {};
#pragma unroll
        for (int i = 0; i < Keys / 16; ++i) {
#pragma unroll
            for (int j = 0; j < tile_keys / 16; ++j) {
                std::uint32_t key[4];
                load_matrices<false>(key,
                                     key_tile + place<Keys>(16 * j + lane / 16 * 8 + lane % 8, 2 * i + lane / 8 % 2));
                mma_bf16(scores[2 * j], query[i][0], query[i][1], query[i][2], query[i][3], key[0], key[1]);
                mma_bf16(scores[2 * j + 1], query[i][0], query[i][1], query[i][2], query[i][3], key[2], key[3]);
            }
        }
        // Keys too old for a query of the warp: apart from those too new, because few tiles have any.
        if (a.window > 0 && tile * tile_keys < past + first_query + 16 * warp + 16 - a.window) {
#pragma unroll
            for (int j = 0; j < tile_keys / 8; ++j) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    if (tile * tile_keys + 8 * j + 2 * corner + i % 2 <= past + row[i / 2] - a.window) {
                        scores[j][i] = nothing;
                    }
                }
            }
        }
        const bool masked = tile * tile_keys + tile_keys > past + first_query + 16 * warp;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float best = nothing;
#pragma unroll
            for (int j = 0; j < tile_keys / 8; ++j) {
#pragma unroll
                for (int which = 0; which < 2; ++which) {
                    float& score = scores[j][2 * half + which];
                    score *= to_exponent;
                    if (masked && tile * tile_keys + 8 * j + 2 * corner + which > past + row[half]) score = nothing;
                    best = fmaxf(best, score);
                }
            }
            best = fmaxf(best, __shfl_xor_sync(~0u, best, 1));
            best = fmaxf(best, __shfl_xor_sync(~0u, best, 2));
            const float raised = fmaxf(best, highest[half]);
            const float factor = exp2f(highest[half] - raised);
            highest[half] = raised;
            total[half] *= factor;
#pragma unroll
            for (int j = 0; j < Values / 8; ++j) {
                output[j][2 * half] *= factor;
                output[j][2 * half + 1] *= factor;
            }
#pragma unroll
            for (int j = 0; j < tile_keys / 8; ++j) {
#pragma unroll
                for (int which = 0; which < 2; ++which) {
                    float& score = scores[j][2 * half + which];
                    score = exp2f(score - raised);
                    total[half] += score;
                }
            }
        }
#pragma unroll
        for (int j = 0; j < tile_keys / 16; ++j) {
            const std::uint32_t p0 = pack(scores[2 * j][0], scores[2 * j][1]);
            const std::uint32_t p1 = pack(scores[2 * j][2], scores[2 * j][3]);
            const std::uint32_t p2 = pack(scores[2 * j + 1][0], scores[2 * j + 1][1]);
            const std::uint32_t p3 = pack(scores[2 * j + 1][2], scores[2 * j + 1][3]);
#pragma unroll
            for (int i = 0; i < Values / 16; ++i) {
                std::uint32_t value[4];
                load_matrices<true>(
                    value, value_tile + place<Values>(16 * j + lane / 8 % 2 * 8 + lane % 8, 2 * i + lane / 16));
                mma_bf16(output[2 * i], p0, p1, p2, p3, value[0], value[1]);
                mma_bf16(output[2 * i + 1], p0, p1, p2, p3, value[2], value[3]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float sum = total[half];
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        if (row[half] >= a.tokens) continue;
        const float factor = 1.0f / (sum + exp2f(sink_of(a, head) - highest[half]));
        auto* to = static_cast<__nv_bfloat16*>(a.output) +
                   ((static_cast<std::size_t>(sequence) * a.tokens + row[half]) * a.query_heads + head) * Values +
                   2 * corner;
#pragma unroll
        for (int j = 0; j < Values / 8; ++j) {
            *reinterpret_cast<std::uint32_t*>(to + 8 * j) =
                pack(output[j][2 * half] * factor, output[j][2 * half + 1] * factor);
        }
    }
}

template <int Keys, int Values>
void launch_for(const Attention& attention, bool overlap, cudaStream_t stream) {
    constexpr int bytes = 2 * tile_bytes<Keys, Values>;
    must(cudaFuncSetAttribute(prefill_kernel<Keys, Values>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
         "shared memory of prefill attention");
    const dim3 blocks(static_cast<unsigned>((attention.tokens + tile_queries - 1) / tile_queries),
                      static_cast<unsigned>(attention.query_heads), static_cast<unsigned>(attention.batch));
    start(&prefill_kernel<Keys, Values>, blocks, warps * 32, bytes, overlap, stream, attention);
}

double l2_bytes() {
    int device = 0;
    int bytes = 0;
    must(cudaGetDevice(&device), "device");
    must(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device), "device attribute");
    return bytes;
}

template <int Keys, int Values, int Tile>
void launch_groups(const Attention& given, bool overlap, cudaStream_t stream) {
    using Room = PrefillRoom<Keys, Values, Tile>;
    must(cudaFuncSetAttribute(group_prefill_kernel<Keys, Values, Tile>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              Room::bytes),
         "shared memory of prefill attention");
    Attention attention = given;
    const int heads = attention.batch * attention.kv_heads;
    attention.key_tiles = tiles_of(Entries{attention.keys, Keys, attention.context, attention.capacity, heads, Tile});
    attention.value_tiles =
        tiles_of(Entries{attention.values, Values, attention.context, attention.capacity, heads, Tile});
    // What is read at the same time stays in the L2, beside queries and results; and all such parts are of a size.
    const double head_bytes = 2.0 * attention.context * (Keys + Values);
    const double room = std::clamp(0.75 * l2_bytes() / head_bytes, 1.0, static_cast<double>(heads));
    const int parts = static_cast<int>(std::ceil(heads / std::floor(room)));
    const int together = (heads + parts - 1) / parts;
    const int turns = (attention.tokens + Room::queries - 1) / Room::queries * attention.batch * attention.query_heads;
    start(&group_prefill_kernel<Keys, Values, Tile>, dim3(static_cast<unsigned>(turns)), Room::threads, Room::bytes,
          overlap, stream, attention, together);
}

bool on_hopper() {
    static const bool here = [] {
        cudaFuncAttributes attributes{};
        must(cudaFuncGetAttributes(&attributes, group_prefill_kernel<128, 128, 128>), "kernel attributes");
        return attributes.binaryVersion == 90;
    }();
    return here;
}

using Launcher = void (*)(const Attention&, bool, cudaStream_t);

/// For these widths, or null.
Launcher launch_of(int keys, int values) {
    const bool hopper = on_hopper();
    if (keys == 64 && values == 64) return hopper ? launch_groups<64, 64, 128> : launch_for<64, 64>;
    if (keys == 128 && values == 128) return hopper ? launch_groups<128, 128, 128> : launch_for<128, 128>;
    if (keys == 256 && values == 256) return hopper ? launch_groups<256, 256, 64> : Launcher{};
    // Latent entries, expanded.
    if (keys == 192 && values == 128) return hopper ? launch_groups<192, 128, 128> : launch_for<192, 128>;
    return nullptr;
}

}  // namespace

bool prefill_supported(const Attention& attention, Format cache) {
    return cache == Format::bf16 && !attention.latent && launch_of(attention.head_dim, attention.value_dim) != nullptr;
}

const char* prefill_name() {
    return on_hopper() ? "warp groups, 128 queries" : "mma, 128 queries, 64 keys";
}

void launch_prefill(const Attention& attention, bool overlap, cudaStream_t stream) {
    launch_of(attention.head_dim, attention.value_dim)(attention, overlap, stream);
}

}  // namespace roofline::cuda::kernels
