// Prompts of layers with a state in chunks of 64 tokens, on tensor cores: what a chunk does alone is prepared for all
// chunks at once (states_prepare.cu), then blocks go through the chunks of a sequence (states_chunks.cu).
//
// Of a head, in a chunk: l_t is the logarithm of the decays up to token t, h the state before the chunk, with a row for
// each value. All decays are exponentials of differences of l, none over 0.
//
// Mamba-2, with steps s:
//     y_t  = e^(l_t) h q_t + sum over u <= t of P_tu x_u + skip x_t,  P_tu = e^(l_t - l_u) s_u (k_u q_t)
//     next = e^(l_last) h + sum over u of e^(l_last - l_u) s_u x_u k_u^T
// A gated delta net, with shares b: token t changes the state by d_t k_t^T, where
//     d_t  = b_t (v_t - e^(l_t) h k_t - sum over u < t of e^(l_t - l_u) (k_u k_t) d_u)
// which is a system of equations, (1 + A) d = b v - b e^l (h k), with A_tu = b_t e^(l_t - l_u) (k_u k_t) for u < t.
// With T, the inverse of 1 + A, its rows are U = T b v, which waits for no state, less W h, where W = T b e^l k:
//     d    = U - W h
//     y_t  = e^(l_t) h q_t + sum over u <= t of P_tu d_u,  P_tu = e^(l_t - l_u) (k_u q_t)
//     next = e^(l_last) h + sum over u of e^(l_last - l_u) d_u k_u^T
#pragma once

#include <cuda_bf16.h>

#include "roofline/bench/cuda/launch.cuh"
#include "roofline/bench/cuda/states.cuh"

namespace roofline::cuda::kernels {

constexpr int chunk = 64;  // tokens

/// What a chunk's tokens say of a head.
struct ChunkNumbers {
    float of_query[chunk];  // e^(l_t), and what brings a delta net's query to length 1
    float of_state[chunk];  // e^(l_last - l_u), and Mamba-2's step, or what brings the key to length 1
    float decay;            // e^(l_last)
    float none[3];
};

/// Parts of chunks in memory, [sequence][chunk][head]. Matrices are bf16, in blocks of 16 x 16 numbers as the lanes of
/// a warp take them (states_tiles.cuh).
struct ChunkMemory {
    ChunkNumbers* numbers = nullptr;
    uint4* scores = nullptr;   // P, with the skip on its diagonal: of 16 tokens the blocks up to these, row after row
    uint4* against = nullptr;  // -W [token][key]
    uint4* alone = nullptr;    // U, turned: [value][token]
    int chunks = 0;            // of a sequence
};
constexpr int score_blocks = 10;

/// Channels, convolved.
struct Channels16 {
    const __nv_bfloat16* at = nullptr;
    int row = 0;  // numbers from one row to the next
};

inline int chunks_of(const StateRows& rows) {
    return (rows.tokens + chunk - 1) / chunk;
}

ChunkMemory chunk_memory(const StateRows& rows);

/// With K keys and V values a chunk of a head is, of a delta net, 2 * 64 * 64 (3 K + V) FLOP, 3/8 of them above a
/// diagonal and left out, and 2/3 * 64^3 of the inverse; 128 (2 K + V) bytes are read and 128 (K + V) + 5,648 written.
/// Of Mamba-2 it is an eighth of 2 * 64 * 64 K FLOP, because up to eight heads of a group share them, and 5,648 bytes.
void prepare_chunks(const StateRows& rows, const Channels16& channels, Launch launch);

/// A chunk of a head is 2 * 64 V (2 K + 64) FLOP, of a delta net 2 * 64 V K more; a block that takes some of the values
/// reads 256 K + 5,648 bytes beside these, of a delta net 128 K more. States are read and written once.
void go_through_chunks(const StateRows& rows, const Channels16& channels, Launch launch);

}  // namespace roofline::cuda::kernels
