#include "roofline/bench/index_scores.hpp"

#include <algorithm>

namespace roofline::bench {

void IndexScores::find(const float* queries, const RowsApart& shares, const IndexKeys& keys, const IndexShape& shape,
                       float* scores, Threads& threads) {
    // Products of all heads of some tokens with all keys that the last of them sees.
    constexpr std::int64_t dots_at_once = 1 << 21;
    const std::int64_t at_once = std::clamp<std::int64_t>(dots_at_once / (shape.heads * shape.context), 1, 16);
    const std::int64_t past = shape.context - shape.tokens;
    const std::int64_t most = std::min(at_once, shape.tokens) * shape.heads * shape.context;
    if (static_cast<std::int64_t>(dots_.size()) < most) dots_.resize(static_cast<std::size_t>(most));
    for (std::int64_t sequence = 0; sequence < shape.batch; ++sequence) {
        for (std::int64_t token = 0; token < shape.tokens; token += at_once) {
            const std::int64_t some = std::min(at_once, shape.tokens - token);
            const std::int64_t row = sequence * shape.tokens + token;
            ProductCall call{.m = some * shape.heads,
                             .n = past + token + some,
                             .k = keys.dim,
                             .weights = keys.of(sequence),
                             .y = dots_.data()};
            activations_.prepare(queries + row * shape.heads * keys.dim, call, products_, threads);
            multiply(call, products_, threads);
            // Parts of rows: of one token all threads have some.
            constexpr std::int64_t strip = 1024;
            const std::int64_t strips = (call.n + strip - 1) / strip;
            threads.ranges(some * strips, 1, [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t item = first; item < last; ++item) {
                    const std::int64_t own = item / strips;
                    const std::int64_t at = item % strips * strip;
                    const std::int64_t seen = past + token + own + 1;
                    if (at >= seen) continue;
                    weigh_heads(dots_.data() + own * shape.heads * call.n + at, call.n,
                                shares.at + (row + own) * shares.pitch, shape.heads,
                                scores + (row + own) * shape.context + at, std::min(strip, seen - at));
                }
            });
        }
    }
}

}  // namespace roofline::bench
