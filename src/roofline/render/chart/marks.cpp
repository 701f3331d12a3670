#include "roofline/render/chart/marks.hpp"

#include <fmt/format.h>

#include "roofline/render/chart/text_width.hpp"
#include "roofline/render/chart/theme.hpp"

namespace roofline::render::chart {
namespace {

constexpr double margin = 24.0;

}  // namespace

Shape stage_shape(std::string_view stage) {
    if (stage.starts_with("decode")) return Shape::circle;
    if (stage.starts_with("prefill")) return Shape::square;
    if (stage.starts_with("mixed")) return Shape::diamond;
    return Shape::triangle;
}

void draw_mark(Svg& svg, Shape shape, double radius, std::string_view classes) {
    const double r = radius;
    switch (shape) {
        case Shape::circle:
            svg.circle({0.0, 0.0}, r, classes);
            break;
        case Shape::square: {
            const double s = 0.886 * r;  // half of the side of a square of the circle's area
            svg.rectangle({-s, -s, s, s}, classes);
            break;
        }
        case Shape::diamond:
            svg.area({{0.0, -1.25 * r}, {1.25 * r, 0.0}, {0.0, 1.25 * r}, {-1.25 * r, 0.0}}, classes);
            break;
        case Shape::triangle:
            svg.area({{0.0, -1.5 * r}, {1.35 * r, 0.8 * r}, {-1.35 * r, 0.8 * r}}, classes);
            break;
        case Shape::down:
            svg.area({{0.0, 1.5 * r}, {1.35 * r, -0.8 * r}, {-1.35 * r, -0.8 * r}}, classes);
            break;
        case Shape::cross: {
            const double a = 0.4 * r;
            svg.area({{-a, -r},
                      {a, -r},
                      {a, -a},
                      {r, -a},
                      {r, a},
                      {a, a},
                      {a, r},
                      {-a, r},
                      {-a, a},
                      {-r, a},
                      {-r, -a},
                      {-a, -a}},
                     classes);
            break;
        }
    }
}

double draw_legend(Svg& svg, Point from, double width, const std::vector<LegendItem>& items) {
    constexpr double row = 20.0;
    constexpr double between = 18.0;
    if (items.empty()) return 0.0;
    double x = from.x;
    double y = from.y + row / 2.0;
    svg.open("legend");
    for (const LegendItem& item : items) {
        const double sign = item.kind == LegendItem::Kind::mark ? 16.0 : 32.0;
        const double wide = sign + text_width(item.text, text_size);
        if (x > from.x && x + wide > from.x + width) {
            x = from.x;
            y += row;
        }
        if (item.kind == LegendItem::Kind::mark) {
            svg.open_at({x + 6.0, y}, "sign");
            draw_mark(svg, item.shape, 5.5, item.classes);
            svg.close();
        } else if (item.kind == LegendItem::Kind::line) {
            svg.line({x, y}, {x + 26.0, y}, item.classes);
        } else {
            svg.rectangle({x, y - 6.0, x + 26.0, y + 6.0}, item.classes);
        }
        svg.text({x + sign, y + 4.0}, item.text, "legend-text");
        x += wide + between;
    }
    svg.close();
    return y + row / 2.0 - from.y;
}

double draw_heading(Svg& svg, std::string_view title, const std::vector<std::string>& lines) {
    const double room = svg.width() - 2.0 * margin;
    svg.text({margin, 34.0}, shortened(title, room, title_size, true), "title");
    double y = 36.0;
    for (const std::string& line : lines) {
        y += 19.0;
        svg.text({margin, y}, shortened(line, room, 13.0), "subtitle");
    }
    return y + 12.0;
}

double notes_height(const std::vector<std::string>& notes) {
    return notes.empty() ? 0.0 : 15.0 * static_cast<double>(notes.size()) + 6.0;
}

void draw_notes(Svg& svg, const std::vector<std::string>& notes) {
    double y = svg.height() - 15.0 * static_cast<double>(notes.size()) + 3.0;
    for (const std::string& note : notes) {
        svg.text({margin, y}, shortened(note, svg.width() - 2.0 * margin, small_size), "note");
        y += 15.0;
    }
}

void draw_frame(Svg& svg, const Frame& frame) {
    const Box& plot = frame.plot;
    svg.rectangle(plot, "plot");
    svg.open_clipped({plot.left - 1.0, plot.top - 1.0, plot.right + 1.0, plot.bottom + 1.0}, "grids");
    for (const Tick& tick : ticks_of(frame.x)) {
        svg.open_at({frame.x.at(tick.value), 0.0}, "move-x");
        svg.line({0.0, plot.top}, {0.0, plot.bottom}, tick.label.empty() ? "grid-minor" : "grid");
        svg.close();
    }
    for (const Tick& tick : ticks_of(frame.y)) {
        svg.open_at({0.0, frame.y.at(tick.value)}, "move-y");
        svg.line({plot.left, 0.0}, {plot.right, 0.0}, tick.label.empty() ? "grid-minor" : "grid");
        svg.close();
    }
    svg.close();
    svg.open("tick-labels");
    for (const Tick& tick : ticks_of(frame.x)) {
        if (tick.label.empty()) continue;
        svg.open_at({frame.x.at(tick.value), 0.0}, "move-x tick");
        svg.text({0.0, plot.bottom + 18.0}, tick.label, "small", Anchor::middle);
        svg.close();
    }
    for (const Tick& tick : ticks_of(frame.y)) {
        if (tick.label.empty()) continue;
        svg.open_at({0.0, frame.y.at(tick.value)}, "move-y tick");
        svg.text({plot.left - 8.0, 4.0}, tick.label, "small", Anchor::end);
        svg.close();
    }
    svg.close();
    svg.lines({{plot.left, plot.top}, {plot.left, plot.bottom}, {plot.right, plot.bottom}}, "axis");
    svg.text({(plot.left + plot.right) / 2.0, plot.bottom + 38.0}, frame.x_name, "axis-name", Anchor::middle);
    svg.text({plot.left - 52.0, (plot.top + plot.bottom) / 2.0}, frame.y_name, "axis-name", Anchor::middle,
             {0.0, -1.0});
}

}  // namespace roofline::render::chart
