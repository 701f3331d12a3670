#include "roofline/io/plan_json.hpp"

namespace roofline::io {
namespace {

using decide::Deploy;
using decide::Fleet;
using decide::PlanQuestion;

OrderedJson whole(double value) {
    return static_cast<long long>(value);
}

OrderedJson fleet_json(const Fleet& fleet, const PlanQuestion& question) {
    const model::Deployment& cut = fleet.layout.deployment;
    const serving::Speculation& guesses = question.choices.speculation;
    const OrderedJson speculation = fleet.layout.speculates ? OrderedJson({{"tokens", whole(guesses.tokens)},
                                                                           {"acceptance", guesses.acceptance},
                                                                           {"draft_share", guesses.draft_fraction}})
                                                            : OrderedJson(nullptr);
    return {{"device", question.choices.offers[fleet.layout.offer].device.name},
            {"devices", whole(fleet.devices())},
            {"replicas", whole(fleet.replicas)},
            {"tensor_parallel", whole(cut.tensor)},
            {"pipeline_parallel", whole(cut.pipeline)},
            {"attention_groups", whole(cut.groups)},
            {"expert_parallel", whole(cut.experts)},
            {"weight_dtype", fleet.weight_types},
            {"kv_cache_dtype", fleet.kv_type},
            {"max_sequences", whole(fleet.batch)},
            {"max_step_tokens", whole(fleet.step)},
            {"speculation", speculation}};
}

OrderedJson deploy_json(const Deploy& deploy, const PlanQuestion& question) {
    const decide::Performance& performance = deploy.performance;
    const double output = question.model.workload.generate;
    const double capacity = deploy.served ? deploy.served->capacity : performance.capacity;
    return {{"devices", whole(deploy.devices)},
            {"pools",
             {{"prefill", deploy.prefill ? fleet_json(*deploy.prefill, question) : OrderedJson(nullptr)},
              {deploy.prefill ? "decode" : "whole", fleet_json(deploy.main, question)}}},
            {"requests_per_s", {{"limit", performance.capacity_limit}, {"expected", capacity}}},
            {"output_tokens_per_s", capacity * output},
            {"output_tokens_per_s_per_device", deploy.merits.per_device},
            {"output_tokens_per_s_per_user", deploy.merits.per_user},
            {"ttft_s", finite(deploy.served ? deploy.served->ttft : performance.ttft)},
            {"tpot_s", finite(deploy.served ? deploy.served->tpot : performance.tpot)},
            {"wait_s", deploy.served ? finite(deploy.served->wait) : OrderedJson(nullptr)},
            {"running_sequences", deploy.served ? finite(deploy.served->running) : OrderedJson(nullptr)},
            {"closed_form",
             {{"requests_per_s", performance.capacity}, {"ttft_s", performance.ttft}, {"tpot_s", performance.tpot}}},
            {"transfer_s", performance.transfer},
            {"cost_per_hour", deploy.cost_per_hour},
            {"cost_per_million_output_tokens", finite(deploy.merits.cost)},
            {"limited_by",
             {{"decode", name(deploy.decode_bound)},
              {"prefill", name(deploy.prefill_bound)},
              {"batch", name(deploy.obstacle)}}}};
}

}  // namespace

OrderedJson plan_json(const decide::Plan& plan, const PlanQuestion& question) {
    const decide::Counts& counts = plan.counts;
    OrderedJson json = {{"model", plan.model_name},
                        {"title", plan.model_title},
                        {"cost_unit", plan.priced_in_money ? "money" : "device-hours"},
                        {"candidates",
                         {{"all", counts.candidates},
                          {"impossible", counts.impossible},
                          {"not_fitting", counts.not_fitting},
                          {"beaten_before_pricing", counts.beaten_early},
                          {"priced", counts.priced},
                          {"meeting_targets", counts.meeting},
                          {"asked_again", counts.served}}},
                        {"requests_per_s_limit", plan.requests_limit},
                        {"best", nullptr},
                        {"runner_up", nullptr},
                        {"nearest", nullptr}};
    if (!plan.best.empty()) json["best"] = deploy_json(plan.best.front(), question);
    if (plan.best.size() > 1) json["runner_up"] = deploy_json(plan.best[1], question);
    if (plan.closest) json["nearest"] = deploy_json(*plan.closest, question);
    json["misses"] = OrderedJson::array();
    for (const decide::Miss& miss : plan.misses) {
        json["misses"].push_back({{"target", name(miss.target)},
                                  {"asked", miss.asked},
                                  {"found", finite(miss.found)},
                                  {"even_alone", miss.alone}});
    }
    json["front"] = OrderedJson::array();
    for (const Deploy& deploy : plan.front) json["front"].push_back(deploy_json(deploy, question));
    json["notes"] = plan.notes;
    return json;
}

}  // namespace roofline::io
