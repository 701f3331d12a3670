// A launch repeated for seconds on end: what is left of a rate once the chip is at its power limit, with the clock and
// the watts seen then. The next window is always queued before this one is waited for.
#pragma once

#include "roofline/measure/cuda/frame.cuh"
#include "roofline/measure/cuda/nvml.cuh"

namespace roofline::probe {

/// `one` is how long a launch takes in a burst. The second half counts; `what` names the launches.
template <class Launch>
Json sustained_figure(const Chip& chip, const Stream& stream, const std::string& name, const char* unit,
                      double per_launch, double one, double seconds, const std::string& what, const Launch& launch) {
    const int count = std::max(1, static_cast<int>(0.02 / one));
    const int windows = std::max(8, static_cast<int>(seconds / (one * count)));
    std::vector<Event> events(static_cast<std::size_t>(windows) + 1);
    std::vector<double> clocks;
    std::vector<double> watts;
    events.front().record(stream);
    for (int window = 0; window < windows; ++window) {
        for (int i = 0; i < count; ++i) launch();
        events[static_cast<std::size_t>(window) + 1].record(stream);
        if (window > 0) events[static_cast<std::size_t>(window)].wait();
        if (window >= windows / 2 && window + 1 < windows) {
            const State state = state_of(chip.index);
            if (state.clock_hz) clocks.push_back(*state.clock_hz);
            if (state.watts) watts.push_back(*state.watts);
        }
    }
    stream.wait();
    std::vector<double> times;
    for (int window = windows / 2; window < windows; ++window)
        times.push_back(
            events[static_cast<std::size_t>(window) + 1].seconds_since(events[static_cast<std::size_t>(window)]) /
            count);
    Json figure = rate_figure(name, unit, per_launch, spread_of(times),
                              "second half of " + std::to_string(windows * count) + " " + what + " on end");
    if (!clocks.empty()) figure["clock_hz"] = spread_of(clocks).median;
    if (!watts.empty()) figure["watts"] = spread_of(watts).median;
    return figure;
}

}  // namespace roofline::probe
