#include "roofline/cli/compare_chart.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "roofline/render/chart/tornado.hpp"

namespace roofline::cli {
namespace {

using assess::Row;
using render::chart::TornadoBar;

constexpr std::size_t most_sides = 3;
constexpr std::size_t most_bars = 14;

/// A ratio that is no news, or of something that hardly takes any time, gets no bar.
bool differs(const Row& row, std::size_t side) {
    const auto& ratio = row.sides[side].ratio;
    return row.counts && ratio && *ratio > 0.0 && std::abs(*ratio - 1.0) > assess::same_within;
}

TornadoBar bar_of(const Row& row, std::size_t side, std::string name) {
    const double ratio = *row.sides[side].ratio;
    return {std::move(name), row.higher_is_better ? ratio : 1.0 / ratio, row.group};
}

/// How far from nothing a bar goes: half as fast is as much news as twice as fast.
double length(const TornadoBar& bar) {
    return std::max(bar.gain, 1.0 / bar.gain);
}

}  // namespace

std::vector<std::string> compare_charts(const assess::Comparison& comparison) {
    std::vector<std::string> charts;
    for (std::size_t side = 1; side < comparison.titles.size() && charts.size() < most_sides; ++side) {
        std::vector<TornadoBar> wholes;
        std::vector<TornadoBar> parts;
        for (const assess::StageComparison& stage : comparison.stages) {
            if (!comparison.devices && differs(stage.total, side))
                wholes.push_back(bar_of(stage.total, side, stage.name + ", whole"));
            for (const Row& row : stage.rows) {
                if (!differs(row, side)) continue;
                parts.push_back(bar_of(row, side, comparison.devices ? row.name : stage.name + " " + row.name));
            }
        }
        std::stable_sort(parts.begin(), parts.end(),
                         [](const TornadoBar& a, const TornadoBar& b) { return length(a) > length(b); });
        for (TornadoBar& bar : parts) {
            if (wholes.size() < most_bars) wholes.push_back(std::move(bar));
        }
        if (wholes.empty()) continue;
        charts.push_back(render::chart::tornado_chart(
            std::move(wholes), fmt::format("{} against {}", comparison.titles[side], comparison.titles[0]),
            comparison.devices ? "times as much, of every figure that differs"
                               : "times as fast; whole stages, and what differs most of all that takes 1% of one"));
    }
    return charts;
}

}  // namespace roofline::cli
