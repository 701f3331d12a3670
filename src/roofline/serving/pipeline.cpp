#include "roofline/serving/pipeline.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>

#include "roofline/serving/dealing.hpp"
#include "roofline/serving/random.hpp"
#include "roofline/serving/stages.hpp"

namespace roofline::serving {
namespace {

// Generations: the time in which all requests inside are replaced once.
constexpr double warm_generations = 2.0;
constexpr double followed_generations = 8.0;
constexpr double fewest_steps = 400.0;
constexpr double most_steps = 4000.0;
constexpr double rounding = 1e-6;  // of a token

/// Requests that were admitted in the same step and will write in the same number of further ones.
struct Cohort {
    std::uint64_t since = 0;
    std::uint32_t left = 0;
    std::uint32_t count = 0;
};

struct Prompt {
    double left = 0.0;  // tokens
    double past = 0.0;  // tokens before those
    std::uint32_t steps = 0;
    std::uint64_t since = 0;
    double admitted = 0.0;  // when
};

struct Flight {
    double finish = 0.0;
    std::vector<Cohort> writers;
    std::vector<Prompt> done;  // prompts whose last chunk is in it
};

class Follower {
  public:
    Follower(const PipelineInput& input, const StepTable& table)
        : input_(input), table_(table), stages_(input.stages), dealing_(input.stages) {
        double sum = 0.0;
        for (const PipelineRequest& request : input.requests) {
            below_.push_back(sum += request.weight);
            mean_steps_ += request.weight * request.steps;
            mean_fresh_ += request.weight * request.fresh;
        }
        fill();
    }

    PipelineFlow run() {
        const double stages = static_cast<double>(input_.stages);
        const double generation = stages * mean_steps_ + std::ceil(mean_fresh_ / input_.budget) + stages - 1.0;
        const double warm = std::clamp(warm_generations * generation, fewest_steps, most_steps / 2.0);
        const double measured = std::clamp(followed_generations * generation, 2.0 * fewest_steps, most_steps);
        for (double step = 0.0; step < warm; ++step) launch();
        const double began = stages_.free();
        stages_.forget_busy();
        flow_ = {};
        prompts_ = 0.0;
        for (double step = 0.0; step < measured; ++step) launch();
        const double seconds = input_.holds_up ? stages_.free() - began : stages_.busy();
        flow_.interval = seconds / measured;
        if (prompts_ > 0.0) flow_.prompt /= prompts_;
        for (double* sum : {&flow_.ended, &flow_.writing, &flow_.inside, &flow_.flops, &flow_.memory_bytes})
            *sum /= measured;
        // Who writes counts over many steps, who ends is few: the same rate, with less noise.
        if (mean_steps_ > 0.0) flow_.ended = flow_.writing / mean_steps_;
        return flow_;
    }

  private:
    PipelineRequest draw() {
        const auto found = std::lower_bound(below_.begin(), below_.end() - 1, random_.uniform() * below_.back());
        return input_.requests[static_cast<std::size_t>(found - below_.begin())];
    }
    /// A mean of steps that is no whole number: the one below or the one above.
    std::uint32_t whole_steps(double steps) { return static_cast<std::uint32_t>(steps + random_.uniform()); }

    /// As in a server that has been running: found at random places of their output.
    void fill() {
        std::vector<double> longer;
        double sum = 0.0;
        for (const PipelineRequest& request : input_.requests)
            longer.push_back(sum += request.weight * (request.steps + 1.0));
        step_ = input_.slots;
        for (std::size_t i = 0; i < input_.slots; ++i) {
            const auto found = std::lower_bound(longer.begin(), longer.end() - 1, random_.uniform() * sum);
            const PipelineRequest& request = input_.requests[static_cast<std::size_t>(found - longer.begin())];
            const auto left = static_cast<std::uint32_t>(std::ceil(random_.uniform() * request.steps));
            if (left == 0) continue;  // its place is taken by a new one
            free_.push_back({i, left, 1});
            ++writers_;
            ++inside_;
        }
    }

    static void add(std::vector<Cohort>& to, const Cohort& cohort) {
        if (!to.empty() && to.back().left == cohort.left && to.back().since == cohort.since)
            to.back().count += cohort.count;
        else
            to.push_back(cohort);
    }

    void land(const Flight& flight) {
        back_.clear();
        for (const Cohort& cohort : flight.writers) {
            if (cohort.left > 1) {
                back_.push_back({cohort.since, cohort.left - 1, cohort.count});
                continue;
            }
            writers_ -= cohort.count;
            inside_ -= cohort.count;
            flow_.ended += cohort.count;
        }
        for (const Prompt& prompt : flight.done) {
            flow_.prompt += flight.finish - prompt.admitted;
            prompts_ += 1.0;
            if (prompt.steps > 0) {
                add(back_, {prompt.since, prompt.steps, 1});
            } else {
                --inside_;
                flow_.ended += 1.0;
            }
        }
        // A scheduler goes through its requests in the order of their admission: those of one age end up in one step,
        // end together, and so do the prompts of those that follow.
        const auto older = [](const Cohort& a, const Cohort& b) { return a.since < b.since; };
        std::stable_sort(back_.begin(), back_.end(), older);
        const auto middle = static_cast<std::ptrdiff_t>(free_.size());
        free_.insert(free_.end(), back_.begin(), back_.end());
        std::inplace_merge(free_.begin(), free_.begin() + middle, free_.end(), older);
    }

    void launch() {
        double now = stages_.free();
        while (!flying_.empty() && (flying_.size() == input_.stages || flying_.front().finish <= now)) land_first(now);
        Flight flight = compose(now);
        while (nothing_in(flight) && !flying_.empty()) {
            land_first(now);
            flight = compose(now);
        }
        const double looked_at = chunk_tokens_ > 0.0 ? chunk_pairs_ / chunk_tokens_ : 0.0;
        const StepCost cost = table_.at(chunk_tokens_, looked_at, static_cast<double>(taken_) * input_.samples);
        flight.finish = stages_.pass(cost, now);
        dealing_.next();
        flow_.writing += static_cast<double>(taken_);
        flow_.inside += static_cast<double>(inside_);
        flow_.flops += cost.flops;
        flow_.memory_bytes += cost.memory_bytes;
        flying_.push_back(std::move(flight));
    }

    void land_first(double& now) {
        now = std::max(now, flying_.front().finish);
        land(flying_.front());
        flying_.pop_front();
    }

    bool nothing_in(const Flight& flight) const { return flight.writers.empty() && chunk_tokens_ <= 0.0; }

    /// Those that write, dealt evenly to the steps under way; then what is due of prompts, the oldest first.
    Flight compose(double now) {
        Flight flight;
        ++step_;
        double budget = input_.budget;
        taken_ = 0;
        chunk_tokens_ = chunk_pairs_ = 0.0;
        const std::size_t stages = input_.stages;
        std::size_t most = std::max<std::size_t>(1, (writers_ + stages - 1) / stages);
        most = std::min(most, static_cast<std::size_t>(budget / input_.step_tokens));
        std::size_t used = 0;
        while (used < free_.size() && taken_ < most) {
            Cohort& cohort = free_[used];
            const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(cohort.count, most - taken_));
            flight.writers.push_back({cohort.since, cohort.left, count});
            taken_ += count;
            cohort.count -= count;
            if (cohort.count == 0) ++used;
        }
        free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(used));
        budget -= static_cast<double>(taken_) * input_.step_tokens;

        while (inside_ < input_.slots && budget - dealing_.due() > 0.0) {
            const PipelineRequest request = draw();
            const std::uint32_t steps = whole_steps(request.steps);
            ++inside_;
            if (request.fresh <= 0.0) {
                // Its prompt was computed elsewhere: it writes at once.
                ++writers_;
                add(flight.writers, {step_, std::max<std::uint32_t>(1, steps), 1});
                ++taken_;
                budget -= input_.step_tokens;
                continue;
            }
            begun_.push_back({request.fresh, request.past, steps, step_, now});
            dealing_.enter(request.fresh, static_cast<double>(inside_));
        }
        while (!begun_.empty() && budget > 0.0 && dealing_.due() > 0.0) {
            compute(begun_.front(), budget, flight);
            if (begun_.front().left > 0.0) break;
            begun_.pop_front();
        }
        return flight;
    }

    void compute(Prompt& prompt, double& budget, Flight& flight) {
        double tokens = std::min({prompt.left, budget, dealing_.due()});
        if (prompt.left - tokens < rounding) tokens = prompt.left;
        dealing_.compute(tokens);
        chunk_pairs_ += tokens * (prompt.past + tokens / 2.0);
        prompt.left -= tokens;
        prompt.past += tokens;
        budget -= tokens;
        chunk_tokens_ += tokens;
        if (prompt.left > 0.0) return;
        flight.done.push_back(prompt);
        if (prompt.steps > 0) ++writers_;  // from now on the scheduler counts on it
    }

    const PipelineInput& input_;
    const StepTable& table_;
    Random random_{1};
    std::vector<double> below_;
    double mean_steps_ = 0.0;
    double mean_fresh_ = 0.0;
    Stages stages_;
    Dealing dealing_;
    std::deque<Flight> flying_;
    std::vector<Cohort> free_;  // writers that no step under way holds, the oldest first
    std::vector<Cohort> back_;  // room to work in
    std::uint64_t step_ = 0;
    std::deque<Prompt> begun_;  // prompts of which a part is left
    std::size_t writers_ = 0;
    std::size_t inside_ = 0;
    std::size_t taken_ = 0;  // writers of the step that is put together
    double chunk_tokens_ = 0.0;
    double chunk_pairs_ = 0.0;  // with what they look at
    double prompts_ = 0.0;
    PipelineFlow flow_;
};

}  // namespace

StepCost StepTable::at(double prompt_tokens, double looked_at, double decoding) const {
    const double place = std::clamp(decoding / most_decoding, 0.0, 1.0) * static_cast<double>(counts - 1);
    const std::size_t below = std::min(static_cast<std::size_t>(place), counts - 2);
    const auto beside = [&](const ByDecoding& costs) {
        return between(costs[below], costs[below + 1], place - static_cast<double>(below));
    };
    const auto row = [&](std::size_t i) {
        const Row& of = rows[i];
        if (!(of.far > of.near)) return beside(of.at_head);
        return between(beside(of.at_head), beside(of.at_end),
                       std::clamp((looked_at - of.near) / (of.far - of.near), 0.0, 1.0));
    };
    // No prompt at all is a case of its own: engines run such steps differently.
    if (prompt_tokens <= 0.0 || rows.size() < 2) return row(0);
    const auto fewer = [](const Row& of, double tokens) { return of.tokens < tokens; };
    const auto above = std::lower_bound(rows.begin() + 1, rows.end(), prompt_tokens, fewer);
    const auto upper = static_cast<std::size_t>(std::min(above, rows.end() - 1) - rows.begin());
    if (upper == 1) return row(1);
    const double share = (prompt_tokens - rows[upper - 1].tokens) / (rows[upper].tokens - rows[upper - 1].tokens);
    return between(row(upper - 1), row(upper), share);
}

PipelineFlow follow(const PipelineInput& input, const StepTable& table) {
    return Follower(input, table).run();
}

}  // namespace roofline::serving
