#include "roofline/render/chart/roofline.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "roofline/render/chart/ceilings.hpp"
#include "roofline/render/chart/layout.hpp"
#include "roofline/render/chart/marks.hpp"
#include "roofline/render/chart/scale.hpp"
#include "roofline/render/chart/spots.hpp"
#include "roofline/render/chart/svg.hpp"
#include "roofline/render/chart/text_width.hpp"
#include "roofline/render/chart/theme.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::render::chart {
namespace {

constexpr double least_share_named = 0.02;  // smaller ones are named by the mouse
constexpr std::size_t most_stages = 6;      // of more, only the stages are named
constexpr std::size_t most_accounts = 2;    // likewise

/// Everything that is being drawn.
struct Drawing {
    std::span<const Account> accounts;
    const RooflineOptions& options;
    std::vector<Ceiling> ceilings;
    Spots found;
    std::vector<Spot> sums;
    Frame frame;
    std::vector<Box> taken;  // by words and legends inside the plot

    /// So many lie over each other that their sums are named and the rest is for the mouse.
    bool crowded() const { return accounts.size() > most_accounts || sums.size() > most_stages; }
    double radius_of(double share) const {
        return crowded() ? 3.0 + 9.0 * std::sqrt(share) : 4.0 + 15.0 * std::sqrt(share);
    }

    bool bold(const Ceiling& ceiling, const ComputeRoof& roof) const {
        double all = 0.0;
        for (const ComputeRoof& other : ceiling.roofs) all += other.flops;
        return &roof == ceiling.main || roof.flops > 0.02 * all;
    }

    bool one_machine() const { return ceilings.size() == 1; }
    std::string roof_class(std::size_t ceiling) const {
        return one_machine() ? "" : fmt::format(" stroke {}", series_class(ceiling));
    }
    std::size_t ceiling_of(std::size_t account) const {
        for (std::size_t i = 0; i < ceilings.size(); ++i) {
            if (same_machine(accounts[ceilings[i].account].device, accounts[account].device)) return i;
        }
        return 0;
    }
    void keep_free(const Box& box) { taken.push_back(box); }
    /// Of words along a slanted line: a chain of small boxes.
    void keep_free(Point from, Point along, double width, double size);
    bool is_free(Point from, Point along, double width, double size) const;
};

std::vector<Box> boxes_along(Point from, Point along, double width, double size) {
    const double length = std::sqrt(along.x * along.x + along.y * along.y);
    std::vector<Box> boxes;
    for (double done = 0.0; done <= width; done += size * 0.7) {
        const Point at{from.x + along.x / length * done, from.y + along.y / length * done};
        boxes.push_back({at.x - size * 0.7, at.y - size, at.x + size * 0.7, at.y + size * 0.4});
    }
    return boxes;
}

void Drawing::keep_free(Point from, Point along, double width, double size) {
    for (const Box& box : boxes_along(from, along, width, size)) taken.push_back(box);
}

bool Drawing::is_free(Point from, Point along, double width, double size) const {
    for (const Box& box : boxes_along(from, along, width, size)) {
        for (const Box& other : taken) {
            if (box.overlaps(other)) return false;
        }
    }
    return true;
}

/// Names of roofs and slopes keep off the marks.
void keep_marks_free(Drawing& drawing) {
    for (const Spot& spot : drawing.found.spots) {
        if (!drawing.frame.x.holds(spot.intensity) || !drawing.frame.y.holds(spot.rate)) continue;
        const Point at = drawing.frame.at(spot.intensity, spot.rate);
        const double r = drawing.radius_of(spot.share);
        drawing.keep_free({at.x - r, at.y - r, at.x + r, at.y + r});
    }
}

void choose_scales(Drawing& drawing) {
    double least_x = 1e300;
    double most_x = 0.0;
    double least_y = 1e300;
    double most_y = 0.0;
    const auto include = [&](double x, double y) {
        least_x = std::min(least_x, x);
        most_x = std::max(most_x, x);
        least_y = std::min(least_y, y);
        most_y = std::max(most_y, y);
    };
    // A speck far below all others would squeeze the rest into a corner.
    for (const Spot& spot : drawing.found.spots) {
        if (spot.share >= least_share_named) include(spot.intensity, spot.rate);
    }
    for (const Spot& sum : drawing.sums) include(sum.intensity, sum.rate);
    for (const Ceiling& ceiling : drawing.ceilings) {
        for (const ComputeRoof& roof : ceiling.roofs) {
            most_y = std::max(most_y, roof.limit * 1.6);
            least_y = std::min(least_y, roof.attainable);
            if (ceiling.memory() > 0.0) {
                const double ridge = roof.limit / ceiling.memory();
                least_x = std::min(least_x, ridge / 100.0);
                most_x = std::max(most_x, ridge * (&roof == ceiling.main ? 45.0 : 8.0));
            }
        }
        if (ceiling.memory() > 0.0 && least_x < 1e300) least_y = std::min(least_y, least_x * ceiling.memory());
    }
    if (!(most_x > 0.0)) include(1.0, 1e9);
    if (!(most_y > 0.0)) include(1.0, 1e9);
    least_x = std::clamp(least_x, 1e-6, 1e12);
    most_x = std::clamp(most_x, least_x, 1e13);
    least_y = std::clamp(least_y, 1e-3, 1e24);
    const Box& plot = drawing.frame.plot;
    drawing.frame.x = {least_x / 1.8, most_x * 1.4, plot.left, plot.right, true};
    drawing.frame.y = {least_y / 2.2, std::max(most_y * 1.3, least_y * 10.0), plot.bottom, plot.top, true};
    drawing.frame.x_name = "arithmetic intensity (FLOP per byte of memory traffic)";
    drawing.frame.y_name = "rate (FLOP/s)";
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

void draw_regions(Svg& svg, const Drawing& drawing) {
    const Ceiling& ceiling = drawing.ceilings.front();
    if (ceiling.main == nullptr || !(ceiling.memory() > 0.0)) return;
    const Frame& frame = drawing.frame;
    const double peak = ceiling.main->limit;
    const double ridge = peak / ceiling.memory();
    const auto slope = slope_line(frame, ceiling.memory(), peak);
    if (slope.empty() || !frame.x.holds(ridge)) return;
    svg.area({{frame.plot.left, frame.plot.bottom},
              {slope[0].x, frame.plot.bottom},
              slope[0],
              frame.at(ridge, peak),
              {frame.x.at(ridge), frame.plot.bottom}},
             "memory-region");
    svg.area({{frame.x.at(ridge), frame.plot.bottom},
              frame.at(ridge, peak),
              {frame.plot.right, frame.y.at(peak)},
              {frame.plot.right, frame.plot.bottom}},
             "compute-region");
}

void draw_roof_lines(Svg& svg, const Drawing& drawing) {
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
                if (attainable && !drawing.bold(ceiling, roof)) continue;
                const double from = memory > 0.0 ? std::max(frame.x.low, peak / memory) : frame.x.low;
                if (from >= frame.x.high) continue;
                const std::string unused = drawing.bold(ceiling, roof) ? "" : " roof-unused";
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
bool below_its_line(const Drawing& drawing, const Ceiling& mine, const Slope& slope) {
    constexpr double near = 2.0;  // so much faster or slower, in a picture of some decades
    bool above = false;
    for (const Ceiling& other : drawing.ceilings) {
        if (&other == &mine || slope.level != Level::memory) continue;
        if (other.memory() < slope.limit && other.memory() * near > slope.limit) return false;
        above = above || (other.memory() > slope.limit && other.memory() < slope.limit * near);
    }
    return above;
}

void draw_slope_names(Svg& svg, Drawing& drawing) {
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

/// At the right end of a roof, or as near to it as there is room; nothing where the roof has none.
void write_beside(Svg& svg, Drawing& drawing, double begin, double baseline, const std::string& words,
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

void draw_roof_names(Svg& svg, Drawing& drawing) {
    const Frame& frame = drawing.frame;
    const auto begin_of = [&](const Ceiling& ceiling, double peak) {
        return ceiling.memory() > 0.0 ? std::max(frame.plot.left, frame.x.at(peak / ceiling.memory()))
                                      : frame.plot.left;
    };
    for (const Ceiling& ceiling : drawing.ceilings) {
        for (const ComputeRoof& roof : ceiling.roofs) {
            std::string words = fmt::format("{} {}/s", roof.name(), flops(Flops(roof.limit)));
            if (!drawing.one_machine()) words = drawing.accounts[ceiling.account].device.name + " " + words;
            write_beside(svg, drawing, begin_of(ceiling, roof.limit), frame.y.at(roof.limit) - 6.0, words,
                         drawing.bold(ceiling, roof) ? "halo" : "halo soft");
        }
    }
    // What was measured stands below its own line: in one row with the limit it would run into the slope. The names of
    // the roofs go first: those cannot be done without.
    for (const Ceiling& ceiling : drawing.ceilings) {
        for (const ComputeRoof& roof : ceiling.roofs) {
            if (roof.attainable < roof.limit && drawing.bold(ceiling, roof) && drawing.one_machine())
                write_beside(svg, drawing, begin_of(ceiling, roof.limit), frame.y.at(roof.attainable) + text_size + 3.0,
                             fmt::format("{}/s measured", flops(Flops(roof.attainable))), "halo soft");
        }
    }
}

void draw_ridges(Svg& svg, Drawing& drawing) {
    const Frame& frame = drawing.frame;
    double lift = 0.0;
    std::set<std::string> said;
    std::vector<double> corners;
    for (const Ceiling& ceiling : drawing.ceilings) {
        for (const ComputeRoof& roof : ceiling.roofs) {
            if (ceiling.main != nullptr && ceiling.memory() > 0.0 && drawing.bold(ceiling, roof))
                corners.push_back(frame.x.at(roof.limit / ceiling.memory()));
        }
    }
    for (const Ceiling& ceiling : drawing.ceilings) {
        if (ceiling.main == nullptr || !(ceiling.memory() > 0.0)) continue;
        for (const ComputeRoof& roof : ceiling.roofs) {
            if (!drawing.bold(ceiling, roof)) continue;
            const double ridge = roof.limit / ceiling.memory();
            if (!frame.x.holds(ridge)) continue;
            const Point corner = frame.at(ridge, roof.limit);
            svg.line(corner, {corner.x, frame.plot.bottom}, "ridge");
            drawing.keep_free({corner.x - 2.0, corner.y + 8.0, corner.x + 2.0, frame.plot.bottom});
            drawing.keep_free({corner.x - 5.0, corner.y - 5.0, corner.x + 5.0, corner.y + 5.0});
            svg.open_at(corner, "move");
            svg.circle({0.0, 0.0}, 4.0, "dot");
            svg.close();
            const std::string words = fmt::format("ridge {}", intensity(FlopsPerByte(ridge)));
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
    if (!drawing.one_machine() || drawing.ceilings.front().main == nullptr ||
        !(drawing.ceilings.front().memory() > 0.0))
        return;
    const double x = frame.x.at(drawing.ceilings.front().main->limit / drawing.ceilings.front().memory());
    if (x < frame.plot.left + 120.0 || x > frame.plot.right - 130.0) return;
    const double y = frame.plot.bottom - 10.0;
    svg.open_at({x, 0.0}, "move-x");
    svg.text({-8.0, y}, "\u2190 memory-bound", "memory-word", Anchor::end);
    svg.text({8.0, y}, "compute-bound \u2192", "compute-word");
    svg.close();
    drawing.keep_free({x - 125.0, y - text_size, x + 130.0, y + 4.0});
}

/// The roof above a point: of the engine and type it ran on, at its intensity.
double roof_above(const Spot& spot, const Account& account) {
    const Work& work = spot.record->work;
    return roof_at(limit_roofs(account.device), work.engine, work.type, FlopsPerByte(spot.intensity)).value;
}

void draw_gaps(Svg& svg, Drawing& drawing) {
    for (const Spot& spot : drawing.found.spots) {
        if (spot.share < least_share_named) continue;
        const double roof = roof_above(spot, drawing.accounts[spot.account]);
        if (!std::isfinite(roof) || !(roof > spot.rate)) continue;
        const Point top = drawing.frame.at(spot.intensity, roof);
        const Point mark = drawing.frame.at(spot.intensity, spot.rate);
        svg.line({mark.x, mark.y - drawing.radius_of(spot.share)}, top, "gap");
    }
}

void draw_spots(Svg& svg, Drawing& drawing) {
    std::vector<const Spot*> order;
    for (const Spot& spot : drawing.found.spots) order.push_back(&spot);
    // The large ones first, so that small ones lie on them and not under.
    std::stable_sort(order.begin(), order.end(), [](const Spot* a, const Spot* b) { return a->share > b->share; });
    for (const Spot* spot : order) {
        svg.open_at(drawing.frame.at(spot->intensity, spot->rate), "move point",
                    {{"data-stage", spot->of->name},
                     {"data-group", name(spot->record->group)},
                     {"data-report", fmt::format("{}", spot->account)},
                     {"data-name", spot->record->name}});
        svg.tooltip(explain_spot(*spot, drawing.accounts[spot->account]));
        const bool hollow = spot->account % 2 == 1;
        draw_mark(svg, stage_shape(spot->of->name), drawing.radius_of(spot->share),
                  fmt::format("mark {}{}", group_class(spot->record->group), hollow ? " hollow" : ""));
        svg.close();
    }
    for (const Spot& sum : drawing.sums) {
        svg.open_at(drawing.frame.at(sum.intensity, sum.rate), "move sum",
                    {{"data-stage", sum.of->name}, {"data-report", fmt::format("{}", sum.account)}});
        svg.tooltip(explain_spot(sum, drawing.accounts[sum.account]));
        draw_mark(svg, stage_shape(sum.of->name), 8.0, "whole");
        svg.circle({0.0, 0.0}, 1.8, "dot");
        svg.close();
    }
}

/// Marks with their names; the lines from far names to their marks go under all marks.
void draw_points(Svg& svg, Drawing& drawing) {
    std::vector<Label> labels;
    std::vector<const Spot*> owners;
    const bool several = drawing.accounts.size() > 1;
    const bool many = drawing.sums.size() > most_stages;
    const StageNames names = stage_names(drawing.accounts);
    for (const Spot& sum : drawing.sums) {
        std::string words = many ? names.own[sum.account][sum.stage] : "all of " + sum.of->name;
        if (several && !many) words += ", " + short_title(drawing.accounts, sum.account);
        Label label{drawing.frame.at(sum.intensity, sum.rate), 9.0, words, many ? small_size : text_size, 10.0, true};
        label.needed = many;
        labels.push_back(std::move(label));
        owners.push_back(&sum);
    }
    for (const Spot& spot : drawing.found.spots) {
        const bool named = spot.share >= least_share_named;
        std::string words = short_name(spot.record->name);
        if (drawing.options.gaps && named) {
            const double roof = roof_above(spot, drawing.accounts[spot.account]);
            if (std::isfinite(roof)) words += fmt::format(" {:.0f}%", 100.0 * spot.rate / roof);
        }
        if (named && !drawing.crowded()) {
            labels.push_back({drawing.frame.at(spot.intensity, spot.rate), drawing.radius_of(spot.share), words,
                              small_size, spot.share, false});
            owners.push_back(&spot);
        }
    }
    const Box& plot = drawing.frame.plot;
    const auto placed =
        place_labels(labels, drawing.taken, {plot.left + 4.0, plot.top + 2.0, plot.right - 4.0, plot.bottom - 4.0});
    const auto open = [&](std::size_t i, std::string_view classes) {
        svg.open_at(labels[i].target, classes,
                    {{"data-stage", owners[i]->of->name},
                     {"data-group", owners[i]->record != nullptr ? name(owners[i]->record->group) : ""},
                     {"data-report", fmt::format("{}", owners[i]->account)}});
    };
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (!placed[i] || !placed[i]->far) continue;
        const Box& box = placed[i]->box;
        const Point target = labels[i].target;
        open(i, "move label");
        svg.line({0.0, 0.0},
                 {std::clamp(target.x, box.left, box.right) - target.x,
                  std::clamp(target.y, box.top, box.bottom) - target.y},
                 "leader");
        svg.close();
    }
    draw_spots(svg, drawing);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (!placed[i]) continue;
        const Point words = placed[i]->baseline();
        open(i, "move label");
        svg.text({words.x - labels[i].target.x, words.y - labels[i].target.y}, labels[i].text,
                 !labels[i].bold ? "halo small"
                 : many          ? "halo small strong"
                                 : "halo strong");
        svg.close();
    }
}

/// A machine that was measured has no datasheet: its limits are what was found.
std::string limit_words(std::span<const Account> accounts) {
    std::size_t measured = 0;
    for (const Account& account : accounts) {
        const Figure* figure = account.device.bandwidth(Level::memory);
        const auto source =
            figure == nullptr ? account.device.sources.end() : account.device.sources.find(figure->source);
        if (source != account.device.sources.end() && source->second.kind == SourceKind::measured) ++measured;
    }
    if (measured == 0) return "limit (datasheet)";
    return measured == accounts.size() ? "limit (measured)" : "limit (datasheet or measured)";
}

std::vector<LegendItem> legend_of(const Drawing& drawing) {
    std::vector<LegendItem> items;
    std::set<Group> groups;
    std::vector<std::string> stages;
    for (const Spot& spot : drawing.found.spots) {
        groups.insert(spot.record->group);
        const std::string stage = spot.of->name.substr(0, spot.of->name.find(' '));
        if (std::find(stages.begin(), stages.end(), stage) == stages.end()) stages.push_back(stage);
    }
    for (const std::string& stage : stages)
        items.push_back({LegendItem::Kind::mark, stage_shape(stage), "whole", stage});
    for (const Group group : groups)
        items.push_back({LegendItem::Kind::mark, Shape::circle, fmt::format("mark {}", group_class(group)),
                         std::string(name(group))});
    if (drawing.accounts.size() > 1) {
        for (std::size_t i = 0; i < drawing.accounts.size() && i < 2; ++i) {
            if (drawing.accounts[i].stages.empty()) continue;
            items.push_back({LegendItem::Kind::mark, Shape::circle,
                             fmt::format("mark g-other{}", i % 2 == 1 ? " hollow" : ""),
                             short_title(drawing.accounts, i)});
        }
    }
    bool measured = false;
    for (const Ceiling& ceiling : drawing.ceilings) {
        for (const Slope& slope : ceiling.slopes) measured = measured || slope.attainable < slope.limit;
        for (const ComputeRoof& roof : ceiling.roofs) measured = measured || roof.attainable < roof.limit;
    }
    items.push_back({LegendItem::Kind::line, Shape::circle, "roof", limit_words(drawing.accounts)});
    if (measured)
        items.push_back({LegendItem::Kind::line, Shape::circle, "roof roof-attainable", "attainable (measured)"});
    return items;
}

std::vector<std::string> heading_of(std::span<const Account> accounts) {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < accounts.size(); ++i) {
        for (const AccountStage& stage : accounts[i].stages) {
            std::string line = stage_line(stage);
            if (accounts.size() > 1) line = short_title(accounts, i) + ": " + line;
            lines.push_back(std::move(line));
        }
    }
    constexpr std::size_t most = 4;
    if (lines.size() <= most) return lines;
    // What they have in common, the slowest and the fastest.
    const StageNames names = stage_names(accounts);
    std::vector<std::pair<double, std::string>> rates;
    for (std::size_t i = 0; i < accounts.size(); ++i) {
        for (std::size_t s = 0; s < accounts[i].stages.size(); ++s) {
            const AccountStage& stage = accounts[i].stages[s];
            if (stage.produced > 0.0 && shown_time(stage.times).value > 0.0)
                rates.emplace_back(stage.tokens_per_second(shown_time(stage.times)), names.own[i][s]);
        }
    }
    std::string all = fmt::format("{} stages", lines.size());
    if (!names.common.empty()) all += ": " + names.common;
    if (rates.empty()) return {all};
    const auto [least, greatest] = std::minmax_element(rates.begin(), rates.end());
    return {all, fmt::format("from {} ({}) to {} tokens/s ({})", plain(least->first), least->second,
                             plain(greatest->first), greatest->second)};
}

}  // namespace

std::string roofline_chart(std::span<const Account> accounts, const RooflineOptions& options) {
    Drawing drawing{accounts, options, ceilings_of(accounts, options.levels), spots_of(accounts), sums_of(accounts),
                    {},       {}};
    const std::string title = options.title.empty() ? common_title(accounts) : options.title;
    const auto lines = heading_of(accounts);
    std::vector<std::string> notes;
    if (!drawing.found.spots.empty()) {
        notes.push_back(
            fmt::format("Each point is an operator at its {} rate; its area grows with its share of the stage's time.",
                        has_measured(accounts) ? "measured" : "expected"));
        for (std::string& note : notes_about(drawing.found.unseen)) notes.push_back(std::move(note));
    }
    Svg svg(options.width, options.height, title,
            fmt::format("Roofline chart with {} operators and the ceilings of {} devices. {}",
                        drawing.found.spots.size(), drawing.ceilings.size(), fmt::join(lines, "; ")));
    double top = draw_heading(svg, title, lines);
    top += draw_legend(svg, {24.0, top}, options.width - 48.0, legend_of(drawing)) + 8.0;
    drawing.frame.plot = {82.0, top, options.width - 24.0, options.height - 52.0 - notes_height(notes)};
    choose_scales(drawing);
    draw_frame(svg, drawing.frame);
    svg.open_clipped(drawing.frame.plot, "inside");
    svg.open("stretch");
    if (drawing.one_machine()) draw_regions(svg, drawing);
    draw_roof_lines(svg, drawing);
    svg.close();
    keep_marks_free(drawing);
    draw_ridges(svg, drawing);
    draw_slope_names(svg, drawing);
    draw_roof_names(svg, drawing);
    if (options.gaps) draw_gaps(svg, drawing);
    draw_points(svg, drawing);
    svg.close();
    int outside = 0;
    for (const Spot& spot : drawing.found.spots)
        outside += drawing.frame.x.holds(spot.intensity) && drawing.frame.y.holds(spot.rate) ? 0 : 1;
    if (outside > 0)
        notes.front() +=
            fmt::format(" {} smaller one{} outside the picture.", outside, outside == 1 ? " lies" : "s lie");
    draw_notes(svg, notes);
    return svg.finish();
}

}  // namespace roofline::render::chart
