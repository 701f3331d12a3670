#include "roofline/render/chart/roofline.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "roofline/render/chart/roofline_drawing.hpp"
#include "roofline/render/chart/text_width.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::render::chart {
namespace {

constexpr double least_share_named = 0.02;  // smaller ones are named by the mouse

/// Names of roofs and slopes keep off the marks.
void keep_marks_free(RooflineDrawing& drawing) {
    for (const Spot& spot : drawing.found.spots) {
        if (!drawing.frame.x.holds(spot.intensity) || !drawing.frame.y.holds(spot.rate)) continue;
        const Point at = drawing.frame.at(spot.intensity, spot.rate);
        const double r = drawing.radius_of(spot.share);
        drawing.keep_free({at.x - r, at.y - r, at.x + r, at.y + r});
    }
}

/// Of the work that is drawn: integers are multiplied in OPs.
std::string units_of(std::span<const Spot> spots) {
    const auto in = [&](std::string_view unit) {
        return std::ranges::any_of(spots, [&](const Spot& spot) { return peak_unit(spot.record->work.type) == unit; });
    };
    if (!in("OP/s")) return "FLOP/s";
    return in("FLOP/s") ? "FLOP/s; of integers OP/s" : "OP/s";
}

void choose_scales(RooflineDrawing& drawing) {
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
    drawing.frame.y_name = fmt::format("rate ({})", units_of(drawing.found.spots));
}

/// The roof above a point: of the engine and type it ran on, at its intensity.
double roof_above(const Spot& spot, const Account& account) {
    const Work& work = spot.record->work;
    return roof_at(limit_roofs(account.device), work.engine, work.type, FlopsPerByte(spot.intensity)).value;
}

void draw_gaps(Svg& svg, RooflineDrawing& drawing) {
    for (const Spot& spot : drawing.found.spots) {
        if (spot.share < least_share_named) continue;
        const double roof = roof_above(spot, drawing.accounts[spot.account]);
        if (!std::isfinite(roof) || !(roof > spot.rate)) continue;
        const Point top = drawing.frame.at(spot.intensity, roof);
        const Point mark = drawing.frame.at(spot.intensity, spot.rate);
        svg.line({mark.x, mark.y - drawing.radius_of(spot.share)}, top, "gap");
    }
}

void draw_spots(Svg& svg, RooflineDrawing& drawing) {
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

/// In its report.
bool only_of_its_name(std::span<const Spot> sums, const Spot& sum) {
    return std::ranges::count_if(
               sums, [&](const Spot& one) { return one.account == sum.account && one.of->name == sum.of->name; }) == 1;
}

/// Marks with their names; the lines from far names to their marks go under all marks.
void draw_points(Svg& svg, RooflineDrawing& drawing) {
    std::vector<Label> labels;
    std::vector<const Spot*> owners;
    const bool several = drawing.accounts.size() > 1;
    const bool many = drawing.sums.size() > most_stages;
    const StageNames names = stage_names(drawing.accounts);
    for (const Spot& sum : drawing.sums) {
        std::string words = many ? names.own[sum.account][sum.stage] : "all of " + sum.of->name;
        if (!many && !only_of_its_name(drawing.sums, sum) && sum.of->batch > 0.0)
            words += ", batch " + grouped(sum.of->batch);
        if (several && !many) words += ", " + short_title(drawing.accounts, sum.account);
        Label label{drawing.frame.at(sum.intensity, sum.rate), 9.0, words, many ? small_size : text_size, 10.0, true};
        label.needed = many;
        labels.push_back(std::move(label));
        owners.push_back(&sum);
    }
    for (const Spot& spot : drawing.found.spots) {
        const bool named = spot.share >= least_share_named;
        std::string words = point_name(spot, drawing.accounts[spot.account]);
        if (drawing.options.gaps && named) {
            const double roof = roof_above(spot, drawing.accounts[spot.account]);
            if (std::isfinite(roof)) words += fmt::format(" {:.0f}%", 100.0 * spot.rate / roof);
        }
        if (named && !drawing.crowded()) {
            const Point at = drawing.frame.at(spot.intensity, spot.rate);
            // What is alike in every number type has one point, and one name.
            if (std::ranges::any_of(labels, [&](const Label& label) {
                    return !label.bold && label.text == words && label.target.x == at.x && label.target.y == at.y;
                }))
                continue;
            labels.push_back({at, drawing.radius_of(spot.share), words, small_size, spot.share, false});
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

std::vector<LegendItem> legend_of(const RooflineDrawing& drawing) {
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
    bool drawn = false;
    bool measured = false;
    for (const Ceiling& ceiling : drawing.ceilings) {
        drawn = drawn || !ceiling.slopes.empty() || !ceiling.roofs.empty();
        for (const Slope& slope : ceiling.slopes) measured = measured || slope.attainable < slope.limit;
        for (const ComputeRoof& roof : ceiling.roofs) measured = measured || roof.attainable < roof.limit;
    }
    if (drawn) items.push_back({LegendItem::Kind::line, Shape::circle, "roof", limit_words(drawing.accounts)});
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
    RooflineDrawing drawing{
        accounts, options, ceilings_of(accounts, options.levels), spots_of(accounts), sums_of(accounts), {}, {}};
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
