#include "roofline/render/chart/decisions.hpp"

#include <fmt/format.h>

#include "roofline/render/chart/figure.hpp"
#include "roofline/render/chart/pareto.hpp"
#include "roofline/render/chart/tornado.hpp"
#include "roofline/render/chart/waterfall.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::render::chart {
namespace {

using decide::Goal;

std::string in_words(Goal goal) {
    switch (goal) {
        case Goal::tpot:
            return "time per output token";
        case Goal::ttft:
            return "time to the first token";
        case Goal::throughput:
            return "device time for each output token";
        case Goal::cost:
            return "cost of an output token, as a share of now";
    }
    return "";
}

/// Gains under cost count prices, which times do not know: shares are all that can be said of them.
std::string value_text(const decide::Advice& advice, double now, double gain) {
    return advice.goal == Goal::cost ? percent(1.0 / gain) : render::time(Seconds(now / gain));
}

std::string combination_chart(const decide::Advice& advice, const decide::Combination& combination) {
    const double now = advice.goal == Goal::cost ? 1.0 : advice.asked.of(advice.goal).expected.value;
    std::vector<WaterfallStep> steps = {{"as asked", now, value_text(advice, now, 1.0)}};
    for (std::size_t i = 0; i < combination.parts.size() && i < combination.gains.size(); ++i) {
        const double gain = combination.gains[i];
        if (gain > 0.0) steps.push_back({combination.parts[i], now / gain, value_text(advice, now, gain)});
    }
    return waterfall_chart(
        steps,
        fmt::format("{} on {}: {:.2f} times better", advice.scenario.model_name, advice.scenario.device.name,
                    combination.gain),
        fmt::format("{}, expected, after each change; {}", in_words(advice.goal), combination.title));
}

std::string moves_chart(const decide::Advice& advice) {
    const bool fits = advice.asked.fit.fits;
    std::vector<TornadoBar> bars;
    for (const decide::Outcome& outcome : advice.outcomes) {
        TornadoBar bar{outcome.variant.empty() ? outcome.move : outcome.variant, 1.0, outcome.costs};
        if (outcome.what_if) bar.name = "what if: " + bar.name;
        switch (outcome.verdict) {
            case decide::Verdict::does_not_apply:
                bar.instead = outcome.reason;
                break;
            case decide::Verdict::does_not_fit:
                bar.instead = "does not fit";
                break;
            default:
                bar.gain = outcome.gain;
                if (!fits) bar.instead = "makes it fit";
        }
        bars.push_back(std::move(bar));
    }
    return tornado_chart(
        std::move(bars),
        fmt::format("Every change by itself: {} on {}", advice.scenario.model_name, advice.scenario.device.name),
        fits ? fmt::format("times better {}", in_words(advice.goal)) : "what was asked does not fit");
}

std::string resources_chart(const decide::Advice& advice) {
    std::vector<TornadoBar> bars;
    for (const decide::Sensitivity& row : advice.sensitivities)
        bars.push_back({row.resource.title, row.doubled, row.note});
    return tornado_chart(
        std::move(bars),
        fmt::format("What twice as much of it buys: {} on {}", advice.scenario.model_name, advice.scenario.device.name),
        advice.goal == Goal::cost ? "times less cost of an output token"
                                  : fmt::format("times better {}; now {}", in_words(advice.goal),
                                                render::time(advice.asked.of(advice.goal).expected)));
}

}  // namespace

std::vector<std::string> advice_charts(const decide::Advice& advice) {
    std::vector<std::string> charts;
    const decide::Combination* best = nullptr;
    for (const decide::Combination& combination : advice.combinations) {
        if (advice.asked.fit.fits && !combination.gains.empty() && (best == nullptr || combination.gain > best->gain))
            best = &combination;
    }
    // What this machine can do comes first; then what more of them can, where that is better.
    const decide::Combination* here = nullptr;
    for (const decide::Combination& combination : advice.combinations) {
        const bool same =
            combination.machines == decide::Machines::same && !combination.gains.empty() && advice.asked.fit.fits;
        if (same && (here == nullptr || combination.gain > here->gain)) here = &combination;
    }
    if (here != nullptr) charts.push_back(combination_chart(advice, *here));
    if (best != nullptr && best != here) charts.push_back(combination_chart(advice, *best));
    const bool nothing_else = charts.empty() && advice.outcomes.empty();
    if (!advice.sensitivities.empty() || nothing_else) charts.push_back(resources_chart(advice));
    return charts;
}

std::vector<std::string> move_charts(const decide::Advice& advice) {
    if (advice.outcomes.empty()) return {};
    return {moves_chart(advice)};
}

std::string plan_figure(const decide::Plan& plan, const decide::PlanQuestion& question) {
    std::vector<ParetoPoint> points;
    const auto add = [&](const decide::Deploy& deploy, int rank) {
        const std::string& device = question.choices.offers[deploy.main.layout.offer].device.name;
        ParetoPoint point{decide::describe(deploy, question), device, deploy.merits.per_user, deploy.merits.per_device,
                          rank};
        for (const ParetoPoint& known : points) {
            if (known.name == point.name && known.per_user == point.per_user && known.per_device == point.per_device)
                return;
        }
        points.push_back(std::move(point));
    };
    for (std::size_t i = 0; i < plan.best.size(); ++i) add(plan.best[i], static_cast<int>(i) + 1);
    for (const decide::Deploy& deploy : plan.front) add(deploy, 0);
    const std::string subtitle = plan.best.empty()
                                     ? "nothing meets the targets; what none beats otherwise, of all there are"
                                     : "what none beats, of those that meet the targets; some are here for their price";
    return pareto_chart(points, fmt::format("Plans for {}", plan.model_name), subtitle);
}

}  // namespace roofline::render::chart
