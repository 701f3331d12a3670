// The machine's side of a roofline chart: roofs, slopes, ridges and their names.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "roofline/render/chart/roofline_drawing.hpp"
#include "roofline/render/chart/text_width.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::render::chart {
namespace {

std::vector<Box> boxes_along(Point from, Point along, double width, double size) {
    const double length = std::sqrt(along.x * along.x + along.y * along.y);
    std::vector<Box> boxes;
    for (double done = 0.0; done <= width; done += size * 0.7) {
        const Point at{from.x + along.x / length * done, from.y + along.y / length * done};
        boxes.push_back({at.x - size * 0.7, at.y - size, at.x + size * 0.7, at.y + size * 0.4});
    }
    return boxes;
}

/// The part of the line through (x, x * slope) that lies in the plot, below a peak.
std::vector<Point> slope_line(const Frame& frame, double slope, double peak) {
    const double low = std::max(frame.x.low, frame.y.low / slope);
    const double high = std::min({frame.x.high, frame.y.high / slope, peak / slope});
    if (!(high > low)) return {};
    return {frame.at(low, low * slope), frame.at(high, high * slope)};
}

double highest(const std::vector<ComputeRoof>& roofs, bool attainable) {
    double most = 0.0;
    for (const ComputeRoof& roof : roofs) most = std::max(most, attainable ? roof.attainable : roof.limit);
    return most > 0.0 ? most : 1e300;
}

std::string slope_name(const Device& device, const Slope& slope) {
    const auto& level = device.level(slope.level);
    std::string text(slope.level == Level::memory && level && !level->technology.empty()
                         ? level->technology
                         : std::string(name(slope.level)));
    text += fmt::format(" {}/s", bytes(Bytes(slope.limit)));
    if (slope.attainable < slope.limit) text += fmt::format(" ({}/s measured)", bytes(Bytes(slope.attainable)));
    return text;
}

/// Whether the name of a slope would lie on that of a slightly faster machine, and on no slower one's when it is below.
bool below_its_line(const RooflineDrawing& drawing, const Ceiling& mine, const Slope& slope) {
    constexpr double near = 2.0;  // so much faster or slower, in a picture of some decades
    bool above = false;
    for (const Ceiling& other : drawing.ceilings) {
        if (&other == &mine || slope.level != Level::memory) continue;
        if (other.memory() < slope.limit && other.memory() * near > slope.limit) return false;
        above = above || (other.memory() > slope.limit && other.memory() < slope.limit * near);
    }
    return above;
}

/// At the right end of a roof, or as near to it as there is room; nothing where the roof has none.
void write_beside(Svg& svg, RooflineDrawing& drawing, double begin, double baseline, const std::string& words,
                  const char* classes) {
    const Frame& frame = drawing.frame;
    const double wide = text_width(words, text_size);
    for (double right = frame.plot.right - 6.0; right - wide > begin; right -= 20.0) {
        const Box box{right - wide, baseline - text_size, right, baseline + 3.0};
        if (std::any_of(drawing.taken.begin(), drawing.taken.end(),
                        [&](const Box& other) { return box.overlaps(other); }))
            continue;
        svg.open_at({right, baseline}, "move");
        svg.text({0.0, 0.0}, words, classes, Anchor::end);
        svg.close();
        drawing.keep_free(box);
        return;
    }
}

}  // namespace

void RooflineDrawing::keep_free(Point from, Point along, double width, double size) {
    for (const Box& box : boxes_along(from, along, width, size)) taken.push_back(box);
}

bool RooflineDrawing::is_free(Point from, Point along, double width, double size) const {
    for (const Box& box : boxes_along(from, along, width, size)) {
        for (const Box& other : taken) {
            if (box.overlaps(other)) return false;
        }
    }
    return true;
}

void draw_regions(Svg& svg, const RooflineDrawing& drawing) {
    const Ceiling& ceiling = drawing.ceilings.front();
    if (ceiling.main == nullptr || !(ceiling.memory() > 0.0)) return;
    const Frame& frame = drawing.frame;
    const auto [lowest, highest] = drawing.ridges();
    const auto slope = slope_line(frame, ceiling.memory(), lowest * ceiling.memory());
    if (!slope.empty() && frame.x.holds(lowest)) {
        svg.area({{frame.plot.left, frame.plot.bottom},
                  {slope[0].x, frame.plot.bottom},
                  slope[0],
                  frame.at(lowest, lowest * ceiling.memory()),
                  {frame.x.at(lowest), frame.plot.bottom}},
                 "memory-region");
    }
    if (!frame.x.holds(highest)) return;
    const Point corner = frame.at(highest, highest * ceiling.memory());
    svg.area(
        {{corner.x, frame.plot.bottom}, corner, {frame.plot.right, corner.y}, {frame.plot.right, frame.plot.bottom}},
        "compute-region");
}

void draw_roof_lines(Svg& svg, const RooflineDrawing& drawing) {
    const Frame& frame = drawing.frame;
    for (std::size_t i = 0; i < drawing.ceilings.size(); ++i) {
        const Ceiling& ceiling = drawing.ceilings[i];
        const std::string colour = drawing.roof_class(i);
        for (const bool attainable : {true, false}) {
            const double memory = ceiling.slopes.empty() ? 0.0
                                  : attainable           ? ceiling.slopes.front().attainable
                                                         : ceiling.slopes.front().limit;
            for (const ComputeRoof& roof : ceiling.roofs) {
                const double peak = attainable ? roof.attainable : roof.limit;
                if (attainable && peak == roof.limit && memory == ceiling.memory()) continue;
                if (attainable && !ceiling.bold(roof)) continue;
                const double from = memory > 0.0 ? std::max(frame.x.low, peak / memory) : frame.x.low;
                if (from >= frame.x.high) continue;
                const std::string unused = ceiling.bold(roof) ? "" : " roof-unused";
                svg.line(frame.at(from, peak), frame.at(frame.x.high, peak),
                         fmt::format("roof{}{}{}", attainable ? " roof-attainable" : "", unused, colour));
            }
            for (std::size_t s = 0; s < ceiling.slopes.size(); ++s) {
                const Slope& slope = ceiling.slopes[s];
                const double rate = attainable ? slope.attainable : slope.limit;
                if (attainable && rate == slope.limit) continue;
                const auto line = slope_line(frame, rate, highest(ceiling.roofs, attainable));
                if (line.empty()) continue;
                svg.line(line[0], line[1],
                         fmt::format("roof{}{}{}", attainable ? " roof-attainable" : "", s > 0 ? " roof-unused" : "",
                                     colour));
            }
        }
    }
}

void draw_slope_names(Svg& svg, RooflineDrawing& drawing) {
    const Frame& frame = drawing.frame;
    for (const Ceiling& ceiling : drawing.ceilings) {
        const Device& device = drawing.accounts[ceiling.account].device;
        for (const Slope& slope : ceiling.slopes) {
            const auto line = slope_line(frame, slope.limit, highest(ceiling.roofs, false));
            if (line.empty()) continue;
            const Point along{line[1].x - line[0].x, line[1].y - line[0].y};
            const double length = std::sqrt(along.x * along.x + along.y * along.y);
            std::string words = slope_name(device, slope);
            if (!drawing.one_machine()) words = device.name + " " + words;
            const double wide = text_width(words, text_size);
            if (wide > length * 0.95) continue;
            // A little above the line, where nothing else is; below it where another machine's slope is near above.
            const double away = below_its_line(drawing, ceiling, slope) ? -text_size - 3.0 : 7.0;
            const Point up{along.y / length * away, -along.x / length * away};
            Point from;
            for (const double part : {0.62, 0.45, 0.3, 0.75, 0.15, 0.0, 0.9}) {
                const double done = (length - wide) * (slope.level == Level::memory ? part : 1.0 - part);
                from = {line[0].x + along.x / length * done + up.x, line[0].y + along.y / length * done + up.y};
                if (drawing.is_free(from, along, wide, text_size)) break;
            }
            svg.open_at(from, "move");
            svg.text({0.0, 0.0}, words, slope.level == Level::memory ? "halo" : "halo soft", Anchor::start, along);
            svg.close();
            drawing.keep_free(from, along, wide, text_size);
        }
    }
}

void draw_roof_names(Svg& svg, RooflineDrawing& drawing) {
    const Frame& frame = drawing.frame;
    const auto begin_of = [&](const Ceiling& ceiling, double peak) {
        return ceiling.memory() > 0.0 ? std::max(frame.plot.left, frame.x.at(peak / ceiling.memory()))
                                      : frame.plot.left;
    };
    for (const Ceiling& ceiling : drawing.ceilings) {
        for (const ComputeRoof& roof : ceiling.roofs) {
            std::string words = fmt::format("{} {}", roof.name(), roof.spelt(roof.limit));
            if (!drawing.one_machine()) words = drawing.accounts[ceiling.account].device.name + " " + words;
            write_beside(svg, drawing, begin_of(ceiling, roof.limit), frame.y.at(roof.limit) - 6.0, words,
                         ceiling.bold(roof) ? "halo" : "halo soft");
        }
    }
    // What was measured stands below its own line: in one row with the limit it would run into the slope. The names of
    // the roofs go first: those cannot be done without.
    for (const Ceiling& ceiling : drawing.ceilings) {
        for (const ComputeRoof& roof : ceiling.roofs) {
            if (roof.attainable < roof.limit && ceiling.bold(roof) && drawing.one_machine())
                write_beside(svg, drawing, begin_of(ceiling, roof.limit), frame.y.at(roof.attainable) + text_size + 3.0,
                             fmt::format("{} measured", roof.spelt(roof.attainable)), "halo soft");
        }
    }
}

namespace {

/// Which side of the ridges is which; nothing where there is no room for it.
void draw_sides(Svg& svg, RooflineDrawing& drawing, const Ridges& sides, std::vector<double> corners) {
    const Frame& frame = drawing.frame;
    const auto [lowest, highest] = sides;
    if (!(lowest > 0.0)) return;
    const double y = frame.plot.bottom - 10.0;
    const auto write = [&](double x, double away, const char* words, const char* classes, Anchor anchor) {
        svg.open_at({x, 0.0}, "move-x");
        svg.text({away, y}, words, classes, anchor);
        svg.close();
    };
    const double first = frame.x.at(lowest);
    const double last = frame.x.at(highest);
    if (first >= frame.plot.left + 120.0 && first <= frame.plot.right) {
        write(first, -8.0, "\u2190 memory-bound", "memory-word", Anchor::end);
        drawing.keep_free({first - 125.0, y - text_size, first, y + 4.0});
    }
    if (last >= frame.plot.left && last <= frame.plot.right - 130.0) {
        write(last, 8.0, "compute-bound \u2192", "compute-word", Anchor::start);
        drawing.keep_free({last, y - text_size, last + 130.0, y + 4.0});
    }
    // In the widest gap between ridges, so that no line of one goes through it.
    std::sort(corners.begin(), corners.end());
    double left = first;
    double right = first;
    for (std::size_t i = 1; i < corners.size(); ++i) {
        if (corners[i - 1] >= first && corners[i] <= last && corners[i] - corners[i - 1] > right - left) {
            left = corners[i - 1];
            right = corners[i];
        }
    }
    const char* between = "depends on the type";
    const double middle = (left + right) / 2.0;
    const double wide = text_width(between, text_size);
    if (right - left < wide + 16.0 || left < frame.plot.left || right > frame.plot.right) return;
    write(middle, 0.0, between, "soft", Anchor::middle);
    drawing.keep_free({middle - wide / 2.0, y - text_size, middle + wide / 2.0, y + 4.0});
}

}  // namespace

void draw_ridges(Svg& svg, RooflineDrawing& drawing) {
    const Frame& frame = drawing.frame;
    double lift = 0.0;
    std::set<std::string> said;
    std::vector<double> corners;
    const Ridges sides = drawing.one_machine() ? drawing.ridges() : Ridges{};
    const auto has_ridge = [&](const Ceiling& ceiling, const ComputeRoof& roof) {
        const double ridge = roof.limit / ceiling.memory();
        return ceiling.bold(roof) || ridge == sides.lowest || ridge == sides.highest;
    };
    for (const Ceiling& ceiling : drawing.ceilings) {
        for (const ComputeRoof& roof : ceiling.roofs) {
            if (ceiling.main != nullptr && ceiling.memory() > 0.0 && has_ridge(ceiling, roof))
                corners.push_back(frame.x.at(roof.limit / ceiling.memory()));
        }
    }
    for (const Ceiling& ceiling : drawing.ceilings) {
        if (ceiling.main == nullptr || !(ceiling.memory() > 0.0)) continue;
        for (const ComputeRoof& roof : ceiling.roofs) {
            if (!has_ridge(ceiling, roof)) continue;
            const double ridge = roof.limit / ceiling.memory();
            if (!frame.x.holds(ridge)) continue;
            const Point corner = frame.at(ridge, roof.limit);
            svg.line(corner, {corner.x, frame.plot.bottom}, "ridge");
            drawing.keep_free({corner.x - 2.0, corner.y + 8.0, corner.x + 2.0, frame.plot.bottom});
            drawing.keep_free({corner.x - 5.0, corner.y - 5.0, corner.x + 5.0, corner.y + 5.0});
            svg.open_at(corner, "move");
            svg.circle({0.0, 0.0}, 4.0, "dot");
            svg.close();
            std::string words = fmt::format("ridge {}", intensity(FlopsPerByte(ridge)));
            if (corners.size() > 1 && drawing.one_machine()) words += " of " + roof.name();
            if (!said.insert(words).second) continue;
            const double y = frame.plot.bottom - 30.0 - lift;
            const double wide = text_width(words, text_size, true);
            // To the right of its line, unless it would lie on the next.
            const bool left = std::any_of(corners.begin(), corners.end(), [&](double other) {
                return other > corner.x + 1.0 && other < corner.x + wide + 12.0;
            });
            svg.open_at({corner.x, 0.0}, "move-x");
            svg.text({left ? -6.0 : 6.0, y}, words, "halo strong", left ? Anchor::end : Anchor::start);
            svg.close();
            const double from = left ? corner.x - 8.0 - wide : corner.x + 4.0;
            drawing.keep_free({from, y - text_size, from + wide + 4.0, y + 4.0});
            lift += 17.0;
        }
    }
    if (drawing.one_machine()) draw_sides(svg, drawing, sides, std::move(corners));
}

}  // namespace roofline::render::chart
