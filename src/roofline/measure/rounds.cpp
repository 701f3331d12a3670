#include "roofline/measure/rounds.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace roofline::measure {
namespace {

constexpr std::uint64_t most_units = std::uint64_t{1} << 40U;

/// Units that fill a window, given that `units` took `seconds`.
std::uint64_t units_for(double window_s, std::uint64_t units, double seconds) {
    if (seconds <= 0.0) return std::min(most_units, units * 16);
    const double wanted = std::ceil(static_cast<double>(units) * window_s / seconds);
    return static_cast<std::uint64_t>(std::clamp(wanted, 1.0, static_cast<double>(most_units)));
}

constexpr double shortest_s = 0.0005;
constexpr int attempts = 4;
constexpr double noise = 0.03;

struct State {
    std::uint64_t units = 0;  // zero: not known yet how many fill a window
    double window_s = 0.0;    // shorter than asked for where longer ones are always disturbed
    Outcome outcome;
};

/// A run that nothing disturbed, if a few attempts give one.
Window quiet_run(const Trial& trial, std::uint64_t units) {
    Window best = trial.run(units);
    for (int attempt = 1; attempt < attempts && best.right && best.disturbed; ++attempt) {
        const Window again = trial.run(units);
        if (!again.right || !again.disturbed || again.seconds < best.seconds) best = again;
    }
    return best;
}

/// Raises the units until they take an eighth of a window; caches and clocks are warm afterwards.
void find_units(const Trial& trial, State& state) {
    std::uint64_t units = 1;
    while (true) {
        const Window window = quiet_run(trial, units);
        if (!window.right) {
            state.outcome.wrong = true;
            return;
        }
        if (window.seconds >= trial.window_s / 8.0 || units >= most_units) {
            state.units = units_for(trial.window_s, units, window.seconds);
            return;
        }
        units = std::min(most_units, window.seconds > trial.window_s / 1000.0
                                         ? std::max(units + 1, units_for(trial.window_s / 4.0, units, window.seconds))
                                         : units * 4);
    }
}

void one_window(const Trial& trial, State& state) {
    if (state.units == 0) {
        state.window_s = trial.window_s;
        find_units(trial, state);
        if (state.outcome.wrong) return;
    }
    const Window window = trial.run(state.units);
    if (!window.right) {
        state.outcome.wrong = true;
        return;
    }
    if (window.seconds <= 0.0) return;
    const double rate = trial.work * static_cast<double>(state.units) / window.seconds;
    if (window.disturbed) {
        state.outcome.disturbed.push_back(rate);
        // On a busy machine short windows slip through between what else is running.
        if (state.units > 1 && state.window_s > 2.0 * shortest_s) {
            state.window_s /= 2.0;
            state.units = (state.units + 1) / 2;
        }
        return;
    }
    // A window that came out much too short was planned while the machine was slow: not long enough to count.
    if (window.seconds < state.window_s / 2.0) {
        state.units = units_for(state.window_s, state.units, window.seconds);
        state.outcome.disturbed.push_back(rate);
        return;
    }
    state.outcome.rates.push_back(rate);
    state.outcome.settled = settled(state.outcome.rates);
}

/// One of its threads alone does more than all of them do.
bool outdone_by_one_thread(const Trial& trial, const Outcome& outcome, std::span<const State> states) {
    if (!trial.alone) return false;
    return outdone(outcome.result().rate, states[*trial.alone].outcome.result().rate);
}

}  // namespace

bool outdone(double on_all, double on_one) {
    return on_all < (1.0 - noise) * on_one;
}

std::size_t Outcome::slow_windows() const {
    if (rates.empty()) return 0;
    const double best = *std::max_element(rates.begin(), rates.end());
    return static_cast<std::size_t>(std::ranges::count_if(rates, [&](double rate) { return rate < 0.9 * best; }));
}

Estimate Outcome::result() const {
    if (wrong) return {};
    if (rates.size() >= windows_averaged) return estimate(rates);
    std::vector<double> all = rates;
    all.insert(all.end(), disturbed.begin(), disturbed.end());
    return estimate(all);
}

std::vector<Outcome> run_rounds(std::span<const Trial> trials, const Rounds& rounds, Clock& clock) {
    std::vector<State> states(trials.size());
    const double start = clock.seconds();
    bool stopped = false;
    for (std::size_t round = 0; !stopped; ++round) {
        bool any = false;
        for (std::size_t i = 0; i < trials.size(); ++i) {
            State& state = states[i];
            if (state.outcome.settled || state.outcome.wrong) continue;
            const double spent = clock.seconds() - start;
            // Disturbed windows do not count, so more rounds than asked for may be needed; not for ever.
            const bool enough = state.outcome.rates.size() >= rounds.fewest || round >= 2 * rounds.fewest;
            if (spent >= rounds.budget_s && enough) continue;
            if (rounds.stop && rounds.stop()) {
                stopped = true;
                break;
            }
            if (rounds.progress)
                rounds.progress(
                    fmt::format("{} ({:.0f} s left)", trials[i].name, std::max(0.0, rounds.budget_s - spent)));
            any = true;
            one_window(trials[i], state);
            if (clock.seconds() - start < rounds.least_s) state.outcome.settled = false;
            if (state.outcome.settled && outdone_by_one_thread(trials[i], state.outcome, states))
                state.outcome.settled = false;
        }
        if (!any) break;
    }
    std::vector<Outcome> outcomes;
    outcomes.reserve(states.size());
    for (State& state : states) outcomes.push_back(std::move(state.outcome));
    return outcomes;
}

}  // namespace roofline::measure
