#include "roofline/render/chart/timeline.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "roofline/render/chart/marks.hpp"
#include "roofline/render/chart/scale.hpp"
#include "roofline/render/chart/svg.hpp"
#include "roofline/render/chart/text_width.hpp"
#include "roofline/render/chart/theme.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::render::chart {
namespace {

struct Span {
    double from;
    double to;
};

void sort_by_start(std::vector<TimelineEvent>& events) {
    std::stable_sort(events.begin(), events.end(),
                     [](const TimelineEvent& a, const TimelineEvent& b) { return a.start < b.start; });
}

/// Holes between events that are sorted by their start.
std::vector<Span> holes_of(const std::vector<TimelineEvent>& events) {
    std::vector<Span> holes;
    double reached = events.empty() ? 0.0 : events.front().start;
    for (const TimelineEvent& event : events) {
        if (event.start > reached) holes.push_back({reached, event.start});
        reached = std::max(reached, event.end);
    }
    return holes;
}

}  // namespace

double idle_time(std::vector<TimelineEvent> events) {
    sort_by_start(events);
    double sum = 0.0;
    for (const Span& hole : holes_of(events)) sum += hole.to - hole.from;
    return sum;
}

std::string timeline_chart(std::vector<TimelineEvent> events, const std::vector<TimelineLane>& lanes,
                           const std::string& title) {
    constexpr double width = 960.0;
    constexpr double row = 46.0;
    constexpr double left = 120.0;
    sort_by_start(events);
    double begin = events.empty() ? 0.0 : events.front().start;
    double end = begin;
    int most = static_cast<int>(lanes.size()) - 1;
    std::array<bool, group_count> seen{};
    for (const TimelineEvent& event : events) {
        end = std::max(end, event.end);
        most = std::max(most, event.lane);
        seen[index(event.group)] = true;
    }
    if (!(end > begin)) end = begin + 1e-6;
    const double idle = idle_time(events);
    std::vector<LegendItem> legend;
    for (std::size_t i = 0; i < group_count; ++i) {
        const auto group = static_cast<Group>(i);
        if (seen[i])
            legend.push_back({LegendItem::Kind::mark, Shape::square, fmt::format("mark {}", group_class(group)),
                              std::string(name(group))});
    }
    if (idle > 0.0) legend.push_back({LegendItem::Kind::area, Shape::square, "idle", "nothing runs"});
    const double height = 150.0 + row * static_cast<double>(std::max(1, most + 1));
    Svg svg(width, height, title, fmt::format("{} events on a line of time", events.size()));
    double top = draw_heading(
        svg, title,
        {fmt::format("{} from first to last; {} of it ({}) nothing runs", render::time(Seconds(end - begin)),
                     render::time(Seconds(idle)), percent(idle / (end - begin)))});
    top += draw_legend(svg, {24.0, top}, width - 48.0, legend) + 10.0;
    // In the unit that keeps the numbers small.
    const double unit = end - begin >= 1.0 ? 1.0 : end - begin >= 1e-3 ? 1e-3 : 1e-6;
    const Scale x{0.0, (end - begin) / unit, left, width - 24.0, false};
    const double bottom = top + row * static_cast<double>(std::max(1, most + 1));
    svg.rectangle({left, top, width - 24.0, bottom}, "plot");
    for (const Tick& tick : linear_ticks(0.0, x.high, 8)) {
        svg.line({x.at(tick.value), top}, {x.at(tick.value), bottom}, "grid");
        svg.text({x.at(tick.value), bottom + 18.0}, tick.label, "small", Anchor::middle);
    }
    svg.open_clipped({left, top, width - 24.0, bottom}, "inside");
    for (const Span& hole : holes_of(events)) {
        const double from = x.at((hole.from - begin) / unit);
        const double to = x.at((hole.to - begin) / unit);
        svg.rectangle({from, top, to, bottom}, "idle", "nothing runs: " + render::time(Seconds(hole.to - hole.from)));
    }
    for (const TimelineEvent& event : events) {
        const double from = x.at((event.start - begin) / unit);
        const double to = x.at((event.end - begin) / unit);
        const double y = top + row * std::max(0, event.lane);
        // The outline of what is narrower than it would be all one sees.
        const bool outlined = to - from >= 3.0;
        svg.rectangle({from, y + 7.0, std::max(to, from + 0.5), y + row - 7.0},
                      fmt::format("{}{}", outlined ? "bar " : "", group_class(event.group)),
                      fmt::format("{}\n{} from {}", event.name, render::time(Seconds(event.end - event.start)),
                                  render::time(Seconds(event.start - begin))));
        const std::string word =
            event.name.substr(event.name.rfind('.') == std::string::npos ? 0 : event.name.rfind('.') + 1);
        if (text_width(word, small_size) + 6.0 <= to - from)
            svg.text({(from + to) / 2.0, y + row / 2.0 + 4.0}, word, fmt::format("small {}", words_on(event.group)),
                     Anchor::middle);
    }
    svg.close();
    for (int lane = 0; lane <= most; ++lane) {
        const std::string name = static_cast<std::size_t>(lane) < lanes.size()
                                     ? lanes[static_cast<std::size_t>(lane)].name
                                     : fmt::format("lane {}", lane);
        svg.text({left - 10.0, top + row * lane + row / 2.0 + 4.0}, shortened(name, left - 34.0, text_size),
                 "label-text", Anchor::end);
    }
    svg.lines({{left, top}, {left, bottom}, {width - 24.0, bottom}}, "axis");
    svg.text({(left + width - 24.0) / 2.0, bottom + 36.0},
             unit == 1.0    ? "time (s)"
             : unit == 1e-3 ? "time (ms)"
                            : "time (us)",
             "axis-name", Anchor::middle);
    return svg.finish();
}

}  // namespace roofline::render::chart
