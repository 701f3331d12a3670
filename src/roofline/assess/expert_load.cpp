#include "roofline/assess/expert_load.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace roofline::assess {
namespace {

using Counts = std::vector<std::int64_t>;

constexpr int draws = 5;  // the mean moves by a few percent with more, and each costs a pow per expert

/// Numbers in [0, 1), the same on every machine: splitmix64.
class Uniform {
  public:
    double next() {
        state_ += 0x9E3779B97F4A7C15u;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
    }

  private:
    std::uint64_t state_ = 0;
};

/// Adds `amount` one by one, each to the lowest count, none above `most`; returns what did not fit.
std::int64_t raise_lowest(std::span<std::int64_t> counts, std::int64_t amount, std::int64_t most) {
    if (amount == 0) return 0;
    const auto needed = [&](std::int64_t level) {
        std::int64_t sum = 0;
        for (const std::int64_t count : counts) sum += std::max<std::int64_t>(0, level - count);
        return sum;
    };
    // The highest level to which all can be raised; the rest makes some of them one higher.
    std::int64_t level = std::ranges::min(counts);
    for (std::int64_t above = most + 1; above - level > 1;) {
        const std::int64_t middle = level + (above - level) / 2;
        (needed(middle) <= amount ? level : above) = middle;
    }
    amount -= needed(level);
    for (std::int64_t& count : counts) {
        count = std::max(count, level);
        if (amount > 0 && count == level && level < most) {
            ++count;
            --amount;
        }
    }
    return amount;
}

/// Makes the counts sum to `total`, in equal parts over the ranks as far as they have room.
void settle(Counts& counts, std::int64_t total, const Routing& routing) {
    std::int64_t amount = total - std::reduce(counts.begin(), counts.end());
    // Taking from the highest is giving to the lowest of what is left free.
    const bool take = amount < 0;
    const auto mirror = [&] {
        for (std::int64_t& count : counts) count = routing.tokens - count;
    };
    if (take) {
        amount = -amount;
        mirror();
    }
    const auto local = static_cast<std::size_t>(routing.experts / routing.ranks);
    for (std::int64_t before = 0; amount > 0 && amount != before;) {
        before = amount;
        for (std::int64_t rank = 0; rank < routing.ranks; ++rank) {
            const std::int64_t left = routing.ranks - rank;
            const std::int64_t part = (amount + left - 1) / left;
            const auto own = std::span(counts).subspan(static_cast<std::size_t>(rank) * local, local);
            amount -= part - raise_lowest(own, part, routing.tokens);
        }
    }
    if (take) mirror();
}

/// Tokens with a slot on the rank whose experts start at `first`: experts in falling order of load lie end to end over
/// `chosen` columns of all tokens, so that no token meets an expert twice.
std::int64_t tokens_reached(const Counts& counts, std::size_t first, std::size_t local, std::int64_t tokens) {
    std::vector<std::pair<std::int64_t, std::size_t>> order(counts.size());  // falling load, then rising place
    for (std::size_t expert = 0; expert < order.size(); ++expert) order[expert] = {-counts[expert], expert};
    std::ranges::sort(order);
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // of tokens, the end excluded
    std::int64_t at = 0;
    for (const auto& [negative, expert] : order) {
        const std::int64_t count = -negative;
        if (expert >= first && expert < first + local && count > 0) {
            ranges.emplace_back(at, std::min(at + count, tokens));
            if (at + count > tokens) ranges.emplace_back(0, at + count - tokens);
        }
        at = (at + count) % tokens;
    }
    std::ranges::sort(ranges);
    std::int64_t reached = 0;
    std::int64_t end = 0;
    for (const auto& [from, to] : ranges) {
        reached += std::max<std::int64_t>(0, to - std::max(from, end));
        end = std::max(end, to);
    }
    return reached;
}

ExpertLoad load_of(std::span<const std::int64_t> own, std::int64_t tokens_here, const Routing& routing) {
    std::int64_t rows = std::reduce(own.begin(), own.end());
    std::int64_t experts = std::ranges::count_if(own, [](std::int64_t count) { return count > 0; });
    if (routing.whole_tokens) {
        const std::int64_t slots = tokens_here * routing.chosen;
        if (slots > rows && own.front() == 0) ++experts;
        rows = slots;
    }
    return {.rows = static_cast<double>(rows),
            .experts = static_cast<double>(experts),
            .tokens = static_cast<double>(routing.whole_tokens ? tokens_here : 0)};
}

}  // namespace

ExpertLoad balanced_load(const Routing& routing) {
    const auto [tokens, experts, chosen, ranks, whole_tokens] = routing;
    const std::int64_t local = experts / ranks;
    const std::int64_t stride = (experts + chosen - 1) / chosen;
    const bool few = tokens < stride;
    Counts own(static_cast<std::size_t>(local), 0);
    std::int64_t tokens_here = 0;
    // After as many tokens as there are experts the choice repeats.
    for (std::int64_t token = 0; token < std::min(tokens, experts); ++token) {
        const std::int64_t alike = tokens / experts + (token < tokens % experts ? 1 : 0);
        const std::int64_t first = few ? token * stride / tokens : token;
        bool here = false;
        for (std::int64_t choice = 0; choice < chosen; ++choice) {
            const std::int64_t expert = (first + choice * stride) % experts;
            if (expert >= local) continue;
            own[static_cast<std::size_t>(expert)] += alike;
            here = true;
        }
        if (here) tokens_here += alike;
    }
    return load_of(own, tokens_here, routing);
}

ExpertLoad power_law_load(const Routing& routing, double exponent) {
    const std::int64_t total = routing.tokens * routing.chosen;
    const auto local = static_cast<std::size_t>(routing.experts / routing.ranks);
    // Weights between these bounds: with few slots only their ratio matters.
    const bool many = total > routing.experts;
    const double low = many ? 1.0 : 0.01;
    const double high = many ? 0.8 * static_cast<double>(routing.tokens) : 2.0;
    const double power = 1.0 - exponent;
    const bool logarithmic = std::abs(power) < 1e-9;  // the limit of the general case, which divides by `power`
    const double at_low = logarithmic ? std::log(low) : std::pow(low, power);
    const double at_high = logarithmic ? std::log(high) : std::pow(high, power);

    Uniform uniform;
    std::vector<double> weights(static_cast<std::size_t>(routing.experts));
    Counts counts(weights.size());
    ExpertLoad sum_of_draws;
    for (int draw = 0; draw < draws; ++draw) {
        double sum = 0.0;
        for (double& weight : weights) {
            const double place = at_low + (at_high - at_low) * uniform.next();
            weight = logarithmic ? std::exp(place) : std::pow(place, 1.0 / power);
            sum += weight;
        }
        for (std::size_t expert = 0; expert < counts.size(); ++expert) {
            const double rows = std::floor(weights[expert] / sum * static_cast<double>(total) + 0.5);
            counts[expert] = std::min(static_cast<std::int64_t>(rows), routing.tokens);
        }
        settle(counts, total, routing);

        std::size_t busiest = 0;
        std::int64_t most = -1;
        for (std::size_t first = 0; first < counts.size(); first += local) {
            const auto own = std::span(counts).subspan(first, local);
            const std::int64_t rows = std::reduce(own.begin(), own.end());
            if (rows > most) {
                most = rows;
                busiest = first;
            }
        }
        const std::int64_t reached = routing.whole_tokens ? tokens_reached(counts, busiest, local, routing.tokens) : 0;
        const ExpertLoad load = load_of(std::span(counts).subspan(busiest, local), reached, routing);
        sum_of_draws.rows += load.rows;
        sum_of_draws.experts += load.experts;
        sum_of_draws.tokens += load.tokens;
    }
    return {.rows = sum_of_draws.rows / draws,
            .experts = sum_of_draws.experts / draws,
            .tokens = sum_of_draws.tokens / draws};
}

}  // namespace roofline::assess
