#include "roofline/analyze/slow_steps.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "roofline/render/numbers.hpp"

namespace roofline::analyze {
namespace {

constexpr std::size_t fewest = 4;  // steps of a stage: of fewer, none is known to be the usual one
constexpr double far = 10.0;       // times the median

struct Started {
    std::int64_t busy = 0;
    bool in_graph = false;
};

Started started(const Items& items, const Step& step) {
    Started result;
    std::int64_t in_graphs = 0;
    for (const std::uint32_t i : step.items) {
        spool_room::breathe(i);
        result.busy += items.all[i].time;
        if (items.all[i].in_graph) in_graphs += items.all[i].time;
    }
    result.in_graph = in_graphs * 2 > result.busy;
    return result;
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
        // A replayed graph takes a fraction of the same step launched kernel by kernel: neither is slow for that.
        std::array<std::vector<std::int64_t>, 2> walls;
        std::vector<Started> how;
        for (const std::uint32_t i : stage.steps) {
            how.push_back(started(items, steps.all[i]));
            walls[how.back().in_graph ? 1 : 0].push_back(steps.all[i].wall());
        }
        std::array<double, 2> usual{};
        for (std::size_t i = 0; i < walls.size(); ++i) usual[i] = walls[i].empty() ? 0.0 : median(walls[i]);
        std::vector<std::uint32_t> kept;
        for (std::size_t i = 0; i < stage.steps.size(); ++i) {
            Step& step = steps.all[stage.steps[i]];
            const std::size_t alike = how[i].in_graph ? 1 : 0;
            // What it waited, not what it took: a step with more to compute is no slower than the others.
            if (static_cast<double>(step.wall() - how[i].busy) <= far * usual[alike]) {
                kept.push_back(stage.steps[i]);
                continue;
            }
            step.stage = static_cast<std::uint32_t>(steps.stages.size());
            const auto wall = static_cast<double>(step.wall());
            notes.push_back(fmt::format(
                "{} took {}, {:.0f} times the median of the {} steps of {} {}, and waited for most of it (compiling? "
                "loading?): it is counted outside steps, not in averages and findings",
                step.name, render::time(Seconds(wall * 1e-9)), wall / usual[alike], walls[alike].size(), stage.name,
                how[i].in_graph ? "in graphs" : "outside graphs"));
        }
        stage.steps = std::move(kept);
    }
    return notes;
}

}  // namespace roofline::analyze
