#include "roofline/render/chart/throughput_latency.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/render/chart/layout.hpp"
#include "roofline/render/chart/marks.hpp"
#include "roofline/render/chart/scale.hpp"
#include "roofline/render/chart/svg.hpp"
#include "roofline/render/chart/text_width.hpp"
#include "roofline/render/chart/theme.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::render::chart {
namespace {

constexpr double width = 960.0;
constexpr double height = 620.0;

bool drawable(const LoadPoint& point) {
    return point.seconds > 0.0 && point.rate > 0.0;
}

Frame frame_of(const std::vector<LoadCurve>& curves, const Box& plot) {
    double low_x = 1e300;
    double high_x = 0.0;
    double low_y = 1e300;
    double high_y = 0.0;
    const auto include = [&](double seconds, double rate) {
        if (!(seconds > 0.0 && rate > 0.0)) return;
        low_x = std::min(low_x, seconds);
        high_x = std::max(high_x, seconds);
        low_y = std::min(low_y, rate);
        high_y = std::max(high_y, rate);
    };
    for (const LoadCurve& curve : curves) {
        for (const LoadPoint& point : curve.points) {
            include(point.seconds, point.rate);
            include(point.limit_seconds, point.limit_rate);
        }
    }
    if (!(high_x > 0.0)) include(1e-3, 1.0);
    Frame frame;
    frame.plot = plot;
    frame.x = {low_x / 1.3, high_x * 1.4, plot.left, plot.right, true, "s"};
    frame.y = {low_y / 1.6, high_y * 1.8, plot.bottom, plot.top, true};
    frame.x_name = "time between two tokens of a sequence";
    frame.y_name = "tokens/s of all sequences";
    return frame;
}

}  // namespace

std::string throughput_latency_chart(const std::vector<LoadCurve>& curves, const std::string& title,
                                     const std::string& along) {
    std::vector<LegendItem> legend;
    bool compute = false;
    bool full = false;
    for (std::size_t i = 0; i < curves.size(); ++i) {
        if (curves.size() > 1)
            legend.push_back({LegendItem::Kind::line, Shape::circle, fmt::format("series stroke {}", series_class(i)),
                              curves[i].name});
        for (const LoadPoint& point : curves[i].points) {
            compute = compute || point.compute_bound;
            full = full || !point.fits;
        }
    }
    legend.push_back({LegendItem::Kind::line, Shape::circle, "series roof", "expected"});
    legend.push_back({LegendItem::Kind::line, Shape::circle, "series roof roof-attainable", "limit"});
    if (compute) legend.push_back({LegendItem::Kind::mark, Shape::diamond, "whole", "compute-bound from here"});
    if (full) legend.push_back({LegendItem::Kind::mark, Shape::square, "whole", "the last that fits in memory"});
    const std::string subtitle = fmt::format(
        "each point is a {}, written beside it; up is more throughput, left is a faster answer for each user", along);
    Svg svg(width, height, title, fmt::format("{} curves of throughput against latency", curves.size()));
    double top = draw_heading(svg, title, {subtitle});
    top += draw_legend(svg, {24.0, top}, width - 48.0, legend) + 8.0;
    const Frame frame = frame_of(curves, {82.0, top, width - 24.0, height - 52.0});
    draw_frame(svg, frame);
    svg.open_clipped(frame.plot, "inside");
    std::vector<Label> labels;
    std::vector<Box> taken;
    for (std::size_t i = 0; i < curves.size(); ++i) {
        const auto colour = series_class(i);
        std::vector<Point> expected;
        std::vector<Point> beyond;
        std::vector<Point> limit;
        for (const LoadPoint& point : curves[i].points) {
            if (!drawable(point)) continue;
            const Point at = frame.at(point.seconds, point.rate);
            if (point.fits)
                expected.push_back(at);
            else {
                if (beyond.empty() && !expected.empty()) beyond.push_back(expected.back());
                beyond.push_back(at);
            }
            if (point.limit_seconds > 0.0 && point.limit_rate > 0.0)
                limit.push_back(frame.at(point.limit_seconds, point.limit_rate));
        }
        if (limit.size() > 1) svg.lines(limit, fmt::format("series roof-attainable stroke {}", colour));
        if (beyond.size() > 1) svg.lines(beyond, "series gap");
        if (expected.size() > 1) svg.lines(expected, fmt::format("series stroke {}", colour));
        const LoadPoint* last = nullptr;
        bool turned = false;
        const bool any_beyond = !beyond.empty();
        for (const LoadPoint& point : curves[i].points) {
            if (!drawable(point)) continue;
            const Point at = frame.at(point.seconds, point.rate);
            svg.open_at(at, "point");
            svg.tooltip(fmt::format("{}\n{} {}\n{} between tokens, {} tokens/s{}{}{}", curves[i].name, along,
                                    grouped(point.along), render::time(Seconds(point.seconds)), plain(point.rate),
                                    point.bound.empty() ? "" : ", held back by ", point.bound,
                                    point.fits ? "" : "\ndoes not fit in memory"));
            svg.circle({0.0, 0.0}, 4.0, point.fits ? fmt::format("mark fill {}", colour) : "mark g-other hollow");
            const bool turns = point.compute_bound && !turned;
            if (turns) draw_mark(svg, Shape::diamond, 8.0, "whole");
            svg.close();
            turned = turned || point.compute_bound;
            if (point.fits) last = &point;
            labels.push_back({at, turns ? 11.0 : 5.0, grouped(point.along), small_size, point.fits ? 1.0 : 0.5, false});
        }
        if (last != nullptr && any_beyond) {
            const Point at = frame.at(last->seconds, last->rate);
            svg.open_at(at, "edge");
            draw_mark(svg, Shape::square, 9.0, "whole");
            svg.close();
            if (curves[i].largest)
                labels.push_back(
                    {at, 10.0, fmt::format("memory full at {}", grouped(*curves[i].largest)), text_size, 5.0, true});
        }
    }
    const auto placed = place_labels(
        labels, taken, {frame.plot.left + 4.0, frame.plot.top + 4.0, frame.plot.right - 4.0, frame.plot.bottom - 4.0});
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (placed[i]) svg.text(placed[i]->baseline(), labels[i].text, labels[i].bold ? "halo strong" : "halo small");
    }
    svg.close();
    return svg.finish();
}

}  // namespace roofline::render::chart
