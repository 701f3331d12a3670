// Going through the chunks of a sequence: see states_chunks.cuh for the formulas. A block takes some values of a head,
// whose states its warps keep in registers, each of four those of a quarter of the keys, and shares them in bf16 for
// what queries and W make of them, of which each of four warps takes a quarter of the tokens. Four warps more do
// nothing but copy: among what the others do, copies took a quarter of the time (46.5 us for 58.1, a prompt of 1,024
// tokens of Qwen3-Next, 45.9 for 61.8 of Mamba-2 2.7B).
#include <array>

#include "roofline/bench/cuda/eights.cuh"
#include "roofline/bench/cuda/fragments.cuh"
#include "roofline/bench/cuda/state_numbers.cuh"
#include "roofline/bench/cuda/states_chunks.cuh"
#include "roofline/bench/cuda/states_tiles.cuh"

namespace roofline::cuda::kernels {

namespace {

/// Tiles: of 16 values that a warp takes. Groups: of four warps, which share tokens and keys.
template <bool Delta, int Keys, int Tiles, int Groups, int Stages>
struct ChunksRoom {
    static constexpr int threads = 128 * (Groups + 1);  // the last 128 copy
    static constexpr int values = 16 * Tiles * Groups;
    static constexpr int key_row = tile_row(Keys);
    static constexpr int value_row = tile_row(values);
    static constexpr int change_bytes = values * chunk * 2;
    // Of what comes with a chunk; there is room for `Stages` of them.
    static constexpr int queries_at = 0;
    static constexpr int keys_at = chunk * key_row;
    static constexpr int scores_at = 2 * chunk * key_row;
    static constexpr int numbers_at = scores_at + score_blocks * block_bytes;
    static constexpr int values_at = numbers_at + static_cast<int>(sizeof(ChunkNumbers));  // U, or values themselves
    static constexpr int against_at = values_at + (Delta ? change_bytes : chunk * value_row);
    static constexpr int stage_bytes = against_at + (Delta ? chunk * Keys * 2 : 0);
    // Of what warps share, in blocks.
    static constexpr int states_at = Stages * stage_bytes;
    static constexpr int brought_at = states_at + values * Keys * 2;
    static constexpr int changes_at = brought_at + change_bytes;
    static constexpr int bytes = changes_at + (Delta ? change_bytes : 0);
};

/// What a block asks for of a chunk, while it goes through the one before.
template <bool Delta, int Keys, int Tiles, int Groups, int Stages>
__device__ void fetch_chunk(std::uint32_t to, const StateRows& rows, const Channels16& channels,
                            const ChunkMemory& memory, int of_chunk, int head, int first_value) {
    using Room = ChunksRoom<Delta, Keys, Tiles, Groups, Stages>;
    constexpr int threads = 128;
    const std::size_t sequence = blockIdx.y;
    const int there = min(chunk, rows.tokens - of_chunk * chunk);
    const std::size_t row = sequence * rows.tokens + of_chunk * chunk;
    const __nv_bfloat16* const from = channels.at + row * channels.row;
    copy_tile<chunk, Keys, threads>(to + Room::queries_at, from + channel_of<Delta, Keys>(rows, head, first_value, 0),
                                    channels.row, there);
    copy_tile<chunk, Keys, threads>(to + Room::keys_at, from + channel_of<Delta, Keys>(rows, head, first_value, Keys),
                                    channels.row, there);
    const std::size_t place = (sequence * memory.chunks + of_chunk) * rows.heads + head;
    copy_pieces<score_blocks * 32, threads>(to + Room::scores_at, memory.scores + place * (score_blocks * 32));
    copy_pieces<static_cast<int>(sizeof(ChunkNumbers)) / 16, threads>(to + Room::numbers_at, memory.numbers + place);
    if constexpr (Delta) {
        const std::size_t first = (place * rows.value_dim + static_cast<std::size_t>(first_value)) * (chunk / 8);
        copy_pieces<Room::change_bytes / 16, threads>(to + Room::values_at, memory.alone + first);
        copy_pieces<chunk * Keys / 8, threads>(to + Room::against_at, memory.against + place * (chunk * Keys / 8));
    } else {
        copy_tile<chunk, Room::values, threads>(to + Room::values_at,
                                                from + channel_of<Delta, Keys>(rows, head, first_value, 2 * Keys),
                                                channels.row, there);
    }
}

/// A block of changes, made of two sums of values by tokens, with tokens scaled.
__device__ void put_changes(std::uint32_t block, const float (&sums)[2][4], const float2& left, const float2& right) {
    put_block(block, pack(sums[0][0] * left.x, sums[0][1] * left.y), pack(sums[0][2] * left.x, sums[0][3] * left.y),
              pack(sums[1][0] * right.x, sums[1][1] * right.y), pack(sums[1][2] * right.x, sums[1][3] * right.y));
}

/// Values of 16 tokens as a block with a row for each value.
__device__ void take_values(std::uint32_t (&to)[4], std::uint32_t from) {
    std::uint32_t tokens[4];
    take_turned(tokens, from);
    to[0] = tokens[0], to[1] = tokens[2], to[2] = tokens[1], to[3] = tokens[3];
}

__device__ void add_products(float (&left)[4], float (&right)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                             std::uint32_t b1, std::uint32_t b2, std::uint32_t b3) {
    mma_bf16(left, a[0], a[1], a[2], a[3], b0, b1);
    mma_bf16(right, a[0], a[1], a[2], a[3], b2, b3);
}

template <bool Delta, int Keys, int Tiles, int Groups, int Stages>
__global__ __launch_bounds__(128 * (Groups + 1), 1) void states_chunks_kernel(const StateRows rows,
                                                                              const Channels16 channels,
                                                                              const ChunkMemory memory, int pieces) {
    using Room = ChunksRoom<Delta, Keys, Tiles, Groups, Stages>;
    constexpr int key_tiles = Keys / 32;  // of 8 keys, of a warp
    constexpr int key_steps = Keys / 16;
    extern __shared__ uint4 shared[];
    let_next_start();
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % 32;
    const int warp = thread / 32 % 4;
    const int tile = thread / 128 * Tiles;  // the first of a warp
    const int corner = lane / 4;
    const int pair = 2 * (lane % 4);
    const int head = static_cast<int>(blockIdx.x) / pieces;
    const int first_value = static_cast<int>(blockIdx.x) % pieces * Room::values;
    const std::size_t sequence = blockIdx.y;
    const std::uint32_t room = address_in_shared(shared);
    const bool gated = !Delta && rows.gates_at >= 0;
    wait_for_previous();

    if (thread >= 128 * Groups) {
        const auto fetch = [&](int of_chunk) {
            if (of_chunk < memory.chunks) {
                fetch_chunk<Delta, Keys, Tiles, Groups, Stages>(room + of_chunk % Stages * Room::stage_bytes, rows,
                                                                channels, memory, of_chunk, head, first_value);
            }
            copies_end();
        };
#pragma unroll
        for (int i = 0; i + 1 < Stages; ++i) fetch(i);
        for (int of_chunk = 0; of_chunk < memory.chunks; ++of_chunk) {
            copies_come<Stages - 2>();
            __syncthreads();
            fetch(of_chunk + Stages - 1);
            __syncthreads();
        }
        return;
    }
    // A lane's numbers of states: of tile i values corner and corner + 8, of key tile j two keys.
    float state[Tiles][key_tiles][4];
    float* const kept = rows.states +
                        ((sequence * rows.heads + head) * rows.value_dim + first_value + 16 * tile + corner) * Keys +
                        warp * (Keys / 4) + pair;
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
#pragma unroll
        for (int j = 0; j < key_tiles; ++j) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const auto* from = reinterpret_cast<const float2*>(kept + (16 * i + 8 * half) * Keys + 8 * j);
                const float2 both = rows.fresh ? float2{} : __ldcs(from);
                state[i][j][2 * half] = both.x;
                state[i][j][2 * half + 1] = both.y;
            }
        }
    }

    const std::uint32_t states = room + Room::states_at + tile * key_steps * block_bytes;
    const std::uint32_t brought = room + Room::brought_at + tile * 4 * block_bytes;
    const std::uint32_t changes = room + Room::changes_at + tile * 4 * block_bytes;
    const std::uint32_t key_place = lane_place(Room::key_row);
    const std::uint32_t value_place = lane_place(Room::value_row) + tile * 32;
    const std::size_t row_values = static_cast<std::size_t>(rows.heads) * rows.value_dim;
    const std::size_t value = static_cast<std::size_t>(head) * rows.value_dim + first_value + 16 * tile + pair;
    for (int of_chunk = 0; of_chunk < memory.chunks; ++of_chunk) {
        const int stage_at = of_chunk % Stages * Room::stage_bytes;
        const std::uint32_t stage = room + stage_at;
        const auto& numbers = *reinterpret_cast<const ChunkNumbers*>(reinterpret_cast<const std::uint8_t*>(shared) +
                                                                     stage_at + Room::numbers_at);
        const std::size_t row = sequence * rows.tokens + of_chunk * chunk;
        const int there = min(chunk, rows.tokens - of_chunk * chunk);
#pragma unroll
        for (int i = 0; i < Tiles; ++i) {
#pragma unroll
            for (int j = 0; j < key_tiles; j += 2) {
                const auto& left = state[i][j];
                const auto& right = state[i][j + 1];
                put_block(states + (i * key_steps + (warp * key_tiles + j) / 2) * block_bytes, pack(left[0], left[1]),
                          pack(left[2], left[3]), pack(right[0], right[1]), pack(right[2], right[3]));
            }
        }
        __syncthreads();  // the chunk has come
        std::uint32_t gates[Tiles][2][2] = {};
        if (gated) {
#pragma unroll
            for (int i = 0; i < Tiles; ++i) {
#pragma unroll
                for (int n = 0; n < 2; ++n) {
                    const int token = 16 * warp + 8 * n + corner;
                    if (token >= there) continue;
                    const auto* from = static_cast<const __nv_bfloat16*>(rows.rows) +
                                       (row + static_cast<std::size_t>(token)) * rows.width + rows.gates_at + value +
                                       16 * i;
                    gates[i][n][0] = *reinterpret_cast<const std::uint32_t*>(from);
                    gates[i][n][1] = *reinterpret_cast<const std::uint32_t*>(from + 8);
                }
            }
        }

        // What comes out of the states as they were, and changes: values by tokens, of each warp 16.
        float y[Tiles][2][4] = {};
        float change[Tiles][2][4];
#pragma unroll
        for (int i = 0; i < Tiles; ++i) {
            std::uint32_t own[4];
            if constexpr (Delta) {
                take_block(own, stage + Room::values_at + ((tile + i) * 4 + warp) * block_bytes);
            } else {
                take_values(own, stage + Room::values_at + 16 * warp * Room::value_row + i * 32 + value_place);
            }
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                change[i][n / 2][n % 2 * 2] = low_of(own[n]);
                change[i][n / 2][n % 2 * 2 + 1] = high_of(own[n]);
            }
        }
#pragma unroll
        for (int step = 0; step < key_steps; ++step) {
            std::uint32_t query[4];
            std::uint32_t against[4];
            take(query, stage + Room::queries_at + 16 * warp * Room::key_row + step * 32 + key_place);
            if constexpr (Delta) {
                take_block(against, stage + Room::against_at + (warp * key_steps + step) * block_bytes);
            }
#pragma unroll
            for (int i = 0; i < Tiles; ++i) {
                std::uint32_t a[4];
                take_block(a, states + (i * key_steps + step) * block_bytes);
                if constexpr (Delta) {
                    add_products(change[i][0], change[i][1], a, against[0], against[2], against[1], against[3]);
                }
                add_products(y[i][0], y[i][1], a, query[0], query[2], query[1], query[3]);
            }
        }
        const auto of_tokens = [&](const float* some, int n) {
            return *reinterpret_cast<const float2*>(some + 16 * warp + 8 * n + pair);
        };
        {
            const float2 left = of_tokens(numbers.of_state, 0);
            const float2 right = of_tokens(numbers.of_state, 1);
#pragma unroll
            for (int i = 0; i < Tiles; ++i) {
                put_changes(brought + (i * 4 + warp) * block_bytes, change[i], left, right);
                if constexpr (Delta) {
                    put_changes(changes + (i * 4 + warp) * block_bytes, change[i], {1.0f, 1.0f}, {1.0f, 1.0f});
                }
            }
        }
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const float2 by = of_tokens(numbers.of_query, n);
#pragma unroll
            for (int i = 0; i < Tiles; ++i) {
                y[i][n][0] *= by.x, y[i][n][1] *= by.y;
                y[i][n][2] *= by.x, y[i][n][3] *= by.y;
            }
        }
        const float decay = numbers.decay;
#pragma unroll
        for (int i = 0; i < Tiles; ++i) {
#pragma unroll
            for (int j = 0; j < key_tiles; ++j) {
#pragma unroll
                for (int n = 0; n < 4; ++n) state[i][j][n] *= decay;
            }
        }
        __syncthreads();

        // What the chunk's own tokens bring: to the states, of which a warp has some keys, and to what comes out.
#pragma unroll
        for (int step = 0; step < chunk / 16; ++step) {
            std::uint32_t a[Tiles][4];
#pragma unroll
            for (int i = 0; i < Tiles; ++i) take_block(a[i], brought + (i * 4 + step) * block_bytes);
#pragma unroll
            for (int j = 0; j < key_tiles; j += 2) {
                std::uint32_t b[4];
                take_turned(
                    b, stage + Room::keys_at + 16 * step * Room::key_row + (warp * key_tiles + j) * 16 + key_place);
#pragma unroll
                for (int i = 0; i < Tiles; ++i) {
                    add_products(state[i][j], state[i][j + 1], a[i], b[0], b[1], b[2], b[3]);
                }
            }
            if (step > warp) continue;
            std::uint32_t scores[4];
            take_block(scores, stage + Room::scores_at + (warp * (warp + 1) / 2 + step) * block_bytes);
#pragma unroll
            for (int i = 0; i < Tiles; ++i) {
                std::uint32_t own[4];
                if constexpr (Delta) {
                    take_block(own, changes + (i * 4 + step) * block_bytes);
                } else {
                    take_values(own, stage + Room::values_at + 16 * step * Room::value_row + i * 32 + value_place);
                }
                add_products(y[i][0], y[i][1], own, scores[0], scores[2], scores[1], scores[3]);
            }
        }

        // Tokens by values, as they are stored.
#pragma unroll
        for (int i = 0; i < Tiles; ++i) {
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                const int token = 16 * warp + 8 * n + corner;
                auto* const to = static_cast<__nv_bfloat16*>(rows.to) +
                                 (row + static_cast<std::size_t>(token)) * row_values + value + 16 * i;
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float left = y[i][n][2 * half];
                    float right = y[i][n][2 * half + 1];
                    if (gated) {
                        const std::uint32_t own = turned(gates[i][n][half]);
                        left *= silu(low_of(own));
                        right *= silu(high_of(own));
                    }
                    const std::uint32_t both = turned(pack(left, right));
                    if (token < there) *reinterpret_cast<std::uint32_t*>(to + 8 * half) = both;
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
#pragma unroll
        for (int j = 0; j < key_tiles; ++j) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                __stcs(reinterpret_cast<float2*>(kept + (16 * i + 8 * half) * Keys + 8 * j),
                       float2{state[i][j][2 * half], state[i][j][2 * half + 1]});
            }
        }
    }
}

/// A way to divide the values of a head.
struct Division {
    int values;
    void (*start)(const StateRows& rows, const Channels16& channels, Launch launch);
};

template <bool Delta, int Keys, int Tiles, int Groups, int Stages>
void start_chunks(const StateRows& rows, const Channels16& channels, Launch launch) {
    using Room = ChunksRoom<Delta, Keys, Tiles, Groups, Stages>;
    static_assert(Room::bytes <= 227 * 1024);
    const auto kernel = &states_chunks_kernel<Delta, Keys, Tiles, Groups, Stages>;
    must(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Room::bytes),
         "shared memory of chunks of tokens");
    const int pieces = rows.value_dim / Room::values;
    start(kernel, dim3(static_cast<unsigned>(rows.heads * pieces), static_cast<unsigned>(rows.sequences)),
          Room::threads, Room::bytes, launch.overlap, launch.stream, rows, channels, chunk_memory(rows), pieces);
}

template <bool Delta, int Keys, int Tiles, int Groups, int Stages>
constexpr Division division() {
    return {16 * Tiles * Groups, &start_chunks<Delta, Keys, Tiles, Groups, Stages>};
}

/// The largest pieces that give half of the multiprocessors a block: what comes with a chunk comes for each piece
/// again.
template <std::size_t Count>
const Division& chosen(const std::array<Division, Count>& divisions, const StateRows& rows) {
    const Division* best = nullptr;
    for (const Division& one : divisions) {
        if (rows.value_dim % one.values != 0) continue;
        best = &one;
        if (2 * rows.sequences * rows.heads * (rows.value_dim / one.values) >= multiprocessors()) break;
    }
    return *best;
}

}  // namespace

void go_through_chunks(const StateRows& rows, const Channels16& channels, Launch launch) {
    constexpr std::array delta{division<true, 128, 2, 2, 2>(), division<true, 128, 2, 1, 3>()};
    constexpr std::array narrow{division<false, 128, 1, 5, 2>(), division<false, 128, 2, 2, 3>(),
                                division<false, 128, 2, 1, 2>(), division<false, 128, 1, 1, 2>()};
    constexpr std::array wide{division<false, 256, 2, 2, 2>(), division<false, 256, 2, 1, 2>(),
                              division<false, 256, 1, 1, 2>()};
    const Division& division = rows.delta            ? chosen(delta, rows)
                               : rows.key_dim == 128 ? chosen(narrow, rows)
                                                     : chosen(wide, rows);
    division.start(rows, channels, launch);
}

}  // namespace roofline::cuda::kernels
