#include "roofline/render/load_text.hpp"

#include <cmath>

#include <fmt/format.h>

#include "roofline/render/numbers.hpp"
#include "roofline/render/table.hpp"

namespace roofline::render {
namespace {

using serving::Answer;
using serving::Load;
using serving::Percentiles;
using serving::Steady;
using serving::Traffic;

std::string seconds(double value) {
    return std::isfinite(value) ? time(Seconds(value)) : "no end";
}

std::string load_line(const Traffic& traffic, const Answer& answer) {
    const std::string share =
        answer.replicas > 1.0 ? fmt::format(" over {} replicas", grouped(answer.replicas)) : std::string();
    switch (traffic.load.kind) {
        case Load::Kind::saturated:
            return "saturated: there is always another request waiting" + share;
        case Load::Kind::users:
            return traffic.load.value == 1.0
                       ? "one user, asking again when answered" + share
                       : fmt::format("{} users, each asking again when answered{}", grouped(traffic.load.value), share);
        case Load::Kind::rate:
            return fmt::format("{} requests/s at random{}", plain(traffic.load.value), share);
        case Load::Kind::trace:
            return fmt::format("a trace of {} requests{}", grouped(static_cast<double>(traffic.mix.trace.size())),
                               share);
    }
    return "";
}

/// The three times side by side.
Table steady_table(const Answer& answer, bool trace) {
    // Only the simulation follows the arrivals of a trace.
    Table table{{{trace ? "one replica, were there always more" : "one replica", Align::left},
                 {"limit"},
                 {"attainable"},
                 {"expected"}},
                {}};
    const auto row = [&](const char* what, const auto& text) {
        table.rows.push_back({what, text(answer.limit), text(answer.attainable), text(answer.expected)});
    };
    row("output tokens/s", [](const Steady& s) { return plain(s.flow.output_tokens); });
    row("requests/s", [](const Steady& s) { return plain(s.flow.requests); });
    row("requests it could serve/s", [](const Steady& s) { return plain(s.capacity); });
    row("time to first token", [](const Steady& s) { return seconds(s.ttft); });
    row("time per further token", [](const Steady& s) { return seconds(s.tpot); });
    row("whole request", [](const Steady& s) { return seconds(s.request); });
    row("requests running", [](const Steady& s) { return plain(s.running); });
    row("prompt tokens in a step", [](const Steady& s) { return plain(s.prompt_step_tokens); });
    row("held back by",
        [](const Steady& s) { return s.overloaded ? std::string("overload") : std::string(name(s.limit)); });
    return table;
}

Table percentile_table(const serving::Outcome& outcome) {
    Table table{{{"simulated", Align::left}, {"mean"}, {"p50"}, {"p90"}, {"p99"}}, {}};
    const auto row = [&](const char* what, const std::optional<Percentiles>& found) {
        if (!found) return;
        table.rows.push_back(
            {what, seconds(found->mean), seconds(found->p50), seconds(found->p90), seconds(found->p99)});
    };
    row("time to first token", outcome.ttft);
    row("time per further token", outcome.tpot);
    row("between two tokens", outcome.itl);
    row("whole request", outcome.request);
    return table;
}

std::string metrics_line(const Answer& answer) {
    const serving::Metrics& m = answer.metrics;
    std::string line =
        fmt::format("{} output tokens/s and {} tokens/s in all, {} requests/s; {} output tokens/s a user, {} a device",
                    plain(m.output_tokens_per_second), plain(m.total_tokens_per_second), plain(m.requests_per_second),
                    plain(m.output_tokens_per_second_per_user), plain(m.output_tokens_per_second_per_device));
    if (m.mfu) line += fmt::format("\nMFU {}", percent(*m.mfu));
    if (m.mbu) line += fmt::format(", MBU {}", percent(*m.mbu));
    if (m.joules_per_output_token)
        line += fmt::format("{}{} an output token at rated power", m.mfu ? ", " : "\n",
                            with_unit(*m.joules_per_output_token, "J"));
    if (m.price_per_million_output_tokens) {
        line += fmt::format(", {:.4g} per million output tokens, {:.4g} per million of all",
                            *m.price_per_million_output_tokens, *m.price_per_million_tokens);
    }
    return line + "\n";
}

}  // namespace

std::string load_text(const Traffic& traffic, const Answer& answer) {
    std::string text = load_line(traffic, answer) + "\n";
    text += as_text(steady_table(answer, traffic.load.kind == Load::Kind::trace));
    if (answer.expected.overloaded) {
        text += fmt::format("OVERLOADED: {} requests/s come to a replica that serves {}: the queue has no end\n",
                            plain(traffic.load.value / answer.replicas), plain(answer.expected.capacity));
    }
    if (answer.pools) {
        const serving::Disaggregated& pools = *answer.pools;
        text += fmt::format(
            "two pools: {} requests/s, {} output tokens/s; {} is the narrowest ({} / {} / {} requests/s of prefill, "
            "link and decode)\n",
            plain(pools.requests_per_second), plain(pools.output_tokens_per_second), name(pools.narrowest),
            plain(pools.prefill_capacity), plain(pools.link_capacity), plain(pools.decode_capacity));
        text += fmt::format("           first token {}, further ones {}, {} of cache moved for each request in {}\n",
                            seconds(pools.ttft), seconds(pools.tpot), bytes(Bytes(pools.transfer_bytes)),
                            seconds(pools.transfer_seconds));
    }
    text += metrics_line(answer);
    if (answer.simulated) {
        const serving::Outcome& outcome = *answer.simulated;
        text += "\n";
        if (outcome.overloaded) {
            text += fmt::format("simulated: overloaded, {} requests waiting at the end\n", grouped(outcome.waiting));
        } else {
            text += as_text(percentile_table(outcome));
        }
        text +=
            fmt::format("{} requests in {}: {} output tokens/s, {} preemptions a request\n", grouped(outcome.requests),
                        seconds(outcome.seconds), plain(outcome.flow.output_tokens), plain(outcome.flow.preemptions));
    }
    for (const std::string& assumption : answer.assumptions) text += "assumed: " + assumption + "\n";
    return text;
}

}  // namespace roofline::render
