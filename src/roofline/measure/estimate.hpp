// From the rates of single windows to one figure. A machine is never quite quiet: windows come out too low when
// something else ran, and once in a while too high when a clock was read late. So the figure is the mean of the three
// fastest windows that agree, and it is settled when further windows no longer raise it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace roofline::measure {

inline constexpr std::size_t windows_averaged = 3;
inline constexpr double agreement = 0.02;         // the three lie within this of each other
inline constexpr std::size_t most_skipped = 2;    // faster windows that may be errors of the clock
inline constexpr std::size_t settled_after = 10;  // windows that raise the estimate ...
inline constexpr double settled_gain = 0.01;      // ... by less than this

struct Estimate {
    double rate = 0.0;    // zero: no window at all
    double spread = 0.0;  // (best - worst) / best of the windows averaged
    bool agreed = false;  // false: no three windows agreed, and the rate is the mean of the fastest three
};

/// The mean of the three fastest windows that lie within `agreement` of each other. Slow windows agree too when the
/// machine is busy, so no more than `most_skipped` faster ones are passed over on the way to an agreement.
Estimate estimate(std::span<const double> rates);

/// Whether the last `settled_after` windows raised an estimate that had agreed before by less than `settled_gain`.
bool settled(std::span<const double> rates);

/// One point of a sweep over working sets.
struct SweepPoint {
    double bytes = 0.0;
    double rate = 0.0;
};

/// A stretch of working sets that are read about equally fast.
struct Plateau {
    double rate = 0.0;      // at its start, where the level is least disturbed by the next
    double smallest = 0.0;  // working sets of it
    double knee = 0.0;      // largest working set before the rate falls; the largest tried for the last plateau
};

/// The levels of a memory hierarchy as a read sweep shows them, fastest first, main memory last. Points in rising order
/// of size. Never from what the machine says about itself: a virtual machine may say 300 MiB where the knee is at 50.
std::vector<Plateau> plateaus(std::span<const SweepPoint> sweep);

}  // namespace roofline::measure
