// Labels beside points so that none lies on another, on a mark or outside: those that matter most choose first, and one
// for which there is no place is left out rather than made unreadable. One that may not be left out goes as far away as
// it must, with a line back to its mark that crosses no other name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "roofline/render/chart/svg.hpp"

namespace roofline::render::chart {

struct Label {
    Point target;         // the middle of the mark it belongs to
    double radius = 0.0;  // of that mark
    std::string text;
    double size = 12.0;     // of the letters
    double importance = 0;  // who chooses first; among equals, who came first
    bool bold = false;
    bool needed = false;  // however far away
};

struct PlacedLabel {
    Box box;           // of its letters
    bool far = false;  // needs a line to its mark
    Point baseline() const;
    double descent = 0.0;
    Point near(const Point& target) const;  // where a line from the mark ends
};

/// One answer for each label, in their order; empty: there was no place. `taken` is what must stay free beside the
/// marks.
std::vector<std::optional<PlacedLabel>> place_labels(const std::vector<Label>& labels, const std::vector<Box>& taken,
                                                     const Box& within);

}  // namespace roofline::render::chart
