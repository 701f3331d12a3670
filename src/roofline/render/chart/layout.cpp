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
constexpr std::array<double, 8> distances = {3.0, 10.0, 18.0, 28.0, 34.0, 40.0, 47.0, 54.0};
// All around, for those that must go further away: hundredths of a turn would do no better.
constexpr std::array<Side, 16> around = {Side{1, 0},  Side{0.924, -0.383},  Side{0.707, -0.707},  Side{0.383, -0.924},
                                         Side{0, -1}, Side{-0.383, -0.924}, Side{-0.707, -0.707}, Side{-0.924, -0.383},
                                         Side{-1, 0}, Side{-0.924, 0.383},  Side{-0.707, 0.707},  Side{-0.383, 0.924},
                                         Side{0, 1},  Side{0.383, 0.924},   Side{0.707, 0.707},   Side{0.924, 0.383}};
constexpr double furthest = 600.0;
constexpr double ring = 8.0;
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

struct Line {
    Point from;
    Point to;
};

/// Which side of the line a point lies on.
double side_of(const Line& line, const Point& point) {
    return (line.to.x - line.from.x) * (point.y - line.from.y) - (line.to.y - line.from.y) * (point.x - line.from.x);
}

bool cross(const Line& a, const Line& b) {
    return side_of(a, b.from) * side_of(a, b.to) < 0.0 && side_of(b, a.from) * side_of(b, a.to) < 0.0;
}

bool crosses(const Line& line, const Box& box) {
    const Line one{{box.left, box.top}, {box.right, box.bottom}};
    const Line two{{box.left, box.bottom}, {box.right, box.top}};
    return cross(line, one) || cross(line, two);
}

/// Two that only just do not touch read as one.
bool too_near(const Box& box, const Box& other) {
    return Box{box.left - between, box.top, box.right + between, box.bottom}.overlaps(other);
}

/// How much a line back to the mark may cross: nothing; marks; anything.
enum class Care { of_all, of_names, none };

/// All labels and where they are so far.
class Layout {
  public:
    Layout(const std::vector<Label>& labels, const std::vector<Box>& taken, const Box& within)
        : labels_(labels), within_(within), fixed_(taken), placed_(labels.size()) {
        for (const Label& label : labels) {
            const double r = label.radius * 0.9;
            marks_.push_back({label.target.x - r, label.target.y - r, label.target.x + r, label.target.y + r});
        }
        fixed_.insert(fixed_.end(), marks_.begin(), marks_.end());
    }

    /// Where it needs a line, rather one that goes through no other name.
    bool beside(std::size_t i) {
        for (const Care care : {Care::of_names, Care::none}) {
            for (const double distance : distances) {
                for (const Side side : sides) {
                    const Box box = box_at(labels_[i], side, distance);
                    const bool far = distance > needs_a_line;
                    if (!allowed(box) || !in_the_way(box, i).empty() || (far && !clear(i, box, care))) continue;
                    take(i, box, far);
                    return true;
                }
            }
        }
        return false;
    }

    /// Where one other label is in the way, and finds another place.
    bool instead_of_another(std::size_t i) {
        for (const double distance : distances) {
            for (const Side side : sides) {
                const Box box = box_at(labels_[i], side, distance);
                if (!allowed(box)) continue;
                const std::vector<std::size_t> others = in_the_way(box, i);
                if (others.size() != 1 || labels_[others.front()].importance > labels_[i].importance) continue;
                const auto before = placed_[others.front()];
                take(i, box, distance > needs_a_line);
                placed_[others.front()].reset();
                if (beside(others.front())) return true;
                placed_[i].reset();
                placed_[others.front()] = before;
            }
        }
        return false;
    }

    /// The nearest place whose line crosses nothing, or else little.
    bool anywhere(std::size_t i) {
        for (const Care care : {Care::of_all, Care::of_names, Care::none}) {
            for (double distance = distances.back(); distance <= furthest; distance += ring) {
                for (const Side side : around) {
                    const Box box = box_at(labels_[i], side, distance);
                    if (!allowed(box) || !in_the_way(box, i).empty() || !clear(i, box, care)) continue;
                    take(i, box, true);
                    return true;
                }
            }
        }
        return false;
    }

    bool has(std::size_t i) const { return placed_[i].has_value(); }
    std::vector<std::optional<PlacedLabel>> finish() && { return std::move(placed_); }

  private:
    bool allowed(const Box& box) const {
        return box.inside(within_) &&
               std::none_of(fixed_.begin(), fixed_.end(), [&](const Box& other) { return too_near(box, other); });
    }

    std::vector<std::size_t> in_the_way(const Box& box, std::size_t of) const {
        std::vector<std::size_t> others;
        for (std::size_t i = 0; i < placed_.size(); ++i) {
            if (i != of && placed_[i] && too_near(box, placed_[i]->box)) others.push_back(i);
        }
        return others;
    }

    Line line_of(std::size_t i, const PlacedLabel& label) const {
        return {labels_[i].target, label.near(labels_[i].target)};
    }

    bool clear(std::size_t i, const Box& box, Care care) const {
        if (care == Care::none) return true;
        const Line line = line_of(i, {box, true, 0.0});
        for (std::size_t other = 0; other < placed_.size(); ++other) {
            if (other == i) continue;
            // A mark that lies on this one cannot be avoided.
            if (care == Care::of_all && !marks_[other].overlaps(marks_[i]) && crosses(line, marks_[other]))
                return false;
            if (!placed_[other]) continue;
            if (crosses(line, placed_[other]->box)) return false;
            if (placed_[other]->far && cross(line, line_of(other, *placed_[other]))) return false;
        }
        return true;
    }

    void take(std::size_t i, const Box& box, bool far) { placed_[i] = PlacedLabel{box, far, labels_[i].size * 0.28}; }

    const std::vector<Label>& labels_;
    Box within_;
    std::vector<Box> fixed_;
    std::vector<Box> marks_;
    std::vector<std::optional<PlacedLabel>> placed_;
};

}  // namespace

Point PlacedLabel::baseline() const {
    return {box.left, box.bottom - descent};
}

Point PlacedLabel::near(const Point& target) const {
    return {std::clamp(target.x, box.left, box.right), std::clamp(target.y, box.top, box.bottom)};
}

std::vector<std::optional<PlacedLabel>> place_labels(const std::vector<Label>& labels, const std::vector<Box>& taken,
                                                     const Box& within) {
    std::vector<std::size_t> order(labels.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return labels[a].importance > labels[b].importance; });
    Layout layout(labels, taken, within);
    for (const std::size_t i : order) layout.beside(i);
    for (const std::size_t i : order) {
        if (labels[i].needed && !layout.has(i)) layout.instead_of_another(i);
    }
    for (const std::size_t i : order) {
        if (labels[i].needed && !layout.has(i)) layout.anywhere(i);
    }
    return std::move(layout).finish();
}

}  // namespace roofline::render::chart
