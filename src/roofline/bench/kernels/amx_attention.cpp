// Attention for x86-64 with tile registers (AMX), over a cache in pairs (attention.hpp), of which every kilobyte is a
// tile: two numbers of 16 keys in each of 16 lines, or two positions of 16 columns of values. Queries are the left
// operand, up to two tiles of 16, and so are their weights, both in bf16.
//
// A product of tiles takes 16 cycles for a kilobyte, with any number of queries: some ten times as fast as memory gives
// it to one of many processors. So decoding waits for memory, and what it reads is asked for a chunk ahead: values
// while keys are multiplied, and the next keys meanwhile. Four results are under way at a time, because each product
// waits 52 cycles for the one before it.
#include "roofline/bench/kernels/attention.hpp"

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

#define ROOFLINE_LANES 16
#include "roofline/bench/kernels/lanes.inc"
#undef ROOFLINE_LANES

#define INLINE inline __attribute__((always_inline))

constexpr std::int64_t side = 16;            // queries, keys or columns of a tile
constexpr std::int64_t line = 64;            // bytes
constexpr std::int64_t tile = 512;           // numbers in bf16
constexpr std::int64_t strip = 2 * side;     // keys, or positions of values, that are multiplied together
constexpr std::int64_t most_positions = 64;  // the positions of values that lie together
constexpr std::int64_t chunk = 128;          // positions whose scores are known before their values are read
static_assert(chunk % most_positions == 0);

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

/// A tile of what lies ahead is asked for with each that is multiplied.
class Ahead {
  public:
    Ahead(const Bf16* from, std::int64_t tiles) : at_(from), left_(tiles) {}
    INLINE void ask() {
        if (left_ <= 0) return;
        for (int i = 0; i < 16; ++i) __builtin_prefetch(at_ + 32 * i, 0, 2);
        at_ += tile;
        --left_;
    }
    std::int64_t left() const { return left_; }

  private:
    const Bf16* at_;
    std::int64_t left_;
};

/// To bf16.
INLINE void narrow(const Floats& first, const Floats& second, Bf16* to) {
    const __m512bh both = _mm512_cvtne2ps_pbh(second, first);
    __builtin_memcpy(to, &both, sizeof both);
}

INLINE void stored_before() {
    asm volatile("" : : : "memory");  // the loads of tiles do not say what they read
}

// Tiles 0 to 3 are results: of one tile of queries with four of keys or values, or with two of each. 4 and 5 are
// queries (or weights), 6 and 7 in turn keys or values.
#define MULTIPLY(right, result, result_too, from) \
    ahead.ask();                                  \
    _tile_loadd(right, from, line);               \
    _tile_dpbf16ps(result, 4, right);             \
    if constexpr (both) _tile_dpbf16ps(result_too, 5, right);
#define MULTIPLY_ALL(left, left_too, right, apart)      \
    _tile_loadd(4, left, line);                         \
    if constexpr (both) _tile_loadd(5, left_too, line); \
    MULTIPLY(6, 0, 2, right)                            \
    MULTIPLY(7, 1, 3, (right) + (apart))                \
    if constexpr (across == 4) {                        \
        MULTIPLY(6, 2, 2, (right) + 2 * (apart))        \
        MULTIPLY(7, 3, 3, (right) + 3 * (apart))        \
    }
#define ALL_RESULTS(DO, at, beside, below)                       \
    DO(0, at)                                                    \
    DO(1, (at) + (beside))                                       \
    if constexpr (both || across == 4) {                         \
        DO(2, (at) + (both ? (below) : 2 * (beside)))            \
        DO(3, (at) + (beside) + (both ? (below) : 2 * (beside))) \
    }

/// The scores of 16 x `across` keys.
template <bool both, int across>
INLINE void find_scores(const Bf16* queries, const Bf16* keys, std::int64_t head_dim, Ahead& ahead, float* to) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (std::int64_t i = 0; i < head_dim * side; i += tile) {
        MULTIPLY_ALL(queries + i, queries + side * head_dim + i, keys + i, side * head_dim)
    }
#define SAVE(result, at) _tile_stored(result, at, chunk * sizeof(float));
    ALL_RESULTS(SAVE, to, side, side * chunk)
#undef SAVE
}

/// Queries lie as lay_queries leaves them; there are more than a tile's where it is `both`.
template <bool both>
void find_all_scores(const Bf16* queries, const Bf16* keys, Span span, std::int64_t head_dim, Ahead ahead, Room& room) {
    stored_before();
    for (std::int64_t at = span.begin; at < span.end;) {
        const Bf16* const from = keys + at * strip * head_dim;
        float* const to = room.scores[0] + at * strip;
        if (!both && at + 2 <= span.end) {
            find_scores<false, 4>(queries, from, head_dim, ahead, to);
            at += 2;
        } else {
            find_scores<both, 2>(queries, from, head_dim, ahead, to);
            ++at;
        }
    }
}

/// Of one query; what is in its sums so far shrinks when a larger score turns up.
void find_weights(std::int64_t query, Span span, std::int64_t head_dim, const AttentionState& state, Room& room) {
    float* const scores = room.scores[query];
    const std::int64_t begin = span.begin * strip;
    const std::int64_t end = span.end * strip;
    for (std::int64_t i = begin; i < span.first; ++i) scores[i] = -1e30F;
    for (std::int64_t i = span.last; i < end; ++i) scores[i] = -1e30F;
    float& largest = state.largest[query];
    Floats most = Floats{} + largest;
    for (std::int64_t i = begin; i < end; i += side) {
        const Floats some = load(scores + i);
        most = some > most ? some : most;
    }
    const float now = folded<true>(most);
    if (now > largest) {
        const Floats shrink = exponential(Floats{} + (largest - now));
        float* const values = state.values + query * head_dim;
        for (std::int64_t i = 0; i < head_dim; i += side) save(values + i, load(values + i) * shrink);
        state.sum[query] *= shrink[0];
        largest = now;
    }
    Floats sums = {};
    for (std::int64_t at = span.begin; at < span.end; ++at) {
        const Floats first = exponential(load(scores + at * strip) - now);
        const Floats second = exponential(load(scores + at * strip + side) - now);
        sums += first + second;
        narrow(first, second, &room.weights[query / side][at][query % side * strip]);
    }
    state.sum[query] += sum(sums);
}

/// 16 x `across` columns of values.
template <bool both, int across>
INLINE void add_columns(const Bf16* values, Span span, std::int64_t head_dim, Ahead& ahead, const Room& room,
                        float* sums) {
    const std::int64_t row_bytes = head_dim * static_cast<std::int64_t>(sizeof(float));
#define LOAD(result, at) _tile_loadd(result, at, row_bytes);
#define SAVE(result, at) _tile_stored(result, at, row_bytes);
    ALL_RESULTS(LOAD, sums, side, side * head_dim)
    for (std::int64_t at = span.begin; at < span.end; ++at) {
        const Bf16* const from = values + at / 2 * most_positions * head_dim + at % 2 * tile;
        MULTIPLY_ALL(room.weights[0][at], room.weights[1][at], from, 2 * tile)
    }
    ALL_RESULTS(SAVE, sums, side, side * head_dim)
#undef LOAD
#undef SAVE
}

template <bool both>
void add_values(const Bf16* values, Span span, std::int64_t head_dim, Ahead ahead, const Room& room, float* sums) {
    stored_before();
    for (std::int64_t i = 0; i < head_dim;) {
        const Bf16* const from = values + i * most_positions;
        if (!both && i + 4 * side <= head_dim) {
            add_columns<false, 4>(from, span, head_dim, ahead, room, sums + i);
            i += 4 * side;
        } else {
            add_columns<both, 2>(from, span, head_dim, ahead, room, sums + i);
            i += 2 * side;
        }
    }
}
#undef MULTIPLY
#undef MULTIPLY_ALL
#undef ALL_RESULTS

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
    std::int64_t configured = 0;
    const std::int64_t last = first + count;
    const auto ahead_of = [&](const Bf16* from, std::int64_t begin) {
        const std::int64_t positions = std::clamp<std::int64_t>(last - begin, 0, chunk);
        return Ahead(from + begin * head_dim, (positions + strip - 1) / strip * strip * head_dim / tile);
    };
    for (Ahead keys_first = ahead_of(keys, first / strip * strip); keys_first.left() > 0;) keys_first.ask();
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
            const AttentionState here = {state.largest + row, state.sum + row, state.values + row * head_dim};
            const auto find = some > side ? find_all_scores<true> : find_all_scores<false>;
            const auto add = some > side ? add_values<true> : add_values<false>;
            const Ahead nothing(nullptr, 0);
            find(laid.data()->values + row * head_dim, keys + begin * head_dim, span, head_dim,
                 row == 0 ? ahead_of(values, begin) : nothing, room);
            for (std::int64_t query = 0; query < some; ++query) find_weights(query, span, head_dim, here, room);
            add(values + begin * head_dim, span, head_dim, row == 0 ? ahead_of(keys, begin + chunk) : nothing, room,
                here.values);
        }
    }
    _tile_release();
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
        static const AttentionKernels kernels = {"AMX", tile_attention::piece_bf16, vectors->bf16_rows, vectors->fp32,
                                                 KvLayout::pairs};
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
