#include "roofline/io/advice_json.hpp"

#include "roofline/io/times_json.hpp"

namespace roofline::io {
namespace {

using decide::Goal;
using decide::Score;
using decide::Verdict;

void write_score(JsonText& json, std::string_view key, const Score& score, Goal goal,
                 const std::optional<double>& price) {
    constexpr double million_over_hour = 1e6 / 3600.0;
    const double device_seconds = score.device_time.expected.value;
    json.object(key, [&] {
        write_times(json, "ttft_s", score.ttft);
        write_times(json, "tpot_s", score.tpot);
        write_times(json, "device_s_per_token", score.device_time);
        json.add("output_tokens_per_s_per_device", score.rate());
        json.add("cost_per_million_tokens",
                 price ? std::optional(million_over_hour * *price * device_seconds) : std::nullopt);
        json.add("bound", name(score.bound(goal)));
        json.add("batch", score.batch);
        json.add("devices", score.devices);
        json.add("fits", score.fit.fits);
        json.add("memory_bytes", score.fit.total().value);
        json.add("capacity_bytes", score.fit.capacity ? std::optional(score.fit.capacity->value) : std::nullopt);
        json.add("max_batch", score.fit.largest_batch);
    });
}

void write_outcome(JsonText& json, const decide::Outcome& outcome, const decide::Advice& advice) {
    const bool applies = outcome.verdict != Verdict::does_not_apply;
    const bool compared = outcome.verdict < Verdict::does_not_fit && advice.asked.fit.fits;
    json.add("move", outcome.move);
    json.add("variant", outcome.variant);
    json.add("verdict", decide::name(outcome.verdict));
    json.add("gain", compared ? std::optional(outcome.gain) : std::nullopt);
    json.add("reason", applies ? std::nullopt : std::optional(outcome.reason));
    json.add("flags", outcome.flags);
    json.add("costs", outcome.costs);
    json.add("answers", decide::name(outcome.answers));
    json.add("machines", decide::name(outcome.machines));
    json.add("what_if", outcome.what_if);
    if (applies)
        write_score(json, "score", outcome.score, advice.goal, outcome.price);
    else
        json.add("score", nullptr);
}

void write_combination(JsonText& json, const decide::Combination& combination, const decide::Advice& advice) {
    const bool fits = advice.asked.fit.fits;
    json.add("among", combination.title);
    json.add("parts", combination.parts);
    json.add("gains", fits ? std::optional(combination.gains) : std::nullopt);
    json.add("gain", fits ? std::optional(combination.gain) : std::nullopt);
    json.add("flags", combination.flags);
    json.add("costs", combination.costs);
    json.add("machines", decide::name(combination.machines));
    write_score(json, "score", combination.score, advice.goal, advice.price);
}

void write_sensitivity(JsonText& json, const decide::Sensitivity& row) {
    json.add("resource", row.resource.name);
    json.add("title", row.resource.title);
    json.add("amount", row.resource.amount);
    json.add("doubled_buys", row.doubled);
    json.add("elasticity", row.elasticity);
    json.add("note", row.note);
}

void write_advice(JsonText& json, const decide::Advice& advice) {
    const predict::Scenario& scenario = advice.scenario;
    json.object("device", [&] {
        json.add("name", scenario.device.name);
        json.add("title", scenario.device.title);
        json.add("vendor", scenario.device.vendor);
    });
    json.object("model", [&] {
        json.add("name", scenario.model_name);
        json.add("title", scenario.model_title);
    });
    write_workload(json, scenario.workload);
    json.add("deployment", describe(scenario.deployment));
    json.add("goal", decide::name(advice.goal));
    json.add("price_per_device_hour", advice.price);
    write_score(json, "asked", advice.asked, advice.goal, advice.price);
    json.array("sensitivities", [&] {
        for (const decide::Sensitivity& row : advice.sensitivities) json.object([&] { write_sensitivity(json, row); });
    });
    json.array("moves", [&] {
        for (const decide::Outcome& outcome : advice.outcomes)
            json.object([&] { write_outcome(json, outcome, advice); });
    });
    json.array("combinations", [&] {
        for (const decide::Combination& combination : advice.combinations)
            json.object([&] { write_combination(json, combination, advice); });
    });
    json.object("compute_bound_batch", [&] {
        json.add("batch", advice.compute_bound.batch);
        json.add("largest", advice.compute_bound.largest);
        json.add("fits", advice.compute_bound.fits());
    });
    json.add("notes", advice.notes);
}

}  // namespace

std::string advice_text(const decide::Advice& advice, const RunInfo& run) {
    JsonText json;
    json.object([&] {
        json.add("schema", "roofline.advise/1");
        write_run(json, run);
        write_advice(json, advice);
    });
    return std::move(json).finish();
}

}  // namespace roofline::io
