// The harness: many trials measured in turn, one short window each and then the next, so that one slow phase of the
// machine does not cover all windows of one trial. A trial leaves the rounds when its figure is settled, unless one of
// its threads was faster alone: then others use its processors. All of them end when the time is spent.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "roofline/measure/clock.hpp"
#include "roofline/measure/estimate.hpp"
#include "roofline/measure/found.hpp"

namespace roofline::measure {

/// What one window came to.
struct Window {
    double seconds = 0.0;
    bool right = true;       // the answer was checked and is right
    bool disturbed = false;  // something else ran on a processor meanwhile
};

/// Something that can be done any number of times. `run` does `units` of it and says how long they took.
struct Trial {
    std::string name;
    double window_s = 0.002;
    double work = 0.0;  // FLOPs or bytes of one unit, over all threads
    std::function<Window(std::uint64_t units)> run;
    std::optional<std::size_t> alone = std::nullopt;  // the trial that does the same on one of its threads
};

struct Outcome {
    std::vector<double> rates;      // work a second, window by window, of windows that nothing disturbed
    std::vector<double> disturbed;  // of the others: used only where there are not enough
    bool settled = false;
    bool wrong = false;  // an answer was wrong: no rate of this trial counts

    Estimate result() const;
    /// Windows that nothing was seen to disturb and that took a tenth longer than the best of them.
    std::size_t slow_windows() const;
    std::size_t windows() const { return rates.size() + disturbed.size(); }
};

struct Rounds {
    double budget_s = 10.0;
    std::size_t fewest = 4;                // windows of each trial, even if the time is spent
    double least_s = 0.0;                  // no trial is settled before this: wide units may sleep for a while
    std::function<bool()> stop = nullptr;  // asked between windows
    Progress progress = nullptr;           // told the name of the trial and the time left
};

/// Whether a figure of all threads cannot be right, because one of them alone is faster by more than noise explains.
bool outdone(double on_all, double on_one);

/// An outcome for each trial, in the same order.
std::vector<Outcome> run_rounds(std::span<const Trial> trials, const Rounds& rounds, Clock& clock);

}  // namespace roofline::measure
