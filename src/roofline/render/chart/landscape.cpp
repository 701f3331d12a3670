#include "roofline/render/chart/landscape.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "roofline/render/chart/layout.hpp"
#include "roofline/render/chart/marks.hpp"
#include "roofline/render/chart/scale.hpp"
#include "roofline/render/chart/svg.hpp"
#include "roofline/render/chart/text_width.hpp"
#include "roofline/render/chart/theme.hpp"

namespace roofline::render::chart {
namespace {

constexpr double width = 960.0;
constexpr double usual_height = 720.0;
constexpr double crowded_height = 860.0;
constexpr std::size_t crowd = 40;
constexpr std::size_t most_names = 100;  // with more, the lines from far names would hide the points
constexpr double radius = 5.0;

bool drawable(const LandscapePoint& point) {
    return std::isfinite(point.x) && std::isfinite(point.y) && point.x > 0.0 && point.y > 0.0;
}

Frame frame_of(const std::vector<LandscapePoint>& points, const LandscapeLook& look, const Box& plot) {
    double least_x = 1e300;
    double most_x = 0.0;
    double least_y = 1e300;
    double most_y = 0.0;
    for (const LandscapePoint& point : points) {
        if (!drawable(point)) continue;
        least_x = std::min(least_x, point.x);
        most_x = std::max(most_x, point.x);
        least_y = std::min(least_y, point.y);
        most_y = std::max(most_y, point.y);
    }
    if (!(most_x > 0.0)) {
        least_x = least_y = 1.0;
        most_x = most_y = 10.0;
    }
    Frame frame;
    frame.plot = plot;
    frame.x = {least_x / 1.6, most_x * 2.2, plot.left, plot.right, true};
    frame.y = {least_y / 1.8, most_y * 1.8, plot.bottom, plot.top, true};
    frame.x_name = look.x_name;
    frame.y_name = look.y_name;
    return frame;
}

/// The line from edge to edge, its words where it leaves the picture. What they take is kept free.
void draw_diagonal(Svg& svg, const Frame& frame, const Diagonal& diagonal, std::vector<Box>& taken) {
    const double low = std::max(frame.x.low, frame.y.low / diagonal.ratio);
    const double high = std::min(frame.x.high, frame.y.high / diagonal.ratio);
    if (!(high > low)) return;
    const Point from = frame.at(low, low * diagonal.ratio);
    const Point to = frame.at(high, high * diagonal.ratio);
    svg.line(from, to, "ridge");
    const double length = std::sqrt((to.x - from.x) * (to.x - from.x) + (to.y - from.y) * (to.y - from.y));
    const double wide = text_width(diagonal.words, small_size);
    if (length < wide + 30.0) return;
    const Point along{(to.x - from.x) / length, (to.y - from.y) / length};
    const double begin = length - wide - 12.0;
    const Point words{from.x + along.x * begin + along.y * 5.0, from.y + along.y * begin - along.x * 5.0};
    svg.text(words, diagonal.words, "halo small soft", Anchor::start, along);
    for (double done = 0.0; done <= wide; done += 8.0) {
        const Point at{words.x + along.x * done, words.y + along.y * done};
        taken.push_back({at.x - 6.0, at.y - 11.0, at.x + 6.0, at.y + 4.0});
    }
}

}  // namespace

std::string landscape_chart(const std::vector<LandscapePoint>& points, const LandscapeLook& look) {
    std::vector<std::string> series;
    std::size_t left_out = 0;
    for (const LandscapePoint& point : points) {
        left_out += drawable(point) ? 0 : 1;
        if (drawable(point) && std::find(series.begin(), series.end(), point.series) == series.end())
            series.push_back(point.series);
    }
    // The largest first: there are more series than colours, and those that share one should not both be large.
    const auto size_of = [&](const std::string& name) {
        return std::count_if(points.begin(), points.end(),
                             [&](const LandscapePoint& point) { return drawable(point) && point.series == name; });
    };
    std::sort(series.begin(), series.end(), [&](const std::string& a, const std::string& b) {
        const auto one = size_of(a);
        const auto two = size_of(b);
        return one != two ? one > two : a < b;
    });
    constexpr std::array<Shape, 6> shapes = {Shape::circle,   Shape::square, Shape::diamond,
                                             Shape::triangle, Shape::down,   Shape::cross};
    std::vector<LegendItem> legend;
    for (std::size_t i = 0; i < series.size() && series.size() > 1; ++i)
        legend.push_back({LegendItem::Kind::mark, shapes[i % shapes.size()],
                          fmt::format("mark fill {}", series_class(i)), series[i]});
    std::vector<std::string> notes;
    if (left_out > 0)
        notes.push_back(fmt::format("Not shown, one of the two figures being unknown or nought: {}.", left_out));
    const double height = points.size() > crowd ? crowded_height : usual_height;
    Svg svg(width, height, look.title, fmt::format("{} points by {} and {}", points.size(), look.x_name, look.y_name));
    double top = draw_heading(svg, look.title, {look.subtitle});
    top += draw_legend(svg, {24.0, top}, width - 48.0, legend) + 8.0;
    const Frame frame = frame_of(points, look, {82.0, top, width - 24.0, height - 52.0 - notes_height(notes)});
    draw_frame(svg, frame);
    svg.open_clipped(frame.plot, "inside");
    std::vector<Box> taken;
    for (const Diagonal& diagonal : look.diagonals) draw_diagonal(svg, frame, diagonal, taken);
    std::vector<Label> labels;
    for (const LandscapePoint& point : points) {
        if (!drawable(point)) continue;
        labels.push_back({frame.at(point.x, point.y), radius + (point.ringed ? 5.0 : 0.0), point.name,
                          point.ringed ? text_size : small_size, point.ringed ? 1.0 : 0.0, point.ringed,
                          points.size() <= most_names});
    }
    const auto placed = place_labels(
        labels, taken, {frame.plot.left + 4.0, frame.plot.top + 4.0, frame.plot.right - 4.0, frame.plot.bottom - 4.0});
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (!placed[i] || !placed[i]->far) continue;
        svg.line(labels[i].target, placed[i]->near(labels[i].target), "leader");
    }
    for (const LandscapePoint& point : points) {
        if (!drawable(point)) continue;
        const auto number =
            static_cast<std::size_t>(std::find(series.begin(), series.end(), point.series) - series.begin());
        svg.open_at(frame.at(point.x, point.y), "point");
        svg.tooltip(point.explained.empty() ? point.name : point.explained);
        draw_mark(svg, shapes[number % shapes.size()], radius, fmt::format("mark fill {}", series_class(number)));
        if (point.ringed) svg.circle({0.0, 0.0}, radius + 5.0, "whole");
        svg.close();
    }
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (placed[i]) svg.text(placed[i]->baseline(), labels[i].text, labels[i].bold ? "halo strong" : "halo small");
    }
    svg.close();
    draw_notes(svg, notes);
    return svg.finish();
}

}  // namespace roofline::render::chart
