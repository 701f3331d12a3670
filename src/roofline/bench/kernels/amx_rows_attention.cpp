// Attention for x86-64 with tile registers (AMX) over a cache in rows: latent entries, whose values are the beginning
// of their keys, and heads whose values are narrower.
//
// Sixteen keys are the left operand of their scores as they lie, and queries, laid in pairs of numbers, the right one;
// so scores come out by positions, and weights are found for sixteen queries at a time without adding up lanes. For the
// weighted sum values are the right operand, which an instruction takes in pairs of numbers and adds up: a pair is two
// columns of a position here, so weights stand beside zeros, once before them for even columns and once behind for odd
// ones. That is twice the products, and no value has to be moved (shuffling pairs of positions together took longer
// than all the rest). 64 positions are worked on at a time, while the next are asked for.
#include "roofline/bench/kernels/amx_attention.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <algorithm>
#include <immintrin.h>
#include <span>
#include <utility>
#include <vector>

#include "roofline/bench/kernels/turn.hpp"
#include "roofline/measure/tile_registers.hpp"

#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma,prefer-vector-width=512")
namespace roofline::bench::tile_rows_attention {
namespace {

#include "roofline/bench/kernels/amx_attention.inc"

constexpr std::int64_t tiles_of_chunk = 4;
constexpr std::int64_t chunk = tiles_of_chunk * side;  // positions whose scores are known before their values are met

struct alignas(64) Line {
    Bf16 values[32];
};
struct alignas(64) Scores {
    float of[chunk][side];  // of a tile of queries
};

/// Of a tile of queries: [query][16 positions][weight and zero, or zero and weight].
struct Weights {
    Line even[tiles_of_chunk][side];
    Line odd[tiles_of_chunk][side];
};
/// Of a tile of queries and 32 columns.
struct alignas(64) Sums {
    float even[side][side];
    float odd[side][side];
};

/// What is kept between pieces, so that room is taken once.
struct Room {
    std::vector<Line> queries;   // [tile of them][pair of numbers][16][2]
    std::vector<Scores> scores;  // of each tile of queries
    std::vector<Weights> weights;
    std::vector<Sums> sums;         // [tile of queries][32 columns]
    std::vector<Line> keys_rest;    // the last positions, where they fill no tile
    std::vector<Line> values_rest;  // likewise
};

/// Lines of the next positions, some of which are asked for at every step of the work on these.
class Ahead {
  public:
    /// Of `count` positions from `first` on.
    Ahead(const Bf16* keys, const Bf16* values, std::int64_t first, std::int64_t count, const HeadWidths& widths) {
        if (count <= 0) return;
        at_ = reinterpret_cast<const char*>(keys + first * widths.key);
        left_ = lines_of(count * widths.key);
        then_at_ = reinterpret_cast<const char*>(values + first * widths.value);
        then_left_ = widths.shared ? 0 : lines_of(count * widths.value);
    }
    template <int lines>
    INLINE void ask() {
        if (left_ < lines) return rest_of_stretch();
#pragma GCC unroll 64
        for (int i = 0; i < lines; ++i) __builtin_prefetch(at_ + i * line, 0, 2);
        at_ += lines * line;
        left_ -= lines;
    }
    void all() {
        while (left_ + then_left_ > 0) ask<8>();
    }

  private:
    static std::int64_t lines_of(std::int64_t numbers) {
        return (numbers * static_cast<std::int64_t>(sizeof(Bf16)) + line - 1) / line;
    }
    void rest_of_stretch() {
        for (; left_ > 0; --left_, at_ += line) __builtin_prefetch(at_, 0, 2);
        at_ = then_at_;
        left_ = std::exchange(then_left_, 0);
    }

    const char* at_ = nullptr;
    const char* then_at_ = nullptr;
    std::int64_t left_ = 0;
    std::int64_t then_left_ = 0;
};

/// Two numbers of each of sixteen queries, or two weights, beside each other.
INLINE __m512i in_pairs(const Floats& first, const Floats& second) {
    Line both;
    narrow(first, second, both.values);
    const __m512i apart = _mm512_load_si512(&both);
    const __m512i places = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                            21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_maskz_permutexvar_epi16(~__mmask32{0}, places, apart);
}

/// Rows of queries as right operands; what no row fills is zero.
void lay_queries(const float* q, std::int64_t rows, std::int64_t width, Line* to) {
    for (std::int64_t row = 0; row < rows; row += side) {
        for (std::int64_t i = 0; i < width; i += side, to += side / 2) {
            Floats numbers[side];
            for (std::int64_t query = 0; query < side; ++query)
                numbers[query] = row + query < rows ? load(q + (row + query) * width + i) : Floats{};
            turn(numbers);
            for (std::int64_t pair = 0; pair < side / 2; ++pair)
                _mm512_store_si512(to + pair, in_pairs(numbers[2 * pair], numbers[2 * pair + 1]));
        }
    }
}

/// Scores of all positions and one tile of queries. Four products are under way at a time, as each waits for the one
/// before it.
INLINE void find_scores(const Bf16* const (&keys)[tiles_of_chunk], std::int64_t width, const Line* queries, Scores& to,
                        Ahead& ahead) {
    const std::int64_t row_bytes = width * static_cast<std::int64_t>(sizeof(Bf16));
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (std::int64_t i = 0; i < width; i += 32) {
        _tile_loadd(6, queries + i / 2, line);
        ahead.ask<12>();
        _tile_loadd(4, keys[0] + i, row_bytes);
        _tile_dpbf16ps(0, 4, 6);
        ahead.ask<12>();
        _tile_loadd(5, keys[1] + i, row_bytes);
        _tile_dpbf16ps(1, 5, 6);
        ahead.ask<12>();
        _tile_loadd(4, keys[2] + i, row_bytes);
        _tile_dpbf16ps(2, 4, 6);
        ahead.ask<12>();
        _tile_loadd(5, keys[3] + i, row_bytes);
        _tile_dpbf16ps(3, 5, 6);
    }
    _tile_stored(0, to.of[0], line);
    _tile_stored(1, to.of[side], line);
    _tile_stored(2, to.of[2 * side], line);
    _tile_stored(3, to.of[3 * side], line);
}

/// The same of two tiles of queries, half of the positions after the other.
INLINE void find_scores_of_two(const Bf16* const (&keys)[tiles_of_chunk], std::int64_t width, const Line* queries,
                               Scores* to, Ahead& ahead) {
    const std::int64_t row_bytes = width * static_cast<std::int64_t>(sizeof(Bf16));
    const Line* const queries_too = queries + width / 2;
    for (std::int64_t at = 0; at < tiles_of_chunk; at += 2) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        for (std::int64_t i = 0; i < width; i += 32) {
            ahead.ask<16>();
            _tile_loadd(6, queries + i / 2, line);
            _tile_loadd(4, keys[at] + i, row_bytes);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(5, keys[at + 1] + i, row_bytes);
            _tile_dpbf16ps(1, 5, 6);
            _tile_loadd(7, queries_too + i / 2, line);
            _tile_dpbf16ps(2, 4, 7);
            _tile_dpbf16ps(3, 5, 7);
        }
        _tile_stored(0, to[0].of[at * side], line);
        _tile_stored(1, to[0].of[(at + 1) * side], line);
        _tile_stored(2, to[1].of[at * side], line);
        _tile_stored(3, to[1].of[(at + 1) * side], line);
    }
}

/// Of up to 16 queries with `count` positions; what is in their sums so far shrinks when a larger score turns up.
INLINE void find_weights(Scores& scores, std::int64_t count, std::int64_t queries, const AttentionState& state,
                         std::span<Sums> values, Weights& weights) {
    const auto there = static_cast<__mmask16>((1U << static_cast<unsigned>(queries)) - 1);
    for (std::int64_t i = count; i < chunk; ++i) save(scores.of[i], Floats{} - 1e30F);
    const auto before = static_cast<Floats>(_mm512_maskz_loadu_ps(there, state.largest));
    Floats now = before;
    for (std::int64_t i = 0; i < count; ++i) {
        const Floats some = load(scores.of[i]);
        now = some > now ? some : now;
    }
    const Floats shrink = power_of_two((before - now) * log2_e);
    const auto grown =
        _mm512_mask_cmp_ps_mask(there, static_cast<__m512>(now), static_cast<__m512>(before), _CMP_GT_OQ);
    for (std::int64_t query = 0; grown != 0 && query < queries; ++query) {
        if ((grown >> static_cast<unsigned>(query) & 1U) == 0) continue;
        for (Sums& some : values) {
            save(some.even[query], load(some.even[query]) * shrink[query]);
            save(some.odd[query], load(some.odd[query]) * shrink[query]);
        }
    }
    const Floats least = now * log2_e;
    Floats sums = {};
    const Integers half = Integers{} + 0x7FFF;
    for (std::int64_t at = 0; at < tiles_of_chunk; ++at) {
        Floats found[side];
        for (std::int64_t i = 0; i < side; ++i) {
            found[i] = power_of_two(load(scores.of[at * side + i]) * log2_e - least);
            sums += found[i];
        }
        turn(found);
        for (std::int64_t query = 0; query < side; ++query) {
            const auto bits = reinterpret_cast<Words>(reinterpret_cast<Integers>(found[query]) + half);
            const Words rounded = bits + ((reinterpret_cast<Words>(found[query]) >> 16) & 1);
            save(reinterpret_cast<float*>(&weights.even[at][query]), reinterpret_cast<Floats>(rounded >> 16));
            save(reinterpret_cast<float*>(&weights.odd[at][query]), reinterpret_cast<Floats>(rounded & 0xFFFF0000U));
        }
    }
    const auto so_far = static_cast<Floats>(_mm512_maskz_loadu_ps(there, state.sum));
    const auto kept = static_cast<Floats>(_mm512_mask_mov_ps(_mm512_set1_ps(1.0F), grown, static_cast<__m512>(shrink)));
    _mm512_mask_storeu_ps(state.sum, there, static_cast<__m512>(so_far * kept + sums));
    _mm512_mask_storeu_ps(state.largest, there, static_cast<__m512>(now));
}

/// Adds weighted values to the sums of a tile of queries and 32 columns.
INLINE void add_values(const Weights& weights, const Bf16* const (&values)[tiles_of_chunk], std::int64_t tiles,
                       std::int64_t row_bytes, std::int64_t column, Sums& sums, Ahead& ahead) {
    _tile_loadd(0, sums.even, line);
    _tile_loadd(1, sums.odd, line);
#pragma GCC unroll 4
    for (std::int64_t at = 0; at < tiles; ++at) {
        ahead.ask<6>();
        _tile_loadd(6, values[at] + column, row_bytes);
        _tile_loadd(4, weights.even[at], line);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, weights.odd[at], line);
        _tile_dpbf16ps(1, 5, 6);
    }
    _tile_stored(0, sums.even, line);
    _tile_stored(1, sums.odd, line);
}

/// Rows of sums with even and odd columns apart, and back.
void take_sums(const float* from, std::int64_t rows, std::int64_t width, std::vector<Sums>& to) {
    const Integers even = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
    for (std::int64_t row = 0; row < (rows + side - 1) / side * side; ++row) {
        for (std::int64_t i = 0; i < width; i += 2 * side) {
            Sums& sums = to[static_cast<std::size_t>((row / side * width + i) / (2 * side))];
            const Floats first = row < rows ? load(from + row * width + i) : Floats{};
            const Floats second = row < rows ? load(from + row * width + i + side) : Floats{};
            save(sums.even[row % side], __builtin_shuffle(first, second, even));
            save(sums.odd[row % side], __builtin_shuffle(first, second, even + 1));
        }
    }
}
void give_sums(const std::vector<Sums>& from, std::int64_t rows, std::int64_t width, float* to) {
    const Integers low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t i = 0; i < width; i += 2 * side) {
            const Sums& sums = from[static_cast<std::size_t>((row / side * width + i) / (2 * side))];
            const Floats even = load(sums.even[row % side]);
            const Floats odd = load(sums.odd[row % side]);
            save(to + row * width + i, __builtin_shuffle(even, odd, low));
            save(to + row * width + i + side, __builtin_shuffle(even, odd, low + 8));
        }
    }
}

/// The tile of 16 rows from `position` on, of which `left` are there; where they are fewer, a copy with zeros below.
const Bf16* whole_tile(const Bf16* rows, std::int64_t position, std::int64_t left, std::int64_t width, Line* rest) {
    const Bf16* const from = rows + position * width;
    if (left >= side) return from;
    std::copy_n(from, left * width, rest->values);
    std::fill(rest->values + left * width, rest->values + side * width, Bf16{});
    return rest->values;
}

}  // namespace

void piece(const float* q, std::int64_t rows, const Bf16* keys, const Bf16* values, std::int64_t first,
           std::int64_t count, const HeadWidths& widths, const AttentionState& state) {
    static thread_local Room room;
    const std::int64_t tiles = (rows + side - 1) / side;
    const std::int64_t blocks = widths.value / (2 * side);  // of columns
    const std::int64_t pitch = widths.value_pitch();
    const std::int64_t pitch_bytes = pitch * static_cast<std::int64_t>(sizeof(Bf16));
    room.queries.resize(static_cast<std::size_t>(tiles * widths.key / 2));
    room.scores.resize(static_cast<std::size_t>(tiles));
    room.weights.resize(static_cast<std::size_t>(tiles));
    room.sums.resize(static_cast<std::size_t>(tiles * blocks));
    room.keys_rest.resize(static_cast<std::size_t>(widths.key / 2));
    room.values_rest.resize(static_cast<std::size_t>(pitch / 2));
    Ahead(keys, values, first, std::min(chunk, count), widths).all();
    lay_queries(q, rows, widths.key, room.queries.data());
    take_sums(state.values, rows, widths.value, room.sums);
    measure::configure({});
    const std::int64_t last = first + count;
    for (std::int64_t begin = first; begin < last; begin += chunk) {
        const std::int64_t some = std::min(chunk, last - begin);
        const std::int64_t filled = (some + side - 1) / side;
        Ahead ahead(keys, values, begin + chunk, std::min(chunk, last - begin - chunk), widths);
        const Bf16* of_keys[tiles_of_chunk];
        const Bf16* of_values[tiles_of_chunk];
        for (std::int64_t i = 0; i < tiles_of_chunk; ++i) {
            const std::int64_t at = i < filled ? i * side : 0;  // what is not there is the first again, and not counted
            of_keys[i] = whole_tile(keys, begin + at, some - at, widths.key, room.keys_rest.data());
            of_values[i] = whole_tile(values, begin + at, some - at, pitch, room.values_rest.data());
        }
        stored_before();
        for (std::int64_t i = 0; i < tiles; i += 2) {
            const Line* const queries = room.queries.data() + i * widths.key / 2;
            Scores* const to = room.scores.data() + i;
            i + 1 < tiles ? find_scores_of_two(of_keys, widths.key, queries, to, ahead)
                          : find_scores(of_keys, widths.key, queries, *to, ahead);
        }
        for (std::int64_t i = 0; i < tiles; ++i) {
            const auto at = static_cast<std::size_t>(i);
            const std::span sums(room.sums.data() + i * blocks, static_cast<std::size_t>(blocks));
            find_weights(room.scores[at], some, std::min(side, rows - i * side),
                         {state.largest + i * side, state.sum + i * side, nullptr}, sums, room.weights[at]);
        }
        stored_before();
        for (std::int64_t block = 0; block < blocks; ++block) {
            for (std::int64_t i = 0; i < tiles; ++i)
                add_values(room.weights[static_cast<std::size_t>(i)], of_values, filled, pitch_bytes, block * 2 * side,
                           room.sums[static_cast<std::size_t>(i * blocks + block)], ahead);
        }
        stored_before();
        ahead.all();
    }
    _tile_release();
    give_sums(room.sums, rows, widths.value, state.values);
}

}  // namespace roofline::bench::tile_rows_attention
#pragma GCC pop_options
#endif
