// Attention for any AArch64: bf16 is widened to fp32. Scores and weighted values are the same product, 16 keys or 16
// columns of values by up to four queries, over a cache in pairs (attention.hpp): a vector holds two numbers of four
// keys (or columns), which meet a lane of a query (or of its weights), so that nothing is added up across lanes. A
// cache in fp32 goes the way it goes anywhere (attention_lanes.inc).
//
// A Neoverse N1 core starts two vector instructions a cycle, and reads a line of 64 bytes in 8. One query takes 16
// instructions a line (8 to widen, 8 products), so memory can be met; four take 40, and then it is the processor.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "roofline/bench/kernels/attention.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <arm_neon.h>

#pragma GCC push_options
#pragma GCC target("tune=neoverse-n1")
namespace roofline::bench::neon_pairs {
namespace {

#define ROOFLINE_LANES 4
// clang-format off: the first says what the others are written with
#include "roofline/bench/kernels/lanes.inc"
#include "roofline/bench/kernels/attention_lanes.inc"
// clang-format on
#undef ROOFLINE_LANES

#define INLINE inline __attribute__((always_inline))

constexpr std::int64_t tile = 64;    // positions
constexpr std::int64_t ahead = 512;  // bytes
static_assert(tile == block);

/// Of `strips` of 16 keys or columns: sums += what `fours` x 4 numbers of each give with those of some queries.
struct Work {
    const Bf16* many;   // [strip][fours x 2][16][2]
    std::int64_t jump;  // numbers between strips
    const float* few;   // [fours x 4][queries]
    std::int64_t fours;
    std::int64_t strips;
    float* sums;          // [query][strip][16]
    std::int64_t stride;  // between sums of queries
};

// A vector is widened while the one before it is multiplied, as in neon_dot.cpp: one query is held back by instructions
// as much as by memory. v0 to v3: sums of even numbers, v4 to v7: of odd ones, v16 to v19: two vectors widened, v20 to
// v23: a line, v24 and v25: numbers of the query.
// clang-format off: a line is a vector
#define WIDEN(even, odd, w) "trn1 v" #even ".8h, v31.8h, v" #w ".8h\n trn2 v" #odd ".8h, v31.8h, v" #w ".8h\n"
#define ADD(one, two, even, odd, x, lane, next)                                                          \
    "fmla v" #one ".4s, v" #even ".4s, v" #x ".s[" #lane "]\n fmla v" #two ".4s, v" #odd ".4s, v" #x ".s[" #next "]\n"
#define LINE(at)                                                                                         \
    "ldp q20, q21, [%[many], #" #at "]\n ldp q22, q23, [%[many], #" #at " + 32]\n"                        \
    "prfm pldl1keep, [%[many], %[ahead] + " #at "]\n"
void multiply_by_one(const Work& work) {
    const Bf16* many = work.many;
    const float* few;
    float* sums = work.sums;
    std::int64_t strips = work.strips;
    std::int64_t left;
    asm volatile(
        "movi v31.4s, #0\n"
        "1:\n mov %[left], %[fours]\n mov %[few], %[begin]\n ldp q0, q1, [%[sums]]\n ldp q2, q3, [%[sums], #32]\n"
        "movi v4.4s, #0\n movi v5.4s, #0\n movi v6.4s, #0\n movi v7.4s, #0\n movi v18.4s, #0\n movi v19.4s, #0\n"
        "movi v25.4s, #0\n"
        "2:\n" LINE(0) "ldr q24, [%[few]]\n"
        WIDEN(16, 17, 20) ADD(3, 7, 18, 19, 25, 2, 3)
        WIDEN(18, 19, 21) ADD(0, 4, 16, 17, 24, 0, 1)
        WIDEN(16, 17, 22) ADD(1, 5, 18, 19, 24, 0, 1)
        WIDEN(18, 19, 23) ADD(2, 6, 16, 17, 24, 0, 1)
        LINE(64) "ldr q25, [%[few]], #16\n"
        WIDEN(16, 17, 20) ADD(3, 7, 18, 19, 24, 0, 1)
        WIDEN(18, 19, 21) ADD(0, 4, 16, 17, 25, 2, 3)
        WIDEN(16, 17, 22) ADD(1, 5, 18, 19, 25, 2, 3)
        WIDEN(18, 19, 23) ADD(2, 6, 16, 17, 25, 2, 3)
        "add %[many], %[many], #128\n subs %[left], %[left], #1\n b.ne 2b\n"
        ADD(3, 7, 18, 19, 25, 2, 3)
        "fadd v0.4s, v0.4s, v4.4s\n fadd v1.4s, v1.4s, v5.4s\n fadd v2.4s, v2.4s, v6.4s\n fadd v3.4s, v3.4s, v7.4s\n"
        "stp q0, q1, [%[sums]], #32\n stp q2, q3, [%[sums]], #32\n add %[many], %[many], %[jump], lsl #1\n"
        "subs %[strips], %[strips], #1\n b.ne 1b\n"
        : [many] "+r"(many), [sums] "+r"(sums), [strips] "+r"(strips), [few] "=&r"(few), [left] "=&r"(left)
        : [fours] "r"(work.fours), [begin] "r"(work.few), [jump] "r"(work.jump), [ahead] "i"(ahead)
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",
          "v25", "v31", "cc", "memory");
}
#undef ADD
#undef LINE

// More queries are held back by instructions alone. What widens a line stands together: its results come two cycles
// sooner than those of products, which make room for them at every change from the one to the other (four queries: 22
// cycles a line; 24 where half of it is widened at a time). v16 to v19: even numbers of a line, v20 to v23: odd ones,
// v24 and v25: those of the queries. Sums of vector i and query j are in v(4 i + j).
#define WIDEN_LINE(at)                                                                                   \
    "ldp q20, q21, [%[many], #" #at "]\n ldp q22, q23, [%[many], #" #at " + 32]\n"                        \
    "prfm pldl1keep, [%[many], %[ahead] + " #at "]\n"                                                     \
    WIDEN(16, 20, 20) WIDEN(17, 21, 21) WIDEN(18, 22, 22) WIDEN(19, 23, 23)
#define PAIR(a, b, w, x, lane, next)                                                                     \
    "fmla v" #a ".4s, v" #w ".4s, v" #x ".s[" #lane "]\n fmla v" #b ".4s, v" #w ".4s, v" #x ".s[" #next "]\n"
#define FOUR(a, b, c, d, w, x) PAIR(a, b, w, x, 0, 1) PAIR(c, d, w, x, 2, 3)
#define LINE_BY_FOUR(at, few_at)                                                                         \
    WIDEN_LINE(at) "ldp q24, q25, [%[few], #" #few_at "]\n"                                               \
    FOUR(0, 1, 2, 3, 16, 24) FOUR(4, 5, 6, 7, 17, 24) FOUR(8, 9, 10, 11, 18, 24) FOUR(12, 13, 14, 15, 19, 24) \
    FOUR(0, 1, 2, 3, 20, 25) FOUR(4, 5, 6, 7, 21, 25) FOUR(8, 9, 10, 11, 22, 25) FOUR(12, 13, 14, 15, 23, 25)
void multiply_by_four(const Work& work) {
    const Bf16* many = work.many;
    const float* few;
    float* sums = work.sums;
    std::int64_t strips = work.strips;
    std::int64_t left;
    asm volatile(
        "movi v31.4s, #0\n"
        "1:\n mov %[left], %[fours]\n mov %[few], %[begin]\n"
        "ldp q0, q4, [%[sums]]\n ldp q8, q12, [%[sums], #32]\n add x9, %[sums], %[stride], lsl #2\n"
        "ldp q1, q5, [x9]\n ldp q9, q13, [x9, #32]\n add x9, x9, %[stride], lsl #2\n"
        "ldp q2, q6, [x9]\n ldp q10, q14, [x9, #32]\n add x9, x9, %[stride], lsl #2\n"
        "ldp q3, q7, [x9]\n ldp q11, q15, [x9, #32]\n"
        "2:\n" LINE_BY_FOUR(0, 0) LINE_BY_FOUR(64, 32)
        "add %[many], %[many], #128\n add %[few], %[few], #64\n subs %[left], %[left], #1\n b.ne 2b\n"
        "stp q3, q7, [x9]\n stp q11, q15, [x9, #32]\n sub x9, x9, %[stride], lsl #2\n"
        "stp q2, q6, [x9]\n stp q10, q14, [x9, #32]\n sub x9, x9, %[stride], lsl #2\n"
        "stp q1, q5, [x9]\n stp q9, q13, [x9, #32]\n"
        "stp q0, q4, [%[sums]], #32\n stp q8, q12, [%[sums]], #32\n"
        "add %[many], %[many], %[jump], lsl #1\n subs %[strips], %[strips], #1\n b.ne 1b\n"
        : [many] "+r"(many), [sums] "+r"(sums), [strips] "+r"(strips), [few] "=&r"(few), [left] "=&r"(left)
        : [fours] "r"(work.fours), [begin] "r"(work.few), [jump] "r"(work.jump), [stride] "r"(work.stride),
          [ahead] "i"(ahead)
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
          "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v31", "x9", "cc", "memory");
}
#define LINE_BY_TWO(at, few_at)                                                                          \
    WIDEN_LINE(at) "ldr q24, [%[few], #" #few_at "]\n"                                                    \
    PAIR(0, 1, 16, 24, 0, 1) PAIR(4, 5, 17, 24, 0, 1) PAIR(8, 9, 18, 24, 0, 1) PAIR(12, 13, 19, 24, 0, 1) \
    PAIR(0, 1, 20, 24, 2, 3) PAIR(4, 5, 21, 24, 2, 3) PAIR(8, 9, 22, 24, 2, 3) PAIR(12, 13, 23, 24, 2, 3)
void multiply_by_two(const Work& work) {
    const Bf16* many = work.many;
    const float* few;
    float* sums = work.sums;
    std::int64_t strips = work.strips;
    std::int64_t left;
    asm volatile(
        "movi v31.4s, #0\n"
        "1:\n mov %[left], %[fours]\n mov %[few], %[begin]\n"
        "ldp q0, q4, [%[sums]]\n ldp q8, q12, [%[sums], #32]\n add x9, %[sums], %[stride], lsl #2\n"
        "ldp q1, q5, [x9]\n ldp q9, q13, [x9, #32]\n"
        "2:\n" LINE_BY_TWO(0, 0) LINE_BY_TWO(64, 16)
        "add %[many], %[many], #128\n add %[few], %[few], #32\n subs %[left], %[left], #1\n b.ne 2b\n"
        "stp q1, q5, [x9]\n stp q9, q13, [x9, #32]\n stp q0, q4, [%[sums]], #32\n stp q8, q12, [%[sums]], #32\n"
        "add %[many], %[many], %[jump], lsl #1\n subs %[strips], %[strips], #1\n b.ne 1b\n"
        : [many] "+r"(many), [sums] "+r"(sums), [strips] "+r"(strips), [few] "=&r"(few), [left] "=&r"(left)
        : [fours] "r"(work.fours), [begin] "r"(work.few), [jump] "r"(work.jump), [stride] "r"(work.stride),
          [ahead] "i"(ahead)
        : "v0", "v1", "v4", "v5", "v8", "v9", "v12", "v13", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",
          "v24", "v31", "x9", "cc", "memory");
}
// clang-format on
#undef WIDEN
#undef WIDEN_LINE
#undef PAIR
#undef FOUR
#undef LINE_BY_FOUR
#undef LINE_BY_TWO

template <int queries>
INLINE void multiply(const Work& work) {
    queries == 1 ? multiply_by_one(work) : queries == 2 ? multiply_by_two(work) : multiply_by_four(work);
}

/// Four positions of each query become [4 positions][queries].
INLINE void turn(const float32x4_t (&from)[1], float* to) {
    vst1q_f32(to, from[0]);
}
INLINE void turn(const float32x4_t (&from)[2], float* to) {
    vst1q_f32(to, vzip1q_f32(from[0], from[1]));
    vst1q_f32(to + 4, vzip2q_f32(from[0], from[1]));
}
INLINE void turn(const float32x4_t (&from)[4], float* to) {
    const auto wide = [](float32x4_t some) { return vreinterpretq_f64_f32(some); };
    const auto narrow = [](float64x2_t some) { return vreinterpretq_f32_f64(some); };
    const float64x2_t first = wide(vtrn1q_f32(from[0], from[1]));  // positions 0 and 2 of queries 0 and 1
    const float64x2_t second = wide(vtrn2q_f32(from[0], from[1]));
    const float64x2_t third = wide(vtrn1q_f32(from[2], from[3]));
    const float64x2_t fourth = wide(vtrn2q_f32(from[2], from[3]));
    vst1q_f32(to, narrow(vzip1q_f64(first, third)));
    vst1q_f32(to + 4, narrow(vzip1q_f64(second, fourth)));
    vst1q_f32(to + 8, narrow(vzip2q_f64(first, third)));
    vst1q_f32(to + 12, narrow(vzip2q_f64(second, fourth)));
}

/// The positions [begin, end) of a tile.
struct Span {
    std::int64_t begin;
    std::int64_t end;
};

/// Rows of a piece that go together, and where they are worked on.
struct Part {
    std::int64_t row;
    float* queries;  // [head_dim][rows of the part]
    float* weights;  // [tile][rows of the part]
};

/// Weights of a tile; what is in the sums so far shrinks when a larger score turns up.
template <int queries>
void find_weights(const Part& part, const Bf16* keys, Span span, std::int64_t head_dim, const AttentionState& state) {
    alignas(64) float scores[queries][tile] = {};
    const std::int64_t from = span.begin / 16;
    multiply<queries>({.many = keys + from * 16 * head_dim,
                       .jump = 0,
                       .few = part.queries,
                       .fours = head_dim / 4,
                       .strips = (span.end + 15) / 16 - from,
                       .sums = scores[0] + from * 16,
                       .stride = tile});
    const std::int64_t begin = span.begin / 4 * 4;
    const std::int64_t end = (span.end + 3) / 4 * 4;
    Floats totals[queries] = {};
    for (int query = 0; query < queries; ++query) {
        float* line = scores[query];
        for (std::int64_t i = begin; i < span.begin; ++i) line[i] = -1e30F;
        for (std::int64_t i = span.end; i < end; ++i) line[i] = -1e30F;
        float& largest = state.largest[part.row + query];
        Floats most = Floats{} + largest;
        for (std::int64_t i = begin; i < end; i += 4) most = vmaxq_f32(most, load(line + i));
        const float now = vmaxvq_f32(most);
        if (now > largest) {
            const float shrink = exponential(Floats{} + (largest - now))[0];
            float* values = state.values + (part.row + query) * head_dim;
            for (std::int64_t i = 0; i < head_dim; i += 4) save(values + i, load(values + i) * shrink);
            state.sum[part.row + query] *= shrink;
            largest = now;
        }
    }
    // Several at a time: each is a long chain.
    constexpr int at_once = 4 / queries;
    const auto weigh = [&]<int some>(std::int64_t at, std::integral_constant<int, some>) {
        float32x4_t powers[some][queries];
#pragma GCC unroll 4
        for (int i = 0; i < some; ++i) {
#pragma GCC unroll 4
            for (int query = 0; query < queries; ++query)
                powers[i][query] = exponential(load(scores[query] + at + 4 * i) - state.largest[part.row + query]);
        }
#pragma GCC unroll 4
        for (int i = 0; i < some; ++i) {
#pragma GCC unroll 4
            for (int query = 0; query < queries; ++query) totals[query] += powers[i][query];
            turn(powers[i], part.weights + (at + 4 * i) * queries);
        }
    };
    std::int64_t at = begin;
    for (; at + 4 * at_once <= end; at += 4 * at_once) weigh(at, std::integral_constant<int, at_once>());
    for (; at < end; at += 4) weigh(at, std::integral_constant<int, 1>());
    for (int query = 0; query < queries; ++query) state.sum[part.row + query] += vaddvq_f32(totals[query]);
}

template <int queries>
void add_values(const Part& part, const Bf16* values, Span span, std::int64_t head_dim, const AttentionState& state) {
    const std::int64_t begin = span.begin / 4;
    const std::int64_t fours = (span.end + 3) / 4 - begin;
    multiply<queries>({.many = values + begin * 64,
                       .jump = tile * 16 - fours * 64,
                       .few = part.weights + begin * 4 * queries,
                       .fours = fours,
                       .strips = head_dim / 16,
                       .sums = state.values + part.row * head_dim,
                       .stride = head_dim});
}

void piece_bf16(const float* q, std::int64_t rows, const Bf16* keys, const Bf16* values, std::int64_t first,
                std::int64_t count, const HeadWidths& widths, const AttentionState& state) {
    const std::int64_t head_dim = widths.key;
    static thread_local std::vector<float> room;
    room.resize(static_cast<std::size_t>(rows * (head_dim + tile)));
    float* const weights = room.data() + rows * head_dim;
    // Calls with(part, its rows) for all rows: in fours, then a pair, then one.
    const auto all_parts = [&](const auto& with) {
        std::int64_t row = 0;
        const auto next = [&](auto size) {
            with(Part{row, room.data() + row * head_dim, weights + row * tile}, size);
            row += size;
        };
        while (row + 4 <= rows) next(std::integral_constant<int, 4>());
        if (row + 2 <= rows) next(std::integral_constant<int, 2>());
        if (row < rows) next(std::integral_constant<int, 1>());
    };
    all_parts([&](const Part& part, auto size) {
        for (std::int64_t query = 0; query < size; ++query) {
            for (std::int64_t i = 0; i < head_dim; ++i)
                part.queries[i * size + query] = q[(part.row + query) * head_dim + i];
        }
    });
    const std::int64_t last = first + count;
    for (std::int64_t begin = first / tile * tile; begin < last; begin += tile) {
        const Span span = {std::max<std::int64_t>(0, first - begin), std::min(tile, last - begin)};
        all_parts([&](const Part& part, auto size) {
            find_weights<size>(part, keys + begin * head_dim, span, head_dim, state);
        });
        all_parts([&](const Part& part, auto size) {
            add_values<size>(part, values + begin * head_dim, span, head_dim, state);
        });
    }
}

}  // namespace
}  // namespace roofline::bench::neon_pairs
#pragma GCC pop_options

namespace roofline::bench {
const AttentionKernels* neon_pairs_attention() {
    static constexpr AttentionKernels kernels = {"NEON", neon_pairs::piece_bf16, neon_pairs::attention_piece<Bf16>,
                                                 neon_pairs::attention_piece<float>, KvLayout::pairs};
    return &kernels;
}
}  // namespace roofline::bench
#else
namespace roofline::bench {
const AttentionKernels* neon_pairs_attention() {
    return nullptr;
}
}  // namespace roofline::bench
#endif
