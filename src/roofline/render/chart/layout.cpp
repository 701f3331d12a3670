#include "roofline/render/chart/layout.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "roofline/render/chart/text_width.hpp"

namespace roofline::render::chart {
namespace {

struct Side {
    double x;  // -1: the label ends left of the mark, 0: centred on it, 1: begins right of it
    double y;
};
// Right and left read best; then above and below, then the corners.
constexpr std::array<Side, 8> sides = {Side{1, 0},  Side{-1, 0}, Side{0, -1},  Side{0, 1},
                                       Side{1, -1}, Side{1, 1},  Side{-1, -1}, Side{-1, 1}};
constexpr std::array<double, 6> distances = {3.0, 10.0, 18.0, 28.0, 40.0, 54.0};
constexpr double needs_a_line = 8.0;
constexpr double between = 2.0;

Box box_at(const Label& label, Side side, double distance) {
    const double width = text_width(label.text, label.size, label.bold);
    const double height = label.size * 1.1;
    // Corners touch the circle around the mark at 45 degrees.
    const double reach = (label.radius + distance) * (side.x != 0.0 && side.y != 0.0 ? 0.75 : 1.0);
    const double middle_x = label.target.x + side.x * (reach + width / 2.0);
    const double middle_y = label.target.y + side.y * (reach + height / 2.0);
    return {middle_x - width / 2.0, middle_y - height / 2.0, middle_x + width / 2.0, middle_y + height / 2.0};
}

}  // namespace

Point PlacedLabel::baseline() const {
    return {box.left, box.bottom - descent};
}

std::vector<std::optional<PlacedLabel>> place_labels(const std::vector<Label>& labels, const std::vector<Box>& taken,
                                                     const Box& within) {
    std::vector<Box> occupied = taken;
    for (const Label& label : labels) {
        const double r = label.radius * 0.9;
        occupied.push_back({label.target.x - r, label.target.y - r, label.target.x + r, label.target.y + r});
    }
    std::vector<std::size_t> order(labels.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return labels[a].importance > labels[b].importance; });
    std::vector<std::optional<PlacedLabel>> placed(labels.size());
    for (const std::size_t i : order) {
        const Label& label = labels[i];
        for (const double distance : distances) {
            for (const Side side : sides) {
                const Box box = box_at(label, side, distance);
                // Two that only just do not touch read as one.
                const Box apart{box.left - between, box.top, box.right + between, box.bottom};
                const bool free =
                    box.inside(within) && std::none_of(occupied.begin(), occupied.end(),
                                                       [&](const Box& other) { return apart.overlaps(other); });
                if (!free) continue;
                placed[i] = PlacedLabel{box, distance > needs_a_line, label.size * 0.28};
                occupied.push_back(box);
                break;
            }
            if (placed[i]) break;
        }
    }
    return placed;
}

}  // namespace roofline::render::chart
