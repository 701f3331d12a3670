#include "roofline/bench/kernels/routing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace roofline::bench {
namespace {

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

}  // namespace

void route(const float* scores, std::int64_t rows, std::int64_t experts, std::int64_t chosen, Routing& routing,
           Threads& threads) {
    routing.chosen = chosen;
    routing.places.resize(size(rows * chosen));
    routing.shares.resize(size(rows * chosen));
    // First the experts themselves stand where the places will.
    threads.ranges(rows, 16, [&](std::int64_t first, std::int64_t last) {
        std::vector<std::int64_t> order(size(experts));
        for (std::int64_t row = first; row < last; ++row) {
            const float* own = scores + row * experts;
            std::iota(order.begin(), order.end(), 0);
            std::partial_sort(order.begin(), order.begin() + chosen, order.end(), [&](std::int64_t a, std::int64_t b) {
                return own[a] != own[b] ? own[a] > own[b] : a < b;
            });
            float total = 0.0F;
            float* shares = routing.shares.data() + row * chosen;
            for (std::int64_t i = 0; i < chosen; ++i)
                total += shares[i] = std::exp(own[order[size(i)]] - own[order[0]]);
            for (std::int64_t i = 0; i < chosen; ++i) {
                shares[i] /= total;
                routing.places[size(row * chosen + i)] = order[size(i)];
            }
        }
    });
    routing.begins.assign(size(experts + 1), 0);
    for (const std::int64_t expert : routing.places) ++routing.begins[size(expert + 1)];
    std::partial_sum(routing.begins.begin(), routing.begins.end(), routing.begins.begin());
    std::vector<std::int64_t> next(routing.begins.begin(), routing.begins.end() - 1);
    routing.rows.resize(size(rows * chosen));
    for (std::int64_t i = 0; i < rows * chosen; ++i) {
        std::int64_t& place = routing.places[size(i)];
        place = next[size(place)]++;
        routing.rows[size(place)] = i / chosen;
    }
}

void scatter_rows(const float* x, const Routing& routing, float* y, std::int64_t width, Threads& threads) {
    threads.ranges(static_cast<std::int64_t>(routing.rows.size()), 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
            std::copy_n(x + routing.rows[size(i)] * width, width, y + i * width);
        }
    });
}

void combine_rows(const float* x, const Routing& routing, float* y, std::int64_t width, Threads& threads) {
    const auto rows = static_cast<std::int64_t>(routing.rows.size()) / routing.chosen;
    threads.ranges(rows, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
            float* sum = y + row * width;
            std::fill_n(sum, width, 0.0F);
            for (std::int64_t i = row * routing.chosen; i < (row + 1) * routing.chosen; ++i) {
                const float share = routing.shares[size(i)];
                const float* part = x + routing.places[size(i)] * width;
                for (std::int64_t column = 0; column < width; ++column) sum[column] += share * part[column];
            }
        }
    });
}

}  // namespace roofline::bench
