// A small writer of SVG: shapes by class, colours in one style sheet (theme.hpp), numbers with at most two decimals,
// every text escaped. The same calls give the same bytes everywhere.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roofline::render::chart {

struct Point {
    double x = 0.0;
    double y = 0.0;
};

struct Box {
    double left = 0.0;
    double top = 0.0;
    double right = 0.0;
    double bottom = 0.0;

    double width() const { return right - left; }
    double height() const { return bottom - top; }
    bool overlaps(const Box& other) const {
        return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
    }
    bool inside(const Box& outer) const {
        return left >= outer.left && right <= outer.right && top >= outer.top && bottom <= outer.bottom;
    }
};

enum class Anchor { start, middle, end };

/// Text and attribute values: the five characters that mean something, and none that XML forbids. What is not UTF-8
/// becomes a replacement mark.
std::string escaped(std::string_view text);

/// Two decimals at most, no "-0".
std::string coordinate(double value);

using Attributes = std::initializer_list<std::pair<std::string_view, std::string_view>>;

class Svg {
  public:
    /// The title and what it shows, for readers who do not see it.
    Svg(double width, double height, std::string_view title, std::string_view description);

    void open(std::string_view classes, Attributes attributes = {});
    /// A group whose origin is at a point.
    void open_at(Point place, std::string_view classes, Attributes attributes = {});
    void close();

    void line(Point a, Point b, std::string_view classes);
    void lines(const std::vector<Point>& points, std::string_view classes);
    void area(const std::vector<Point>& corners, std::string_view classes, std::string_view tooltip = {});
    void rectangle(const Box& box, std::string_view classes, std::string_view tooltip = {}, double round = 0.0);
    void circle(Point centre, double radius, std::string_view classes);
    /// Many round dots as one path: thousands of them stay small.
    void dots(const std::vector<Point>& centres, std::string_view classes);
    void text(Point place, std::string_view words, std::string_view classes, Anchor anchor = Anchor::start,
              Point along = {1.0, 0.0});
    /// Of the group that is open: what shows when a mouse rests on it.
    void tooltip(std::string_view words);
    /// What later shapes are cut off at, until `close`.
    void open_clipped(const Box& box, std::string_view classes = {});

    double width() const { return width_; }
    double height() const { return height_; }
    std::string finish();

  private:
    double width_;
    double height_;
    std::string identity_;  // begins the names inside, so that several can lie in one page
    int clips_ = 0;
    std::string text_;
};

}  // namespace roofline::render::chart
