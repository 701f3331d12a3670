#include "roofline/serving/backlog.hpp"

#include <algorithm>
#include <cmath>

#include "roofline/serving/elementary.hpp"

namespace roofline::serving {
namespace {

constexpr double states_wanted = 72.0;
constexpr double longest_prompt = 20.0;  // rooms; a longer one counts as several: every step of it is full either way

/// Probability of k cells in a prompt; a size between two cells counts for both, so that the mean stays.
std::vector<double> cells_of_a_prompt(const BacklogInput& input, double cell, double& rate, std::size_t states) {
    std::vector<double> result(states, 0.0);
    double sum = 0.0;
    for (const PromptSize& size : input.sizes) {
        if (size.tokens <= 0.0) continue;
        double cells = size.tokens / cell;
        double weight = size.weight;
        const double most = longest_prompt * input.room / cell;
        if (cells > most) {
            weight *= cells / most;
            cells = most;
        }
        if (cells < 1.0) {
            weight *= cells;  // less than a cell: fewer prompts of one cell
            cells = 1.0;
        }
        const auto below = std::min(static_cast<std::size_t>(cells), states - 2);
        const double above = std::min(cells - static_cast<double>(below), 1.0);
        result[below] += weight * (1.0 - above);
        result[below + 1] += weight * above;
        sum += weight;
    }
    rate = input.arrivals * sum;
    for (double& probability : result) probability /= std::max(sum, 1e-300);
    return result;
}

/// Panjer's recursion: cells of a binomial or Poisson number of prompts.
std::vector<double> cells_of_a_step(const std::vector<double>& prompt, double rate, double sources) {
    std::vector<double> result(prompt.size(), 0.0);
    double a = 0.0;
    double b = rate;
    result[0] = exponential(-rate);
    if (sources > 0.0 && rate < sources) {
        const double probability = rate / sources;
        a = -probability / (1.0 - probability);
        b = -a * (sources + 1.0);
        result[0] = power(1.0 - probability, sources);
    }
    for (std::size_t k = 1; k < result.size(); ++k) {
        double sum = 0.0;
        for (std::size_t j = 1; j <= k; ++j) {
            sum += (a + b * static_cast<double>(j) / static_cast<double>(k)) * prompt[j] * result[k - j];
        }
        result[k] = std::max(0.0, sum);
    }
    return result;
}

/// The stationary distribution by Grassmann, Taksar and Heyman's elimination: no subtraction, so nothing cancels.
std::vector<double> stationary(std::vector<double> chain, std::size_t n) {
    for (std::size_t k = n; k-- > 1;) {
        double leaving = 0.0;
        for (std::size_t j = 0; j < k; ++j) leaving += chain[k * n + j];
        if (!(leaving > 0.0)) leaving = 1e-300;
        for (std::size_t i = 0; i < k; ++i) chain[i * n + k] /= leaving;
        for (std::size_t i = 0; i < k; ++i) {
            const double factor = chain[i * n + k];
            if (factor == 0.0) continue;
            for (std::size_t j = 0; j < k; ++j) chain[i * n + j] += factor * chain[k * n + j];
        }
    }
    std::vector<double> result(n, 0.0);
    result[0] = 1.0;
    double sum = 1.0;
    for (std::size_t k = 1; k < n; ++k) {
        for (std::size_t i = 0; i < k; ++i) result[k] += result[i] * chain[i * n + k];
        sum += result[k];
    }
    for (double& probability : result) probability /= sum;
    return result;
}

/// What comes during a step of each level. By the clock: from a few rates, and mixed between them.
class Arrivals {
  public:
    Arrivals(const std::vector<double>& prompt, double rate, double sources, std::span<const double> durations)
        : durations_(durations) {
        if (durations.empty()) {
            nodes_.push_back(cells_of_a_step(prompt, rate, sources));
            return;
        }
        const auto [least, most] = std::minmax_element(durations.begin(), durations.end());
        least_ = *least;
        most_ = std::max(*most, *least * (1.0 + 1e-9));
        for (int i = 0; i < clock_rates; ++i) {
            nodes_.push_back(cells_of_a_step(prompt, rate * (least_ + (most_ - least_) * i / (clock_rates - 1)), 0.0));
        }
    }
    double probability(std::size_t level, std::size_t cells) const {
        if (durations_.empty()) return nodes_.front()[cells];
        const double place = (durations_[level] - least_) / (most_ - least_) * (clock_rates - 1);
        const auto node = std::min(static_cast<std::size_t>(place), nodes_.size() - 2);
        const double above = place - static_cast<double>(node);
        return (1.0 - above) * nodes_[node][cells] + above * nodes_[node + 1][cells];
    }
    const std::vector<double>& first() const { return nodes_.front(); }

  private:
    static constexpr int clock_rates = 8;
    std::span<const double> durations_;
    std::vector<std::vector<double>> nodes_;
    double least_ = 0.0;
    double most_ = 1.0;
};

struct Moments {
    double mean = 0.0;
    double square = 0.0;
    double longest = 0.0;
};

Moments moments(const BacklogInput& input) {
    Moments result;
    for (const PromptSize& size : input.sizes) {
        result.mean += size.weight * size.tokens;
        result.square += size.weight * size.tokens * size.tokens;
        result.longest = std::max(result.longest, size.tokens);
    }
    return result;
}

bool always_full(const BacklogInput& input) {
    return !input.by_the_clock && !(input.arrivals * moments(input).mean < 0.999 * input.room);
}

}  // namespace

BacklogGrid backlog_grid(const BacklogInput& input) {
    BacklogGrid grid;
    if (always_full(input)) return {.cell = input.room, .room = 1, .levels = 2, .states = 2};
    // As far as the tokens that wait are likely to reach: what comes in a step, six deviations more, the longest
    // prompt, and what cannot be computed at once.
    const Moments tokens = moments(input);
    const double longest = std::min(tokens.longest, longest_prompt * input.room);
    double reach = input.arrivals * tokens.mean + 6.0 * std::sqrt(input.arrivals * tokens.square) + longest;
    if (reach > input.room) reach = std::min(reach, input.room) + longest + 3.0 * input.room;
    if (input.by_the_clock && input.use > 0.0) {
        const double queue =
            3.0 * input.use / std::max(1.0 - input.use, 0.02) * tokens.square / std::max(tokens.mean, 1.0);
        reach = std::min(reach + queue, longest + 30.0 * input.room);
    }
    grid.room = static_cast<std::size_t>(std::max(2.0, std::ceil(states_wanted * input.room / std::max(reach, 1.0))));
    grid.cell = input.room / static_cast<double>(grid.room);
    grid.states = static_cast<std::size_t>(std::ceil(reach / grid.cell)) + 2;
    grid.levels = std::min(grid.room + 1, grid.states);
    return grid;
}

Backlog backlog(const BacklogInput& input, const BacklogGrid& grid, std::span<const double> durations) {
    Backlog result;
    if (always_full(input)) return {.level = {0.0, 1.0}, .arriving = {}, .left = 0.0};
    const std::size_t n = grid.states;
    double rate = 0.0;
    const auto prompt = cells_of_a_prompt(input, grid.cell, rate, n);
    const Arrivals arrivals(prompt, rate, input.sources, input.by_the_clock ? durations : std::span<const double>());
    result.arriving = arrivals.first();
    std::vector<double> chain(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t level = std::min(i, grid.levels - 1);
        const std::size_t left = i > grid.room ? i - grid.room : 0;
        double rest = 1.0;
        for (std::size_t j = left; j + 1 < n; ++j) {
            chain[i * n + j] = arrivals.probability(level, j - left);
            rest -= chain[i * n + j];
        }
        chain[i * n + n - 1] = std::max(0.0, rest);
    }
    const auto states = stationary(std::move(chain), n);
    result.level.assign(grid.levels, 0.0);
    double served = 0.0;
    double left = 0.0;
    double time = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t level = std::min(i, grid.levels - 1);
        result.level[level] += states[i];
        served += states[i] * static_cast<double>(level);
        if (!input.by_the_clock) continue;
        time += states[i] * durations[level];
        if (i > grid.room) left += states[i] * durations[level] * static_cast<double>(i - grid.room);
    }
    if (input.by_the_clock) {
        result.left = left / std::max(time, 1e-300) * grid.cell;
        return result;
    }
    // The chain ends somewhere; what fell off its end fills steps. What is too much by rounding is taken off evenly.
    const double wanted = input.arrivals * moments(input).mean / grid.cell;
    const auto top = static_cast<double>(grid.levels - 1);
    if (served < wanted && wanted < top) {
        const double full = (wanted - served) / (top - served);
        for (double& probability : result.level) probability *= 1.0 - full;
        result.level.back() += full;
    } else if (served > wanted) {
        const double kept = wanted / served;
        for (double& probability : result.level) probability *= kept;
        result.level.front() += 1.0 - kept;
    }
    return result;
}

}  // namespace roofline::serving
