// Attention for x86-64 with AVX-512, over a cache in pairs (attention.hpp) widened to fp32: a line holds two numbers of
// 16 keys, or of 16 columns of values, which meet a number of each query (or of its weights) in all lanes, so that
// nothing is added up across lanes. A cache in fp32, or of uneven widths, goes the way it goes anywhere
// (attention_lanes.inc).
//
// A line takes two instructions to widen and two for every query. A core that starts two a cycle spends 9 cycles on a
// line with eight queries, in which memory gives a core of a Cascade Lake 50 bytes; with fewer it waits for memory.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "roofline/bench/kernels/attention.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma,prefer-vector-width=512")
namespace roofline::bench::avx512_attend {
namespace {

#define ROOFLINE_LANES 16
#define ROOFLINE_BLOCK 32
// clang-format off: the first says what the others are written with
#include "roofline/bench/kernels/lanes.inc"
#include "roofline/bench/kernels/attention_lanes.inc"
#include "roofline/bench/kernels/reference_lanes.inc"
// clang-format on
#undef ROOFLINE_LANES

#define INLINE inline __attribute__((always_inline))

constexpr std::int64_t tile = 64;         // positions
constexpr std::int64_t most_rows = 8;     // queries that meet a line together
constexpr std::int64_t numbers = 32;      // of a line
constexpr std::int64_t lines_ahead = 16;  // of each strip, asked for into the nearest cache

/// Some strips of 16 keys, or of 16 columns of values, side by side. The lines of each follow each other in memory.
struct Many {
    const Bf16* from;
    std::int64_t pitch;   // numbers between strips
    std::int64_t onward;  // numbers from the end of one to where those that are read next begin
};

/// Numbers of queries, or weights: two for every line and query.
struct Few {
    const float* from;
    std::int64_t pitch;      // between numbers
    std::int64_t row_pitch;  // between queries
};

/// sums[row][strip] += what lines [first, last) give.
template <int rows, int strips>
INLINE void add_lines(const Many& many, const Few& few, std::int64_t first, std::int64_t last, std::int64_t ahead,
                      Floats (&sums)[rows][strips]) {
    for (std::int64_t at = first; at < last; ++at) {
        Floats even[strips];
        Floats odd[strips];
#pragma GCC unroll 4
        for (int strip = 0; strip < strips; ++strip) {
            const Bf16* from = many.from + strip * many.pitch + at * numbers;
            __builtin_prefetch(from + ahead);
            load_two(from, even[strip], odd[strip]);
        }
        const float* with = few.from + at * 2 * few.pitch;
#pragma GCC unroll 8
        for (int row = 0; row < rows; ++row) {
            auto one = reinterpret_cast<Floats>(_mm512_set1_ps(with[row * few.row_pitch]));
            keep(one);
#pragma GCC unroll 4
            for (int strip = 0; strip < strips; ++strip) sums[row][strip] += even[strip] * one;
        }
#pragma GCC unroll 8
        for (int row = 0; row < rows; ++row) {
            auto two = reinterpret_cast<Floats>(_mm512_set1_ps(with[row * few.row_pitch + few.pitch]));
            keep(two);
#pragma GCC unroll 4
            for (int strip = 0; strip < strips; ++strip) sums[row][strip] += odd[strip] * two;
        }
    }
}

/// Lines [first, last) of the strips; `to` has the sums of a query every `to_pitch` numbers.
template <int rows, int strips, bool anew>
INLINE void multiply(const Many& many, const Few& few, std::int64_t first, std::int64_t last, float* to,
                     std::int64_t to_pitch) {
    Floats sums[rows][strips];
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row) {
#pragma GCC unroll 4
        for (int strip = 0; strip < strips; ++strip)
            sums[row][strip] = anew ? Floats{} : load(to + row * to_pitch + strip * lanes);
    }
    const std::int64_t turn = std::clamp(last - lines_ahead, first, last);
    add_lines(many, few, first, turn, lines_ahead * numbers, sums);
    add_lines(many, few, turn, last, lines_ahead * numbers + many.onward, sums);
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row) {
#pragma GCC unroll 4
        for (int strip = 0; strip < strips; ++strip) save(to + row * to_pitch + strip * lanes, sums[row][strip]);
    }
}

/// Calls with(strip, how many) for the strips [strip, end), as many at once as there are registers for.
template <int rows, class With>
INLINE void all_strips(std::int64_t strip, std::int64_t end, const With& with) {
    const auto some = [&](auto strips) {
        for (; strip + strips <= end; strip += strips) with(strip, strips);
    };
    if constexpr (rows <= 4) some(std::integral_constant<int, 4>());
    some(std::integral_constant<int, 2>());
    some(std::integral_constant<int, 1>());
}

struct alignas(64) Room {
    float scores[most_rows][tile];
};

/// The positions [begin, end) of a tile.
struct Span {
    std::int64_t begin;
    std::int64_t end;
};

template <int rows>
void find_scores(const float* queries, const Bf16* keys, Span span, std::int64_t head_dim, Room& room) {
    all_strips<rows>(span.begin / lanes, (span.end + lanes - 1) / lanes, [&](std::int64_t strip, auto strips) {
        const std::int64_t pitch = lanes * head_dim;
        multiply<rows, strips, true>({keys + strip * pitch, pitch, (strips - 1) * pitch}, {queries, rows, 1}, 0,
                                     head_dim / 2, room.scores[0] + strip * lanes, tile);
    });
}

/// Scores become weights. Meanwhile some lines of values are asked for, `soon` and on in the first strips.
void find_weights(float* scores, Span span, std::int64_t head_dim, float& reference, float* total, float* sums,
                  const Bf16* soon) {
    const std::int64_t begin = span.begin / lanes * lanes;
    const std::int64_t end = (span.end + lanes - 1) / lanes * lanes;
    refer_to(scores, begin, end, span.begin, span.end, head_dim, reference, total, sums);
    Floats totals = load(total);
    for (std::int64_t i = begin; i < end; i += lanes) {
        __builtin_prefetch(soon + i * tile);
        const Floats power = exponential(load(scores + i) - reference);
        totals += power;
        save(scores + i, power);
    }
    save(total, totals);
}

template <int rows>
void add_values(const Bf16* values, Span span, std::int64_t head_dim, const Room& room, float* sums) {
    const std::int64_t first = span.begin / lanes * lanes / 2;
    const std::int64_t last = (span.end + lanes - 1) / lanes * lanes / 2;
    all_strips<rows>(0, head_dim / lanes, [&](std::int64_t strip, auto strips) {
        constexpr std::int64_t pitch = lanes * tile;
        multiply<rows, strips, false>({values + strip * pitch, pitch, (strips - 1) * pitch}, {room.scores[0], 1, tile},
                                      first, last, sums + strip * lanes, head_dim);
    });
}

/// A tile for some rows of queries, which lie as [head_dim][rows].
template <int rows>
void attend_to_tile(const float* queries, const Bf16* keys, const Bf16* values, Span span, std::int64_t head_dim,
                    const AttentionState& state, float* totals, Room& room) {
    find_scores<rows>(queries, keys, span, head_dim, room);
    for (int row = 0; row < rows; ++row)
        find_weights(room.scores[row], span, head_dim, state.largest[row], totals + row * lanes,
                     state.values + row * head_dim, values + (lines_ahead + row) * numbers);
    add_values<rows>(values, span, head_dim, room, state.values);
}

void piece_bf16(const float* q, std::int64_t rows, const Bf16* keys, const Bf16* values, std::int64_t first,
                std::int64_t count, const HeadWidths& widths, const AttentionState& state) {
    constexpr decltype(&attend_to_tile<1>) of_rows[] = {attend_to_tile<1>, attend_to_tile<2>, attend_to_tile<3>,
                                                        attend_to_tile<4>, attend_to_tile<5>, attend_to_tile<6>,
                                                        attend_to_tile<7>, attend_to_tile<8>};
    const std::int64_t head_dim = widths.key;
    static thread_local std::vector<LineOfFloats> laid;
    static thread_local Room room;
    laid.assign(static_cast<std::size_t>(rows * head_dim / 16 + rows), {});
    float* const queries = laid.data()->floats;
    float* const totals = queries + rows * head_dim;  // of weights, sixteen to a query that are still to be added up
    for (std::int64_t row = 0; row < rows; ++row) totals[row * lanes] = state.sum[row];
    for (std::int64_t row = 0; row < rows; row += most_rows) {
        const std::int64_t some = std::min(rows - row, most_rows);
        for (std::int64_t query = 0; query < some; ++query) {
            for (std::int64_t i = 0; i < head_dim; ++i)
                queries[row * head_dim + i * some + query] = q[(row + query) * head_dim + i];
        }
    }
    const std::int64_t last = first + count;
    for (std::int64_t begin = first / tile * tile; begin < last; begin += tile) {
        const Span span = {std::max<std::int64_t>(0, first - begin), std::min(tile, last - begin)};
        for (std::int64_t row = 0; row < rows; row += most_rows) {
            const std::int64_t some = std::min(rows - row, most_rows);
            of_rows[some - 1](queries + row * head_dim, keys + begin * head_dim, values + begin * head_dim, span,
                              head_dim, {state.largest + row, nullptr, state.values + row * head_dim},
                              totals + row * lanes, room);
        }
    }
    for (std::int64_t row = 0; row < rows; ++row) state.sum[row] = sum(load(totals + row * lanes));
}

}  // namespace
}  // namespace roofline::bench::avx512_attend
#pragma GCC pop_options

namespace roofline::bench {
const AttentionKernels* avx512_attention() {
    static constexpr AttentionKernels kernels = {"AVX-512", avx512_attend::piece_bf16,
                                                 avx512_attend::attention_piece<Bf16>,
                                                 avx512_attend::attention_piece<float>, KvLayout::pairs};
    const bool here = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return here ? &kernels : nullptr;
}
}  // namespace roofline::bench
#else
namespace roofline::bench {
const AttentionKernels* avx512_attention() {
    return nullptr;
}
}  // namespace roofline::bench
#endif
