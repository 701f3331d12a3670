#include "roofline/measure/estimate.hpp"

#include <algorithm>
#include <functional>

namespace roofline::measure {
namespace {

constexpr double falls_below = 0.85;  // of a plateau's rate: its knee is behind us
constexpr double flat = 0.90;         // rate of twice the working set over the rate: a plateau begins

/// What is left of the sweep when noise is taken away: a larger working set is never read faster than a smaller one, so
/// the rate at a size is at least that of every larger size.
std::vector<double> envelope(std::span<const SweepPoint> sweep) {
    std::vector<double> rates(sweep.size());
    double best = 0.0;
    for (std::size_t i = sweep.size(); i-- > 0;) {
        best = std::max(best, sweep[i].rate);
        rates[i] = best;
    }
    return rates;
}

/// The first point at least twice as large, or the last one.
std::size_t twice(std::span<const SweepPoint> sweep, std::size_t i) {
    std::size_t j = i;
    while (j + 1 < sweep.size() && sweep[j].bytes < 1.99 * sweep[i].bytes) ++j;
    return j;
}

}  // namespace

Estimate estimate(std::span<const double> rates) {
    std::vector<double> sorted(rates.begin(), rates.end());
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    if (sorted.empty()) return {};
    const std::size_t averaged = std::min(windows_averaged, sorted.size());
    std::size_t first = 0;
    bool agreed = false;
    if (sorted.size() >= windows_averaged) {
        for (std::size_t i = 0; i + windows_averaged <= sorted.size() && i <= most_skipped && !agreed; ++i) {
            if (sorted[i + windows_averaged - 1] >= (1.0 - agreement) * sorted[i]) {
                first = i;
                agreed = true;
            }
        }
    }
    double sum = 0.0;
    for (std::size_t i = first; i < first + averaged; ++i) sum += sorted[i];
    return {sum / static_cast<double>(averaged),
            sorted[first] > 0.0 ? (sorted[first] - sorted[first + averaged - 1]) / sorted[first] : 0.0, agreed};
}

bool settled(std::span<const double> rates) {
    if (rates.size() < settled_after + windows_averaged) return false;
    const Estimate before = estimate(rates.first(rates.size() - settled_after));
    const Estimate now = estimate(rates);
    return before.agreed && now.agreed && now.rate < (1.0 + settled_gain) * before.rate;
}

std::vector<Plateau> plateaus(std::span<const SweepPoint> sweep) {
    std::vector<Plateau> found;
    if (sweep.empty()) return found;
    const std::vector<double> rates = envelope(sweep);
    std::size_t i = 0;
    while (i < sweep.size()) {
        // Down the slope to where the rate no longer falls much within an octave.
        while (i + 1 < sweep.size() && rates[twice(sweep, i)] < flat * rates[i]) ++i;
        Plateau plateau{rates[i], sweep[i].bytes, sweep[i].bytes};
        std::size_t j = i;
        while (j < sweep.size() && rates[j] >= falls_below * plateau.rate) ++j;
        plateau.knee = sweep[j - 1].bytes;
        const bool same_level = !found.empty() && plateau.rate >= falls_below * found.back().rate;
        if (same_level) {
            found.back().knee = plateau.knee;
        } else if (j == sweep.size() || plateau.knee >= 1.99 * plateau.smallest || found.empty()) {
            found.push_back(plateau);
        }
        i = j;
    }
    return found;
}

}  // namespace roofline::measure
