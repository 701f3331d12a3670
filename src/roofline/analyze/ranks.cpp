#include "roofline/analyze/ranks.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/analyze/spelling.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::analyze {
namespace {

Seconds in_collectives(const WhereTimeWent& went) {
    return went.communicating + went.hidden_communication;
}

double share(Seconds part, Seconds whole) {
    return whole.value > 0.0 ? part / whole : 0.0;
}

std::string called(const Analysis& analysis) {
    const RankShare& rank = *analysis.rank;
    return rank.number >= 0.0 ? fmt::format("rank {:.0f}", rank.number) : analysis.file;
}

}  // namespace

void compare_ranks(std::vector<Analysis>& analyses) {
    if (analyses.size() < 2) return;
    Seconds least = in_collectives(analyses.front().whole);
    for (const Analysis& analysis : analyses) least = std::min(least, in_collectives(analysis.whole));
    for (Analysis& analysis : analyses) {
        if (!analysis.rank) analysis.rank.emplace();
        RankShare& rank = *analysis.rank;
        rank.collectives = in_collectives(analysis.whole);
        rank.waiting = rank.collectives - least;
    }
    const auto slowest = std::max_element(analyses.begin(), analyses.end(), [](const Analysis& a, const Analysis& b) {
        return a.whole.computing < b.whole.computing;
    });
    slowest->rank->slowest = true;
}

std::string ranks_text(const std::vector<Analysis>& analyses, const TextOptions& options) {
    using render::Align;
    render::Table table;
    table.columns = {{"rank", Align::left}, {"file", Align::left}, {"wall"},   {"computing"}, {"in collectives"},
                     {"waiting there"},     {"exposed"},           {"copies"}, {"idle"},      {"kernels explained"}};
    std::vector<const Analysis*> order;
    for (const Analysis& analysis : analyses) order.push_back(&analysis);
    std::stable_sort(order.begin(), order.end(),
                     [](const Analysis* a, const Analysis* b) { return a->rank->number < b->rank->number; });
    const Analysis* slowest = order.front();
    Seconds others{};
    Seconds waiting{};
    bool any_collectives = false;
    for (const Analysis* analysis : order) {
        const WhereTimeWent& went = analysis->whole;
        const RankShare& rank = *analysis->rank;
        any_collectives = any_collectives || rank.collectives.value > 0.0;
        if (rank.slowest) {
            slowest = analysis;
        } else {
            others += went.computing;
            waiting += rank.waiting;
        }
        table.rows.push_back(
            {rank.number >= 0.0 ? fmt::format("{:.0f}", rank.number) : "-", analysis->file, render::time(went.wall),
             render::time(went.computing), rank.collectives.value > 0.0 ? render::time(rank.collectives) : "-",
             rank.collectives.value > 0.0 ? render::time(rank.waiting) : "-",
             render::percent(share(went.communicating, went.wall)), render::percent(share(went.copying, went.wall)),
             render::percent(share(went.idle, went.wall)),
             render::percent(share(analysis->explained_time, analysis->kernel_time))});
    }
    std::string text = heading("files side by side", options) + spelt(table, options);
    const auto rest = static_cast<double>(order.size() - 1);
    const Seconds computing = slowest->whole.computing;
    const Seconds mean = others / rest;
    if (computing.value <= 0.0) return text;
    const double skew = mean.value > 0.0 ? computing / mean - 1.0 : 0.0;
    std::string said =
        fmt::format("{} computes longest: {}, the {} {}{}", called(*slowest), render::time(computing),
                    rest > 1.0 ? "others" : "other", render::time(mean), rest > 1.0 ? " on average" : "");
    if (skew < 0.01) said = fmt::format("all compute equally long, within {}", render::percent(0.01));
    const Seconds waits = slowest->rank->waiting;
    if (any_collectives && skew >= 0.01 && waiting.value > 0.0)
        said += fmt::format("; {} in collectives for it",
                            (rest > 1.0 ? "they wait " : "it waits ") + render::time(waiting / rest));
    // It is not its computing, then, that others wait for: some of them came later to a collective.
    if (any_collectives && skew >= 0.01 && waits > waiting / rest)
        said += fmt::format(
            "; yet it waits {} in collectives itself: {} later to one of them, as where recording begins later",
            render::time(waits), rest > 1.0 ? "others came" : "the other came");
    text += line(said, options);
    const Seconds even = (others + computing) / (rest + 1.0);
    const Seconds saved = computing - even;
    if (skew >= 0.01 && slowest->whole.wall > saved) {
        text += line(
            fmt::format("spread evenly: at most {:.2f}x, {} of {}", slowest->whole.wall / (slowest->whole.wall - saved),
                        render::time(saved), render::time(slowest->whole.wall)),
            options);
    }
    return text;
}

}  // namespace roofline::analyze
