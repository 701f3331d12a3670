#include "roofline/bench/kernels/chosen.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "roofline/bench/kernels/best_of.hpp"

namespace roofline::bench {
namespace {

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

/// Some positions, few enough that their sums stay in the nearest cache while heads go by.
inline __attribute__((always_inline)) void weigh_run(const float* dots, std::int64_t pitch, const float* shares,
                                                     std::int64_t heads, float* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = 0.0F;
    for (std::int64_t head = 0; head < heads; ++head) {
        const float* from = dots + head * pitch;
        const float share = shares[head];
        for (std::int64_t i = 0; i < count; ++i) to[i] += share * (from[i] > 0.0F ? from[i] : 0.0F);
    }
}

}  // namespace

Weights IndexKeys::of(std::int64_t sequence) const {
    Weights keys;
    keys.type = WeightFormat::int8;
    keys.values = values + sequence * capacity * dim;
    keys.row_scales = scales + sequence * capacity;
    keys.tiles = tiles;
    return keys;
}

void IndexKeys::read(std::int64_t sequence, std::int64_t position, float* to) const {
    const std::int8_t* own = values + sequence * capacity * dim;
    for (std::int64_t i = 0; i < dim; ++i) {
        const std::int64_t place = tiles == Tiles::none ? position * dim + i : tile_place(tiles, position, i, dim);
        to[i] = static_cast<float>(own[place]) * scales[sequence * capacity + position];
    }
}

void write_index_keys(const RowsApart& keys, const IndexKeys& to, std::int64_t batch, std::int64_t tokens,
                      std::int64_t first, Threads& threads) {
    constexpr std::int64_t together = 4;  // bytes that lie side by side in tiles of any kind
    std::vector<float> rows(size(batch * tokens * to.dim));
    std::vector<std::int8_t> narrow(rows.size());
    std::vector<float> scales(size(batch * tokens));
    turn(keys.at, rows.data(), {batch * tokens, 1, to.dim, keys.pitch, to.dim}, threads);
    narrow_to_int8(rows.data(), narrow.data(), scales.data(), nullptr, batch * tokens * to.dim, to.dim, threads);
    threads.ranges(batch * tokens, 64, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
            const std::int64_t sequence = row / tokens;
            const std::int64_t position = first + row % tokens;
            std::int8_t* own = to.values + sequence * to.capacity * to.dim;
            for (std::int64_t at = 0; at < to.dim; at += together) {
                const std::int64_t place =
                    to.tiles == Tiles::none ? position * to.dim + at : tile_place(to.tiles, position, at, to.dim);
                std::memcpy(own + place, narrow.data() + row * to.dim + at, together);
            }
            to.scales[sequence * to.capacity + position] = scales[size(row)];
        }
    });
}

void weigh_heads(const float* dots, std::int64_t pitch, const float* shares, std::int64_t heads, float* to,
                 std::int64_t count) {
    static const auto best =
        best_of<weigh_run, const float*, std::int64_t, const float*, std::int64_t, float*, std::int64_t>();
    best(dots, pitch, shares, heads, to, count);
}

void choose_entries(const float* scores, std::int64_t pitch, std::int64_t rows, std::int64_t tokens, std::int64_t past,
                    std::int64_t chosen, std::int64_t* places, Threads& threads) {
    threads.ranges(rows, 1, [&](std::int64_t first, std::int64_t last) {
        static thread_local std::vector<float> order;
        for (std::int64_t row = first; row < last; ++row) {
            const std::int64_t seen = past + row % tokens + 1;
            if (seen < chosen) continue;
            const float* own = scores + row * pitch;
            order.assign(own, own + seen);
            std::nth_element(order.begin(), order.begin() + chosen - 1, order.end(), std::greater<>());
            const float least = order[size(chosen - 1)];
            // Of those that are as good as the least the first ones.
            std::int64_t equal = chosen - std::count_if(order.begin(), order.begin() + chosen,
                                                        [&](float score) { return score > least; });
            std::int64_t* to = places + row * chosen;
            for (std::int64_t place = 0; place < seen; ++place) {
                if (own[place] > least || (own[place] == least && equal-- > 0)) *to++ = place;
            }
        }
    });
}

void attend_to_chosen(const AttentionCall& call, const std::int64_t* places, std::int64_t chosen,
                      const AttentionKernels& kernels, Threads& threads, ChosenScratch& scratch) {
    const std::int64_t past = call.context - call.tokens;
    const std::int64_t early = std::clamp<std::int64_t>(chosen - past, 0, call.tokens);  // these see no more
    if (early == call.tokens) return attend(call, kernels, threads, scratch.attention);
    const std::int64_t entry = call.widths.key * bits(call.kv) / 8;
    const std::int64_t query = call.query_heads * call.widths.key;
    const std::int64_t result = call.query_heads * call.widths.value;
    // As many rows at a time as there are threads: what one of them has put together another finds in a cache.
    const std::int64_t at_once = std::max<std::int64_t>(1, threads.count());
    const std::int64_t lines = (at_once * chosen * entry + 63) / 64;
    if (scratch.entries.size() < size(lines)) scratch.entries.resize(size(lines));
    auto* together = reinterpret_cast<std::byte*>(scratch.entries.data());
    for (std::int64_t sequence = 0; sequence < call.batch; ++sequence) {
        const auto* entries = static_cast<const std::byte*>(call.keys) + sequence * call.capacity * entry;
        const std::int64_t row = sequence * call.tokens;
        AttentionCall one = call;
        one.batch = 1;
        if (early > 0) {
            one.tokens = early;
            one.context = past + early;
            one.q = call.q + row * query;
            one.keys = one.values = entries;
            one.out = call.out + row * result;
            attend(one, kernels, threads, scratch.attention);
        }
        for (std::int64_t begin = row + early; begin < row + call.tokens; begin += at_once) {
            const std::int64_t some = std::min(at_once, row + call.tokens - begin);
            threads.ranges(some * chosen, 64, [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t i = first; i < last; ++i)
                    std::memcpy(together + i * entry, entries + places[begin * chosen + i] * entry, size(entry));
            });
            one.batch = some;  // each as a sequence of its own
            one.tokens = 1;
            one.context = one.capacity = chosen;
            one.q = call.q + begin * query;
            one.keys = one.values = together;
            one.out = call.out + begin * result;
            attend(one, kernels, threads, scratch.attention);
        }
    }
}

}  // namespace roofline::bench
