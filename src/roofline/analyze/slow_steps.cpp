#include "roofline/analyze/slow_steps.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/render/numbers.hpp"

namespace roofline::analyze {
namespace {

constexpr std::size_t fewest = 3;  // steps of a stage: of fewer, none is known to be the usual one
constexpr double far = 10.0;       // times the median

std::int64_t busy(const Items& items, const Step& step) {
    std::int64_t sum = 0;
    for (const std::uint32_t i : step.items) {
        spool_room::breathe(i);
        sum += items.all[i].time;
    }
    return sum;
}

double median(std::vector<std::int64_t> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    const auto upper = static_cast<double>(values[half]);
    return values.size() % 2 == 1 ? upper : (upper + static_cast<double>(values[half - 1])) / 2.0;
}

}  // namespace

std::vector<std::string> set_slow_steps_apart(const Items& items, Steps& steps) {
    std::vector<std::string> notes;
    for (Stage& stage : steps.stages) {
        if (stage.steps.size() < fewest) continue;
        std::vector<std::int64_t> walls;
        for (const std::uint32_t i : stage.steps) walls.push_back(steps.all[i].wall());
        const double usual = median(walls);
        std::vector<std::uint32_t> kept;
        for (const std::uint32_t i : stage.steps) {
            Step& step = steps.all[i];
            // What it waited, not what it took: a step with more to compute is no slower than the others.
            if (static_cast<double>(step.wall() - busy(items, step)) <= far * usual) {
                kept.push_back(i);
                continue;
            }
            step.stage = static_cast<std::uint32_t>(steps.stages.size());
            const auto wall = static_cast<double>(step.wall());
            notes.push_back(fmt::format(
                "{} took {}, {:.0f} times the median of the {} steps of {}, and waited for most of it (compiling? "
                "loading?): it is counted outside steps, not in averages and findings",
                step.name, render::time(Seconds(wall * 1e-9)), wall / usual, walls.size(), stage.name));
        }
        stage.steps = std::move(kept);
    }
    return notes;
}

}  // namespace roofline::analyze
