#include "roofline/decide/advise.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "roofline/core/sort.hpp"

namespace roofline::decide {
namespace {

// Less than this either way is within what constants of kernels could be off by.
constexpr double worth_naming = 1.01;
// A combination is not made longer for less than this, nor longer than people can try.
constexpr double worth_adding = 1.02;
constexpr std::size_t most_parts = 4;
constexpr std::size_t beam = 3;

/// A variant of a move, ready to be combined with others.
struct Option {
    const Move* move = nullptr;
    Variant variant;
};

/// Several options at once: which, and what came of them.
struct Trial {
    std::vector<std::size_t> options;  // in the order they were added
    Outcome outcome;
    std::vector<double> gains;  // so far
    std::vector<std::string> flags;
};

class Adviser {
  public:
    Adviser(const Candidate& asked, Goal goal, const Surroundings& around)
        : asked_(asked), goal_(goal), around_(around) {}

    Result<Advice> run() {
        auto scenario = predict::realise(asked_.setup);
        if (!scenario) return std::unexpected(scenario.error());
        const auto asked_score = score(asked_);
        if (!asked_score) return std::unexpected(asked_score.error());
        const auto bound = compute_bound_batch(asked_);
        if (!bound) return std::unexpected(bound.error());
        base_ = *asked_score;
        base_value_ = value(base_, asked_.setup.device);
        const Question question{asked_, *scenario, base_, around_, goal_};
        for (const Move* move : moves()) {
            for (Variant& variant : move->variants(question)) options_.push_back({move, std::move(variant)});
        }
        Advice advice;
        advice.goal = goal_;
        advice.asked = base_;
        advice.compute_bound = *bound;
        if (goal_ == Goal::cost) advice.price = price_of(asked_.setup.device);
        for (std::size_t i = 0; i < options_.size(); ++i) advice.outcomes.push_back(attempt({i}).outcome);
        rank(advice.outcomes);
        advice.combinations = combine();
        advice.sensitivities = sensitivities(asked_, base_, goal_);
        advice.notes = notes(*scenario);
        advice.scenario = std::move(*scenario);
        return advice;
    }

  private:
    std::optional<double> price_of(const Device& device) const {
        const auto found = around_.prices.find(device.name);
        return found != around_.prices.end() ? std::optional(found->second) : std::nullopt;
    }

    /// What the goal makes small: seconds, or money where devices have a price.
    double value(const Score& score, const Device& device) const {
        const double seconds = score.of(goal_).expected.value;
        return goal_ == Goal::cost ? seconds * price_of(device).value_or(1.0) : seconds;
    }

    /// Applies options in the order moves ask for, and judges what comes out.
    Trial attempt(const std::vector<std::size_t>& chosen) const {
        Trial trial;
        trial.options = chosen;
        std::vector<std::size_t> sorted = chosen;
        sort_stably(sorted,
                    [&](std::size_t a, std::size_t b) { return options_[a].move->order < options_[b].move->order; });
        Outcome& outcome = trial.outcome;
        const Option& first = options_[chosen.front()];
        outcome.move = first.move->name;
        outcome.variant = first.variant.name;
        outcome.costs = first.variant.costs;
        Candidate candidate = asked_;
        for (const std::size_t i : sorted) {
            const Variant& variant = options_[i].variant;
            outcome.answers = std::max(outcome.answers, variant.answers);
            outcome.what_if = outcome.what_if || variant.what_if;
            const auto applied = variant.apply(candidate);
            if (!applied) {
                outcome.reason = applied.error().text;
                return trial;
            }
            if (!applied->empty()) trial.flags.push_back(*applied);
        }
        outcome.flags = fmt::format("{}", fmt::join(trial.flags, " "));
        if (goal_ == Goal::cost && price_of(asked_.setup.device) && !price_of(candidate.setup.device)) {
            outcome.reason = fmt::format("no price is known for it (--price {}=...)", candidate.setup.device.name);
            return trial;
        }
        const auto scored = score(candidate);
        if (!scored) {
            outcome.reason = scored.error().text;
            return trial;
        }
        outcome.score = *scored;
        if (goal_ == Goal::cost) outcome.price = price_of(candidate.setup.device);
        if (candidate.setup.device.name != asked_.setup.device.name) {
            outcome.machines = Machines::other;
        } else if (scored->devices > base_.devices || candidate.prompts_elsewhere) {
            outcome.machines = Machines::more;
        }
        outcome.value = value(*scored, candidate.setup.device);
        judge(outcome);
        return trial;
    }

    void judge(Outcome& outcome) const {
        if (!outcome.score.fit.fits) {
            outcome.verdict = Verdict::does_not_fit;
            return;
        }
        if (!base_.fit.fits) {
            outcome.verdict = Verdict::helps;
            return;
        }
        if (outcome.value > 0.0) outcome.gain = base_value_ / outcome.value;
        outcome.verdict = outcome.gain >= worth_naming         ? Verdict::helps
                          : outcome.gain * worth_naming <= 1.0 ? Verdict::hurts
                                                               : Verdict::changes_nothing;
    }

    void rank(std::vector<Outcome>& outcomes) const {
        sort_stably(outcomes, [&](const Outcome& a, const Outcome& b) {
            if (a.verdict != b.verdict) return a.verdict < b.verdict;
            if (a.verdict != Verdict::does_not_apply && a.verdict != Verdict::does_not_fit) {
                if (a.gain != b.gain) return a.gain > b.gain;
                if (a.value != b.value) return a.value < b.value;
            }
            if (a.move != b.move) return a.move < b.move;
            return a.variant < b.variant;
        });
    }

    bool better(const Trial& a, const Trial& b) const {
        const bool a_fits = a.outcome.verdict < Verdict::does_not_fit;
        const bool b_fits = b.outcome.verdict < Verdict::does_not_fit;
        if (a_fits != b_fits) return a_fits;
        if (!a_fits) return a.options < b.options;
        if (a.outcome.value != b.outcome.value) return a.outcome.value < b.outcome.value;
        return a.options < b.options;
    }

    bool worth_it(const Trial& longer, const Trial* shorter) const {
        if (longer.outcome.verdict >= Verdict::does_not_fit) return false;
        // Where what was asked does not fit, fitting is the first gain.
        if (shorter == nullptr) return !base_.fit.fits || longer.outcome.gain >= worth_adding;
        return shorter->outcome.value >= worth_adding * longer.outcome.value;
    }

    /// What a combination may be made of.
    struct Among {
        const char* title;
        Answers answers;
        Machines machines;

        bool operator()(const Option& option) const {
            return option.variant.answers <= answers && !option.variant.what_if;
        }
    };

    /// The best few at every length grow by every option that is allowed. What other searches tried is known.
    std::optional<Trial> search(const Among& allowed) {
        // To serve fewer at once is always quicker, and no answer to how those that are there could be.
        const bool latency = base_.fit.fits && (goal_ == Goal::tpot || goal_ == Goal::ttft);
        std::vector<Trial> front;
        std::optional<Trial> best;
        for (std::size_t length = 1; length <= most_parts; ++length) {
            std::vector<Trial> next;
            std::set<std::vector<std::size_t>> seen;
            const auto grow = [&](const Trial* from) {
                for (std::size_t i = 0; i < options_.size(); ++i) {
                    const Option& option = options_[i];
                    if (!allowed(option) || (latency && option.move->name == "batch")) continue;
                    std::vector<std::size_t> chosen = from != nullptr ? from->options : std::vector<std::size_t>{};
                    const bool clash = std::any_of(chosen.begin(), chosen.end(), [&](std::size_t other) {
                        return options_[other].move == option.move;
                    });
                    if (clash) continue;
                    chosen.push_back(i);
                    std::vector<std::size_t> key = chosen;
                    std::sort(key.begin(), key.end());
                    if (!seen.insert(key).second) continue;
                    Trial trial = known(key);
                    trial.options = chosen;
                    if (trial.outcome.machines > allowed.machines || !worth_it(trial, from)) continue;
                    if (from != nullptr) trial.gains = from->gains;
                    trial.gains.push_back(trial.outcome.gain);
                    next.push_back(std::move(trial));
                }
            };
            if (length == 1) {
                grow(nullptr);
            } else {
                for (const Trial& trial : front) grow(&trial);
            }
            if (next.empty()) break;
            sort_stably(next, [&](const Trial& a, const Trial& b) { return better(a, b); });
            if (next.size() > beam) next.resize(beam);
            if (!best || better(next.front(), *best)) best = next.front();
            front = std::move(next);
        }
        return best;
    }

    const Trial& known(const std::vector<std::size_t>& key) {
        const auto found = tried_.find(key);
        return found != tried_.end() ? found->second : tried_.emplace(key, attempt(key)).first->second;
    }

    std::vector<Combination> combine() {
        static constexpr std::array<Among, 3> all = {{
            {"on these devices, answers unchanged", Answers::same, Machines::same},
            {"on these devices", Answers::rounded, Machines::same},
            {"with more devices", Answers::rounded, Machines::more},
        }};
        std::vector<Combination> result;
        std::set<std::vector<std::size_t>> said;
        for (const Among& among : all) {
            const auto best = search(among);
            if (!best) continue;
            std::vector<std::size_t> key = best->options;
            std::sort(key.begin(), key.end());
            if (!said.insert(key).second) continue;
            Combination combination;
            combination.title = among.title;
            for (const std::size_t i : best->options) {
                combination.parts.push_back(options_[i].variant.name);
                combination.costs.push_back(options_[i].variant.costs);
            }
            combination.gains = best->gains;
            combination.flags = best->flags;
            combination.score = best->outcome.score;
            combination.gain = best->outcome.gain;
            combination.machines = best->outcome.machines;
            result.push_back(std::move(combination));
        }
        return result;
    }

    std::vector<std::string> notes(const predict::Scenario& scenario) const {
        std::vector<std::string> result = scenario.notes;
        if (goal_ == Goal::cost && !price_of(asked_.setup.device))
            result.emplace_back("no price is known (--price 2.50, money per device and hour): cost is device time");
        if (scenario.workload.chunk > 0.0) {
            result.emplace_back(
                "with --chunk, time per token is the mean while prompts are replaced as fast as they are written (D3)");
        }
        return result;
    }

    const Candidate& asked_;
    Goal goal_;
    const Surroundings& around_;
    Score base_;
    double base_value_ = 0.0;
    std::vector<Option> options_;
    std::map<std::vector<std::size_t>, Trial> tried_;
};

}  // namespace

std::string_view name(Verdict verdict) {
    static constexpr std::array<std::string_view, 5> names = {"helps", "changes_nothing", "hurts", "does_not_fit",
                                                              "does_not_apply"};
    return names[static_cast<std::size_t>(verdict)];
}

Result<Advice> advise(const Candidate& asked, Goal goal, const Surroundings& around) {
    return Adviser(asked, goal, around).run();
}

}  // namespace roofline::decide
