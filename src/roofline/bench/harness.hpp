// How long something takes: warmed up, run in windows long enough for the clock, until a given time is used. The clock
// is handed in, so that tests can have one that they control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace roofline::bench {

using Clock = std::function<double()>;  // seconds, from any beginning
double steady_seconds();

struct Timing {
    double median = 0.0;  // seconds of one call
    double low = 0.0;     // a tenth of the windows is faster
    double high = 0.0;    // a tenth is slower
    std::int64_t calls = 0;
};

struct Budget {
    double seconds = 0.3;   // of measuring, without the warm-up
    double window = 1e-3;   // a window holds as many calls as this takes
    std::size_t least = 5;  // windows, unless they take ten times as long as they should: then one is enough
    std::size_t most = 2000;
};

/// Calls run(copy) with copy going round [0, copies).
Timing time_calls(const std::function<void(std::size_t)>& run, std::size_t copies, const Budget& budget,
                  const Clock& clock = steady_seconds);

Timing summarise(std::vector<double> windows, std::int64_t calls);

}  // namespace roofline::bench
