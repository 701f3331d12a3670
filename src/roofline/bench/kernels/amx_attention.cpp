// Attention for x86-64 with tile registers (AMX), over a cache in pairs (attention.hpp), of which every kilobyte is a
// tile: two numbers of 16 keys in each of 16 lines, or two positions of 16 columns of values. Queries are the left
// operand, up to two tiles of 16, and so are their weights, both in bf16.
//
// A product of tiles takes 16 cycles for a kilobyte, with any number of queries: some ten times as fast as memory gives
// it to one of many processors. So decoding waits for memory, and meets keys and values in the order in which they lie:
// loads of tiles that ask for the next kilobyte or two read as fast as a loop that only reads. With more than a tile of
// queries four results are under way at a time, because each product waits 52 cycles for the one before it.
#include "roofline/bench/kernels/amx_attention.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <algorithm>
#include <immintrin.h>
#include <utility>
#include <vector>

#include "roofline/measure/tile_registers.hpp"

#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma,prefer-vector-width=512")
namespace roofline::bench::tile_attention {
namespace {

#include "roofline/bench/kernels/amx_attention.inc"
// Behind what it is written with.
#include "roofline/bench/kernels/reference_lanes.inc"

constexpr std::int64_t strip = 2 * side;     // keys, or positions of values, that are multiplied together
constexpr std::int64_t most_positions = 64;  // the positions of values that lie together
constexpr std::int64_t chunk = 128;          // positions whose scores are known before their values are read
static_assert(chunk % most_positions == 0);
// Tiles that are under way while one is met: reading gives most with the next kilobyte or two. While weights are found
// nothing is met, and some more are asked for; with more than a tile of queries keys and values are not met in order.
constexpr std::int64_t tiles_ahead = 2;
constexpr std::int64_t tiles_ahead_of_weights = 8;
constexpr std::int64_t tiles_ahead_of_several = 32;

/// The strips [begin, end) of a chunk, of which the positions [first, last) count.
struct Span {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t first;
    std::int64_t last;
};

struct alignas(64) Room {
    float scores[2 * side][chunk];
    Bf16 weights[2][chunk / strip][tile];
};

/// What is read of a head, tile after tile: the keys of a chunk, its values, the keys of the next. A few tiles more are
/// asked for than have been met.
class Ahead {
  public:
    Ahead() = default;
    Ahead(const Bf16* keys, const Bf16* values, std::int64_t first, std::int64_t last, std::int64_t head_dim)
        : keys_(keys), values_(values), first_(first), last_(last), head_dim_(head_dim) {
        begin_ = first / most_positions * most_positions;
        take(keys_);
    }
    /// A tile is met, or none yet, while `distance` are under way.
    INLINE void meet(std::int64_t distance) {
        --under_way_;
        ask(distance);
    }
    INLINE void ask(std::int64_t distance) {
        if (left_ == 0 || under_way_ >= distance) return;
        for (int i = 0; i < 16; ++i) __builtin_prefetch(at_ + 32 * i, 0, 2);
        at_ += tile;
        ++under_way_;
        if (--left_ == 0) go_on();
    }

  private:
    void take(const Bf16* from) {
        const std::int64_t skipped = std::max<std::int64_t>(0, first_ - begin_) / strip * strip;
        const std::int64_t positions = std::clamp<std::int64_t>(last_ - begin_, 0, chunk) - skipped;
        at_ = from + (begin_ + skipped) * head_dim_;
        left_ = std::max<std::int64_t>(0, (positions + strip - 1) / strip * strip * head_dim_ / tile);
    }
    void go_on() {
        of_keys_ = !of_keys_;
        if (of_keys_) begin_ += chunk;
        take(of_keys_ ? keys_ : values_);
    }

    const Bf16* keys_ = nullptr;
    const Bf16* values_ = nullptr;
    std::int64_t first_ = 0;
    std::int64_t last_ = 0;
    std::int64_t head_dim_ = 0;
    std::int64_t begin_ = 0;
    bool of_keys_ = true;
    const Bf16* at_ = nullptr;
    std::int64_t left_ = 0;
    std::int64_t under_way_ = 0;
};

// Of two tiles of queries (or weights), 4 and 5, with two of keys or values, 6 and 7: tiles 0 to 3 are results, a row
// of them for each of the left ones.
#define MULTIPLY_ALL(left, left_too, right, right_too) \
    _tile_loadd(4, left, line);                        \
    _tile_loadd(5, left_too, line);                    \
    ahead.meet(tiles_ahead_of_several);                \
    _tile_loadd(6, right, line);                       \
    _tile_dpbf16ps(0, 4, 6);                           \
    _tile_dpbf16ps(2, 5, 6);                           \
    ahead.meet(tiles_ahead_of_several);                \
    _tile_loadd(7, right_too, line);                   \
    _tile_dpbf16ps(1, 4, 7);                           \
    _tile_dpbf16ps(3, 5, 7);

/// The scores of 32 keys and of two tiles of queries.
INLINE void find_scores_of_two(const Bf16* queries, const Bf16* keys, std::int64_t head_dim, Ahead& ahead, float* to) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (std::int64_t i = 0; i < head_dim * side; i += tile) {
        MULTIPLY_ALL(queries + i, queries + side * head_dim + i, keys + i, keys + side * head_dim + i)
    }
    constexpr std::int64_t row_bytes = chunk * sizeof(float);
    _tile_stored(0, to, row_bytes);
    _tile_stored(1, to + side, row_bytes);
    _tile_stored(2, to + side * chunk, row_bytes);
    _tile_stored(3, to + side * chunk + side, row_bytes);
}

/// The scores of 32 keys and of one tile of queries, as keys follow each other in memory.
INLINE void find_scores_in_order(const Bf16* queries, const Bf16* keys, std::int64_t head_dim, Ahead& ahead,
                                 float* to) {
    _tile_zero(0);
    for (std::int64_t i = 0; i < head_dim * side; i += tile) {
        ahead.meet(tiles_ahead);
        _tile_loadd(4, queries + i, line);
        _tile_loadd(6, keys + i, line);
        _tile_dpbf16ps(0, 4, 6);
    }
    _tile_stored(0, to, chunk * sizeof(float));
    _tile_zero(1);
    for (std::int64_t i = 0; i < head_dim * side; i += tile) {
        ahead.meet(tiles_ahead);
        _tile_loadd(4, queries + i, line);
        _tile_loadd(7, keys + side * head_dim + i, line);
        _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stored(1, to + side, chunk * sizeof(float));
}

/// Queries lie as lay_queries leaves them; there are more than a tile's where it is `both`.
template <bool both>
void find_all_scores(const Bf16* queries, const Bf16* keys, Span span, std::int64_t head_dim, Ahead& ahead,
                     Room& room) {
    stored_before();
    for (std::int64_t at = span.begin; at < span.end; ++at) {
        const Bf16* const from = keys + at * strip * head_dim;
        float* const to = room.scores[0] + at * strip;
        if constexpr (both)
            find_scores_of_two(queries, from, head_dim, ahead, to);
        else
            find_scores_in_order(queries, from, head_dim, ahead, to);
    }
}

/// Of one query, whose weights are added up in the lanes of `total`.
void find_weights(std::int64_t query, Span span, std::int64_t head_dim, const AttentionState& state, float* total,
                  Room& room) {
    float* const scores = room.scores[query];
    float& reference = state.largest[query];
    refer_to(scores, span.begin * strip, span.end * strip, span.first, span.last, head_dim, reference, total,
             state.values + query * head_dim);
    const float least = reference * log2_e;
    Floats sums = load(total);
    for (std::int64_t at = span.begin; at < span.end; ++at) {
        const Floats first = power_of_two(load(scores + at * strip) * log2_e - least);
        const Floats second = power_of_two(load(scores + at * strip + side) * log2_e - least);
        sums += first + second;
        narrow(first, second, &room.weights[query / side][at][query % side * strip]);
    }
    save(total, sums);
}

/// Adds weighted values of 32 columns to the sums of two tiles of queries.
INLINE void add_columns(const Bf16* values, Span span, std::int64_t head_dim, Ahead& ahead, const Room& room,
                        float* sums) {
    const std::int64_t row_bytes = head_dim * static_cast<std::int64_t>(sizeof(float));
    float* const sums_too = sums + side * head_dim;
    _tile_loadd(0, sums, row_bytes);
    _tile_loadd(1, sums + side, row_bytes);
    _tile_loadd(2, sums_too, row_bytes);
    _tile_loadd(3, sums_too + side, row_bytes);
    for (std::int64_t at = span.begin; at < span.end; ++at) {
        const Bf16* const from = values + at / 2 * most_positions * head_dim + at % 2 * tile;
        MULTIPLY_ALL(room.weights[0][at], room.weights[1][at], from, from + 2 * tile)
    }
    _tile_stored(0, sums, row_bytes);
    _tile_stored(1, sums + side, row_bytes);
    _tile_stored(2, sums_too, row_bytes);
    _tile_stored(3, sums_too + side, row_bytes);
}
#undef MULTIPLY_ALL

/// Those of one tile of queries, as values follow each other in memory.
INLINE void add_in_order(const Bf16* values, Span span, std::int64_t head_dim, Ahead& ahead, const Room& room,
                         float* sums) {
    const std::int64_t row_bytes = head_dim * static_cast<std::int64_t>(sizeof(float));
    for (std::int64_t at = span.begin; at < span.end;) {
        const bool two = at % 2 == 0 && at + 2 <= span.end;  // strips of these 64 positions
        _tile_loadd(4, room.weights[0][at], line);
        if (two) _tile_loadd(5, room.weights[0][at + 1], line);
        const Bf16* from = values + at / 2 * most_positions * head_dim + at % 2 * tile;
        for (std::int64_t i = 0; i < head_dim; i += side, from += 2 * tile) {
            ahead.meet(tiles_ahead);
            _tile_loadd(0, sums + i, row_bytes);
            _tile_loadd(6, from, line);
            _tile_dpbf16ps(0, 4, 6);
            if (two) {
                ahead.meet(tiles_ahead);
                _tile_loadd(7, from + tile, line);
                _tile_dpbf16ps(0, 5, 7);
            }
            _tile_stored(0, sums + i, row_bytes);
        }
        at += two ? 2 : 1;
    }
}

template <bool both>
void add_values(const Bf16* values, Span span, std::int64_t head_dim, Ahead& ahead, const Room& room, float* sums) {
    stored_before();
    if constexpr (!both) return add_in_order(values, span, head_dim, ahead, room, sums);
    for (std::int64_t i = 0; i < head_dim; i += 2 * side)
        add_columns(values + i * most_positions, span, head_dim, ahead, room, sums + i);
}
void configure_for(std::int64_t queries) {
    measure::TileConfig config;
    const auto first = static_cast<std::uint8_t>(std::min(side, queries));
    const auto second = queries > side ? static_cast<std::uint8_t>(queries - side) : first;
    for (const int i : {0, 1, 4}) config.rows[i] = first;
    for (const int i : {2, 3, 5}) config.rows[i] = second;
    measure::configure(config);
}

/// In bf16, [tile of queries][head_dim / 32][16][32].
void lay_queries(const float* q, std::int64_t rows, std::int64_t head_dim, Bf16* to) {
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t i = 0; i < head_dim; i += 32) {
            const float* from = q + row * head_dim + i;
            narrow(load(from), load(from + side), to + (row / side * head_dim + i) * side + row % side * 32);
        }
    }
}

void piece_bf16(const float* q, std::int64_t rows, const Bf16* keys, const Bf16* values, std::int64_t first,
                std::int64_t count, const HeadWidths& widths, const AttentionState& state) {
    const std::int64_t head_dim = widths.key;
    struct alignas(64) Line {
        Bf16 values[32];
    };
    static thread_local std::vector<Line> laid;
    static thread_local Room room;
    laid.resize(static_cast<std::size_t>((rows + side - 1) / side * side * head_dim / 32));
    lay_queries(q, rows, head_dim, laid.data()->values);
    static thread_local std::vector<LineOfFloats> totals;  // of weights, sixteen to a query that are to be added up
    totals.assign(static_cast<std::size_t>(rows), {});
    float* const total = totals.data()->floats;
    for (std::int64_t row = 0; row < rows; ++row) total[row * side] = state.sum[row];
    std::int64_t configured = 0;
    const std::int64_t last = first + count;
    Ahead of_memory(keys, values, first, last, head_dim);
    for (std::int64_t i = 0; i < tiles_ahead; ++i) of_memory.ask(tiles_ahead);
    for (std::int64_t begin = first / most_positions * most_positions; begin < last; begin += chunk) {
        Span span;
        span.first = std::max<std::int64_t>(0, first - begin);
        span.last = std::min(chunk, last - begin);
        span.begin = span.first / strip;
        span.end = (span.last + strip - 1) / strip;
        for (std::int64_t row = 0; row < rows; row += 2 * side) {
            const std::int64_t some = std::min(rows - row, 2 * side);
            if (some != configured) configure_for(some);
            configured = some;
            const AttentionState here = {state.largest + row, nullptr, state.values + row * head_dim};
            const auto find = some > side ? find_all_scores<true> : find_all_scores<false>;
            const auto add = some > side ? add_values<true> : add_values<false>;
            Ahead nothing;  // what later rows meet is in the caches
            Ahead& ahead = row == 0 ? of_memory : nothing;
            find(laid.data()->values + row * head_dim, keys + begin * head_dim, span, head_dim, ahead, room);
            for (std::int64_t query = 0; query < some; ++query) {
                ahead.ask(tiles_ahead_of_weights);
                find_weights(query, span, head_dim, here, total + (row + query) * side, room);
            }
            add(values + begin * head_dim, span, head_dim, ahead, room, here.values);
        }
    }
    _tile_release();
    for (std::int64_t row = 0; row < rows; ++row) state.sum[row] = sum(load(total + row * side));
}

}  // namespace
}  // namespace roofline::bench::tile_attention
#pragma GCC pop_options

namespace roofline::bench {
const AttentionKernels* amx_attention() {
    static const AttentionKernels* const here = []() -> const AttentionKernels* {
        const AttentionKernels* vectors = avx512_attention();
        if (vectors == nullptr || !__builtin_cpu_supports("avx512bf16") || !measure::has_tile_products_bf16())
            return nullptr;
        static const AttentionKernels kernels = {"AMX", tile_attention::piece_bf16, tile_rows_attention::piece,
                                                 vectors->fp32, KvLayout::pairs};
        return &kernels;
    }();
    return here;
}
}  // namespace roofline::bench
#else
namespace roofline::bench {
const AttentionKernels* amx_attention() {
    return nullptr;
}
}  // namespace roofline::bench
#endif
