#include "roofline/io/advice_json.hpp"

#include "roofline/io/times_json.hpp"

namespace roofline::io {
namespace {

using decide::Goal;
using decide::Score;
using decide::Verdict;

OrderedJson optional_json(const std::optional<double>& value) {
    return value ? finite(*value) : OrderedJson(nullptr);
}

OrderedJson score_json(const Score& score, Goal goal, const std::optional<double>& price) {
    constexpr double million_over_hour = 1e6 / 3600.0;
    const double device_seconds = score.device_time.expected.value;
    return {{"ttft_s", times_json(score.ttft)},
            {"tpot_s", times_json(score.tpot)},
            {"device_s_per_token", times_json(score.device_time)},
            {"output_tokens_per_s_per_device", score.rate()},
            {"cost_per_million_tokens",
             price ? OrderedJson(million_over_hour * *price * device_seconds) : OrderedJson(nullptr)},
            {"bound", name(score.bound(goal))},
            {"batch", score.batch},
            {"devices", score.devices},
            {"fits", score.fit.fits},
            {"memory_bytes", score.fit.total().value},
            {"capacity_bytes", score.fit.capacity ? OrderedJson(score.fit.capacity->value) : OrderedJson(nullptr)},
            {"max_batch", optional_json(score.fit.largest_batch)}};
}

OrderedJson outcome_json(const decide::Outcome& outcome, const decide::Advice& advice) {
    const bool applies = outcome.verdict != Verdict::does_not_apply;
    const bool compared = outcome.verdict < Verdict::does_not_fit && advice.asked.fit.fits;
    return {{"move", outcome.move},
            {"variant", outcome.variant},
            {"verdict", decide::name(outcome.verdict)},
            {"gain", compared ? OrderedJson(outcome.gain) : OrderedJson(nullptr)},
            {"reason", applies ? OrderedJson(nullptr) : OrderedJson(outcome.reason)},
            {"flags", outcome.flags},
            {"costs", outcome.costs},
            {"answers", decide::name(outcome.answers)},
            {"machines", decide::name(outcome.machines)},
            {"what_if", outcome.what_if},
            {"score", applies ? score_json(outcome.score, advice.goal, outcome.price) : OrderedJson(nullptr)}};
}

OrderedJson combination_json(const decide::Combination& combination, const decide::Advice& advice) {
    return {{"among", combination.title},
            {"parts", combination.parts},
            {"gains", advice.asked.fit.fits ? OrderedJson(combination.gains) : OrderedJson(nullptr)},
            {"gain", advice.asked.fit.fits ? OrderedJson(combination.gain) : OrderedJson(nullptr)},
            {"flags", combination.flags},
            {"costs", combination.costs},
            {"machines", decide::name(combination.machines)},
            {"score", score_json(combination.score, advice.goal, advice.price)}};
}

}  // namespace

OrderedJson advice_json(const decide::Advice& advice, const RunInfo& run) {
    const predict::Scenario& scenario = advice.scenario;
    const predict::Workload& workload = scenario.workload;
    OrderedJson json;
    json["schema"] = "roofline.advise/1";
    json["run"] = {{"version", ROOFLINE_VERSION}, {"command", run.command}, {"time", run.time}};
    json["device"] = {
        {"name", scenario.device.name}, {"title", scenario.device.title}, {"vendor", scenario.device.vendor}};
    json["model"] = {{"name", scenario.model_name}, {"title", scenario.model_title}};
    json["workload"] = {{"batch", workload.batch},          {"prompt", workload.prompt},
                        {"cached_prefix", workload.cached}, {"context", workload.decode_context()},
                        {"generate", workload.generate},    {"chunk", workload.chunk}};
    json["deployment"] = describe(scenario.deployment);
    json["goal"] = decide::name(advice.goal);
    json["price_per_device_hour"] = optional_json(advice.price);
    json["asked"] = score_json(advice.asked, advice.goal, advice.price);
    json["sensitivities"] = OrderedJson::array();
    for (const decide::Sensitivity& row : advice.sensitivities) {
        json["sensitivities"].push_back({{"resource", row.resource.name},
                                         {"title", row.resource.title},
                                         {"amount", optional_json(row.resource.amount)},
                                         {"doubled_buys", row.doubled},
                                         {"elasticity", optional_json(row.elasticity)},
                                         {"note", row.note}});
    }
    json["moves"] = OrderedJson::array();
    for (const decide::Outcome& outcome : advice.outcomes) json["moves"].push_back(outcome_json(outcome, advice));
    json["combinations"] = OrderedJson::array();
    for (const decide::Combination& combination : advice.combinations)
        json["combinations"].push_back(combination_json(combination, advice));
    json["compute_bound_batch"] = {{"batch", optional_json(advice.compute_bound.batch)},
                                   {"largest", optional_json(advice.compute_bound.largest)},
                                   {"fits", advice.compute_bound.fits()}};
    json["notes"] = advice.notes;
    return json;
}

}  // namespace roofline::io
