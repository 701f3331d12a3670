#include "roofline/bench/harness.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace roofline::bench {

double steady_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Timing summarise(std::vector<double> windows, std::int64_t calls) {
    if (windows.empty()) return {};
    std::sort(windows.begin(), windows.end());
    const std::size_t last = windows.size() - 1;
    Timing timing;
    timing.median = windows.size() % 2 == 1 ? windows[last / 2] : 0.5 * (windows[last / 2] + windows[last / 2 + 1]);
    timing.low = windows[last / 10];
    timing.high = windows[last - last / 10];
    timing.calls = calls;
    return timing;
}

Timing time_calls(const std::function<void(std::size_t)>& run, std::size_t copies, const Budget& budget,
                  const Clock& clock) {
    // The first calls meet cold pages, sleeping threads and slow clocks; they only say how many calls fill a window.
    std::size_t copy = 0;
    double quickest = 0.0;
    double begin = clock();
    const double warm_until = begin + std::max(budget.window, 0.1 * budget.seconds);
    const double enough = 10.0 * std::max(budget.window, budget.seconds);  // calls this long need no company
    for (int call = 0; (call < 2 && clock() < begin + enough) || (clock() < warm_until && call < 10'000); ++call) {
        const double before = clock();
        run(copy++ % copies);
        const double taken = clock() - before;
        quickest = call == 0 ? taken : std::min(quickest, taken);
    }
    const double per_window = quickest > 0.0 ? std::clamp(std::ceil(budget.window / quickest), 1.0, 1e6) : 1e6;
    const auto calls = static_cast<std::int64_t>(per_window);
    std::vector<double> windows;
    begin = clock();
    while (windows.size() < budget.most && (windows.size() < budget.least || clock() - begin < budget.seconds)) {
        if (!windows.empty() && clock() > begin + enough) break;
        const double before = clock();
        for (std::int64_t call = 0; call < calls; ++call) run(copy++ % copies);
        windows.push_back((clock() - before) / static_cast<double>(calls));
    }
    const auto count = static_cast<std::int64_t>(windows.size());
    return summarise(std::move(windows), count * calls);
}

}  // namespace roofline::bench
