#include "roofline/render/chart/intensity_line.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

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

constexpr double width = 960.0;
constexpr double lane = 130.0;

/// Of one stage: others may be in other number types.
Ridges ridges_of_stage(const Account& account, std::size_t stage, std::span<const Spot> spots) {
    Account alone;
    alone.device = account.device;
    alone.stages = {account.stages[stage]};
    return ridges_of(ceilings_of({&alone, 1}, {}).front(), account.device, spots);
}

}  // namespace

std::string intensity_line_chart(std::span<const Account> accounts) {
    const Spots found = spots_of(accounts);
    double low = 1.0;
    double high = 10.0;
    for (const Spot& spot : found.spots) {
        low = std::min(low, spot.intensity);
        high = std::max(high, spot.intensity);
    }
    std::size_t lanes = 0;
    std::vector<std::vector<Ridges>> ridges;
    for (std::size_t a = 0; a < accounts.size(); ++a) {
        ridges.emplace_back();
        for (std::size_t s = 0; s < accounts[a].stages.size(); ++s) {
            std::vector<Spot> mine;
            std::ranges::copy_if(found.spots, std::back_inserter(mine),
                                 [&](const Spot& spot) { return spot.account == a && spot.stage == s; });
            ridges.back().push_back(ridges_of_stage(accounts[a], s, mine));
            high = std::max(high, ridges.back().back().highest * 2.0);
        }
        lanes += accounts[a].stages.size();
    }
    low = std::max(low, high * 1e-12);
    const std::string title = "Arithmetic intensity: " + common_title(accounts);
    const double height =
        108.0 + lane * static_cast<double>(std::max<std::size_t>(1, lanes)) + notes_height(notes_about(found.unseen));
    Svg svg(width, height, title, fmt::format("{} operators on number lines of FLOP per byte", found.spots.size()));
    double top =
        draw_heading(
            svg, title,
            {"FLOPs of each operator for every byte it moves through memory; larger circles take more of the time"}) +
        8.0;
    const Scale x{low / 1.6, high * 1.6, 40.0, width - 40.0, true};
    for (std::size_t a = 0; a < accounts.size(); ++a) {
        for (std::size_t s = 0; s < accounts[a].stages.size(); ++s) {
            const double line = top + lane - 44.0;
            const double first = top + 18.0;
            const auto [lowest, highest] = ridges[a][s];
            const bool known = lowest > 0.0 && x.holds(lowest) && x.holds(highest);
            const bool several = highest > lowest;
            if (known) {
                svg.rectangle({x.from, first, x.at(lowest), line + 26.0}, "memory-region");
                svg.rectangle({x.at(highest), first, x.to, line + 26.0}, "compute-region");
                svg.line({x.at(lowest), first}, {x.at(lowest), line + 26.0}, "ridge");
                if (several) svg.line({x.at(highest), first}, {x.at(highest), line + 26.0}, "ridge");
            }
            std::string words = describe_stage(accounts[a].stages[s]);
            if (accounts.size() > 1) words = accounts[a].title + ": " + words;
            svg.text({40.0, top + 12.0}, words, "strong");
            if (known && several) {
                svg.text(
                    {x.at(highest), top + 12.0},
                    fmt::format("ridges {} and {}", intensity(FlopsPerByte(lowest)), intensity(FlopsPerByte(highest))),
                    "small", Anchor::middle);
            } else if (known) {
                svg.text({x.at(lowest), top + 12.0}, fmt::format("ridge {}", intensity(FlopsPerByte(lowest))), "small",
                         Anchor::middle);
            }
            svg.line({x.from, line}, {x.to, line}, "axis");
            for (const Tick& tick : log_ticks(x.low, x.high)) {
                if (tick.label.empty()) continue;
                svg.line({x.at(tick.value), line - 3.0}, {x.at(tick.value), line + 3.0}, "axis");
                svg.text({x.at(tick.value), line + 20.0}, tick.label, "small soft", Anchor::middle);
            }
            std::vector<const Spot*> mine;
            for (const Spot& spot : found.spots) {
                if (spot.account == a && spot.stage == s) mine.push_back(&spot);
            }
            std::stable_sort(mine.begin(), mine.end(),
                             [](const Spot* one, const Spot* two) { return one->share > two->share; });
            std::vector<Label> labels;
            for (const Spot* spot : mine) {
                const double radius = 3.0 + 11.0 * std::sqrt(spot->share);
                svg.open_at({x.at(spot->intensity), line}, "point",
                            {{"data-stage", spot->of->name},
                             {"data-group", name(spot->record->group)},
                             {"data-name", spot->record->name}});
                svg.tooltip(explain_spot(*spot, accounts[a]));
                draw_mark(svg, Shape::circle, radius, fmt::format("mark {}", group_class(spot->record->group)));
                svg.close();
                if (spot->share >= 0.01)
                    labels.push_back({{x.at(spot->intensity), line},
                                      radius,
                                      short_name(*spot->record, *spot->of),
                                      small_size,
                                      spot->share,
                                      false});
            }
            const auto placed =
                place_labels(labels, {{x.from, line - 3.0, x.to, line + 30.0}}, {x.from, first, x.to, line});
            for (std::size_t i = 0; i < labels.size(); ++i) {
                if (!placed[i]) continue;
                const Box& box = placed[i]->box;
                if (placed[i]->far)
                    svg.line({std::clamp(labels[i].target.x, box.left, box.right), box.bottom},
                             {labels[i].target.x, line - labels[i].radius}, "leader");
            }
            // After all lines, so that none goes through a word.
            for (std::size_t i = 0; i < labels.size(); ++i) {
                if (placed[i]) svg.text(placed[i]->baseline(), labels[i].text, "halo small");
            }
            top += lane;
        }
    }
    if (lanes == 0) svg.text({width / 2.0, top + 30.0}, "no operator", "soft", Anchor::middle);
    svg.text({width / 2.0, top + 8.0}, "FLOP per byte of memory traffic", "axis-name", Anchor::middle);
    draw_notes(svg, notes_about(found.unseen));
    return svg.finish();
}

}  // namespace roofline::render::chart
