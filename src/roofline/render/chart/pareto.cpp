#include "roofline/render/chart/pareto.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "roofline/render/chart/layout.hpp"
#include "roofline/render/chart/marks.hpp"
#include "roofline/render/chart/scale.hpp"
#include "roofline/render/chart/svg.hpp"
#include "roofline/render/chart/theme.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::render::chart {
namespace {

constexpr double width = 960.0;
constexpr double height = 600.0;

/// The outer edge: each point that none has more of both, from the left.
std::vector<const ParetoPoint*> edge_of(const std::vector<ParetoPoint>& points) {
    std::vector<const ParetoPoint*> order;
    for (const ParetoPoint& point : points) order.push_back(&point);
    std::stable_sort(order.begin(), order.end(), [](const ParetoPoint* a, const ParetoPoint* b) {
        return a->per_user != b->per_user ? a->per_user > b->per_user : a->per_device > b->per_device;
    });
    std::vector<const ParetoPoint*> edge;
    for (const ParetoPoint* point : order) {
        if (edge.empty() || point->per_device > edge.back()->per_device) edge.push_back(point);
    }
    std::reverse(edge.begin(), edge.end());
    return edge;
}

}  // namespace

std::string pareto_chart(const std::vector<ParetoPoint>& points, const std::string& title,
                         const std::string& subtitle) {
    std::vector<std::string> series;
    double most_x = 0.0;
    double most_y = 0.0;
    for (const ParetoPoint& point : points) {
        if (std::find(series.begin(), series.end(), point.series) == series.end()) series.push_back(point.series);
        most_x = std::max(most_x, point.per_user);
        most_y = std::max(most_y, point.per_device);
    }
    std::sort(series.begin(), series.end());
    const auto number_of = [&](const std::string& name) {
        return static_cast<std::size_t>(std::find(series.begin(), series.end(), name) - series.begin());
    };
    constexpr std::array<Shape, 5> shapes = {Shape::circle, Shape::square, Shape::diamond, Shape::triangle,
                                             Shape::down};
    const auto shape_of = [&](std::size_t number) { return shapes[number % shapes.size()]; };
    std::vector<LegendItem> legend;
    for (std::size_t i = 0; i < series.size(); ++i)
        legend.push_back(
            {LegendItem::Kind::mark, shape_of(i), fmt::format("mark fill {}", series_class(i)), series[i]});
    Svg svg(width, height, title,
            fmt::format("{} plans by tokens a second of each user and each device", points.size()));
    double top = draw_heading(svg, title, {subtitle});
    top += draw_legend(svg, {24.0, top}, width - 48.0, legend) + 8.0;
    Frame frame;
    frame.plot = {82.0, top, width - 24.0, height - 52.0};
    frame.x = linear_scale(0.0, most_x * 1.05, frame.plot.left, frame.plot.right);
    frame.y = linear_scale(0.0, most_y * 1.08, frame.plot.bottom, frame.plot.top);
    frame.x_name = "tokens/s that each user sees";
    frame.y_name = "tokens/s from each device";
    draw_frame(svg, frame);
    svg.open_clipped(frame.plot, "inside");
    const auto edge = edge_of(points);
    std::vector<Point> line;
    for (std::size_t i = 0; i < edge.size(); ++i) {
        if (i > 0) line.push_back(frame.at(edge[i - 1]->per_user, edge[i]->per_device));
        line.push_back(frame.at(edge[i]->per_user, edge[i]->per_device));
    }
    if (line.size() > 1) svg.lines(line, "series gap");
    std::vector<Label> labels;
    std::vector<Box> taken;
    for (const ParetoPoint& point : points) {
        const Point at = frame.at(point.per_user, point.per_device);
        const std::size_t number = number_of(point.series);
        svg.open_at(at, "point");
        svg.tooltip(fmt::format("{}\n{} tokens/s for each user, {} from each device", point.name, plain(point.per_user),
                                plain(point.per_device)));
        draw_mark(svg, shape_of(number), point.rank > 0 ? 7.5 : 5.0, fmt::format("mark fill {}", series_class(number)));
        if (point.rank == 1) draw_mark(svg, Shape::circle, 12.0, "whole");
        svg.close();
        if (point.rank == 1)
            labels.push_back({at, 13.0, "best: " + point.name, text_size, 3.0, true});
        else if (point.rank == 2)
            labels.push_back({at, 8.0, "runner-up: " + point.name, text_size, 2.0, false});
        else
            taken.push_back({at.x - 4.0, at.y - 4.0, at.x + 4.0, at.y + 4.0});
    }
    const auto placed = place_labels(
        labels, taken, {frame.plot.left + 4.0, frame.plot.top + 4.0, frame.plot.right - 4.0, frame.plot.bottom - 4.0});
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (!placed[i]) continue;
        const Box& box = placed[i]->box;
        if (placed[i]->far)
            svg.line(labels[i].target,
                     {std::clamp(labels[i].target.x, box.left, box.right),
                      std::clamp(labels[i].target.y, box.top, box.bottom)},
                     "leader");
        svg.text(placed[i]->baseline(), labels[i].text, labels[i].bold ? "halo strong" : "halo");
    }
    if (points.empty())
        svg.text({width / 2.0, (frame.plot.top + frame.plot.bottom) / 2.0}, "no plan", "soft", Anchor::middle);
    svg.close();
    return svg.finish();
}

}  // namespace roofline::render::chart
