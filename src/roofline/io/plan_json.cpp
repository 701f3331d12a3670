#include "roofline/io/plan_json.hpp"

namespace roofline::io {
namespace {

using decide::Deploy;
using decide::Fleet;
using decide::PlanQuestion;

long long whole(double value) {
    return static_cast<long long>(value);
}

void write_fleet(JsonText& json, const Fleet& fleet, const PlanQuestion& question) {
    const model::Deployment& cut = fleet.layout.deployment;
    json.add("device", question.choices.offers[fleet.layout.offer].device.name);
    json.add("devices", whole(fleet.devices()));
    json.add("replicas", whole(fleet.replicas));
    json.add("tensor_parallel", whole(cut.tensor));
    json.add("pipeline_parallel", whole(cut.pipeline));
    json.add("context_parallel", whole(cut.context));
    json.add("attention_groups", whole(cut.groups));
    json.add("expert_parallel", whole(cut.experts));
    if (cut.exchange) json.add("expert_exchange", model::name(*cut.exchange));
    json.add("weight_dtype", fleet.weight_types);
    json.add("kv_cache_dtype", fleet.kv_type);
    json.add("max_sequences", whole(fleet.batch));
    json.add("max_step_tokens", whole(fleet.step));
    if (!fleet.layout.speculates) return json.add("speculation", nullptr);
    const serving::Speculation& guesses = question.choices.speculation;
    json.object("speculation", [&] {
        json.add("tokens", whole(guesses.tokens));
        json.add("acceptance", guesses.acceptance);
        json.add("draft_share", guesses.draft_fraction);
    });
}

void write_deploy(JsonText& json, const Deploy& deploy, const PlanQuestion& question) {
    const decide::Performance& performance = deploy.performance;
    const double output = question.model.workload.generate;
    const double capacity = deploy.served ? deploy.served->capacity : performance.capacity;
    json.add("devices", whole(deploy.devices));
    json.object("pools", [&] {
        if (deploy.prefill)
            json.object("prefill", [&] { write_fleet(json, *deploy.prefill, question); });
        else
            json.add("prefill", nullptr);
        json.object(deploy.prefill ? "decode" : "whole", [&] { write_fleet(json, deploy.main, question); });
    });
    json.object("requests_per_s", [&] {
        json.add("limit", performance.capacity_limit);
        json.add("expected", capacity);
    });
    json.add("output_tokens_per_s", capacity * output);
    json.add("output_tokens_per_s_per_device", deploy.merits.per_device);
    json.add("output_tokens_per_s_per_user", deploy.merits.per_user);
    json.add("ttft_s", deploy.served ? deploy.served->ttft : performance.ttft);
    json.add("tpot_s", deploy.served ? deploy.served->tpot : performance.tpot);
    json.add("wait_s", deploy.served ? std::optional(deploy.served->wait) : std::nullopt);
    json.add("simulated_requests", whole(deploy.served ? deploy.served->simulated : 0.0));
    json.add("running_sequences", deploy.served ? std::optional(deploy.served->running) : std::nullopt);
    json.object("closed_form", [&] {
        json.add("requests_per_s", performance.capacity);
        json.add("ttft_s", performance.ttft);
        json.add("tpot_s", performance.tpot);
    });
    json.add("transfer_s", performance.transfer);
    json.add("cost_per_hour", deploy.cost_per_hour);
    json.add("cost_per_million_output_tokens", deploy.merits.cost);
    json.object("limited_by", [&] {
        json.add("decode", name(deploy.decode_bound));
        json.add("prefill", name(deploy.prefill_bound));
        json.add("batch", name(deploy.obstacle));
    });
}

}  // namespace

void write_plan(JsonText& json, const decide::Plan& plan, const PlanQuestion& question) {
    const decide::Counts& counts = plan.counts;
    json.add("model", plan.model_name);
    json.add("title", plan.model_title);
    json.add("cost_unit", plan.priced_in_money ? "money" : "device-hours");
    json.object("candidates", [&] {
        json.add("all", counts.candidates);
        json.add("impossible", counts.impossible);
        json.add("not_fitting", counts.not_fitting);
        json.add("beaten_before_pricing", counts.beaten_early);
        json.add("priced", counts.priced);
        json.add("meeting_targets", counts.meeting);
        json.add("asked_again", counts.served);
    });
    json.add("requests_per_s_limit", plan.requests_limit);
    const auto write_one = [&](std::string_view key, const Deploy* deploy) {
        if (deploy != nullptr)
            json.object(key, [&] { write_deploy(json, *deploy, question); });
        else
            json.add(key, nullptr);
    };
    write_one("best", plan.best.empty() ? nullptr : &plan.best.front());
    write_one("runner_up", plan.best.size() > 1 ? &plan.best[1] : nullptr);
    write_one("nearest", plan.closest ? &*plan.closest : nullptr);
    json.array("misses", [&] {
        for (const decide::Miss& miss : plan.misses) {
            json.object([&] {
                json.add("target", name(miss.target));
                json.add("asked", miss.asked);
                json.add("found", miss.found);
                json.add("even_alone", miss.alone);
            });
        }
    });
    json.array("front", [&] {
        for (const Deploy& deploy : plan.front) json.object([&] { write_deploy(json, deploy, question); });
    });
    json.add("notes", plan.notes);
}

}  // namespace roofline::io
