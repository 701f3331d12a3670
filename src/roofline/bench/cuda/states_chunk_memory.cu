// Memory that a prompt's chunks are prepared in.
#include "roofline/bench/cuda/states_chunks.cuh"
#include "roofline/bench/cuda/states_tiles.cuh"

namespace roofline::cuda::kernels {

namespace {

/// Bytes of each of the parts of a chunk's head, one kind after the other.
struct ChunkBytes {
    std::size_t numbers, scores, against, alone;

    explicit ChunkBytes(const StateRows& rows) {
        const std::size_t places = product_of({rows.sequences, chunks_of(rows), rows.heads});
        numbers = rounded(places * sizeof(ChunkNumbers));
        scores = rounded(places * score_blocks * block_bytes);
        against = rows.delta ? rounded(places * chunk * static_cast<std::size_t>(rows.key_dim) * 2) : 0;
        alone = rows.delta ? rounded(places * chunk * static_cast<std::size_t>(rows.value_dim) * 2) : 0;
    }
    std::size_t all() const { return numbers + scores + against + alone; }
};

}  // namespace

ChunkMemory chunk_memory(const StateRows& rows) {
    const ChunkBytes bytes(rows);
    auto* const at = static_cast<std::uint8_t*>(rows.chunks);
    ChunkMemory memory;
    memory.numbers = reinterpret_cast<ChunkNumbers*>(at);
    memory.scores = reinterpret_cast<uint4*>(at + bytes.numbers);
    memory.against = reinterpret_cast<uint4*>(at + bytes.numbers + bytes.scores);
    memory.alone = reinterpret_cast<uint4*>(at + bytes.numbers + bytes.scores + bytes.against);
    memory.chunks = chunks_of(rows);
    return memory;
}

std::size_t chunk_bytes(const StateRows& rows) {
    const bool known = rows.delta ? rows.key_dim == 128 && rows.value_dim == 128
                                  : (rows.key_dim == 128 || rows.key_dim == 256) && rows.value_dim % 16 == 0;
    return known && rows.tokens >= least_for_chunks ? ChunkBytes(rows).all() : 0;
}

}  // namespace roofline::cuda::kernels
