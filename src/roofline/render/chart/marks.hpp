// What charts of points share: marks by shape, legends in rows, a frame with axes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofline/render/chart/scale.hpp"
#include "roofline/render/chart/svg.hpp"

namespace roofline::render::chart {

enum class Shape { circle, square, diamond, triangle, down, cross };

/// Stages have a shape each: decode a circle, prefill a square, mixed a diamond, others a triangle.
Shape stage_shape(std::string_view stage);

/// Around the origin of the group that is open. Shapes of one radius look equally large.
void draw_mark(Svg& svg, Shape shape, double radius, std::string_view classes);

struct LegendItem {
    enum class Kind { mark, line, area };
    Kind kind = Kind::mark;
    Shape shape = Shape::circle;
    std::string classes;
    std::string text;
};

/// In rows from a point on, no wider than `width`; returns how high it is.
double draw_legend(Svg& svg, Point from, double width, const std::vector<LegendItem>& items);

/// Title, and lines below it; returns where the next thing may begin.
double draw_heading(Svg& svg, std::string_view title, const std::vector<std::string>& lines);

/// Lines at the foot, small.
void draw_notes(Svg& svg, const std::vector<std::string>& notes);
double notes_height(const std::vector<std::string>& notes);

struct Frame {
    Box plot;
    Scale x;
    Scale y;
    std::string x_name;
    std::string y_name;

    Point at(double x_value, double y_value) const { return {x.at(x_value), y.at(y_value)}; }
};

/// Background, grid, ticks and the names of both axes.
void draw_frame(Svg& svg, const Frame& frame);

}  // namespace roofline::render::chart
