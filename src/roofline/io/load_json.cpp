#include "roofline/io/load_json.hpp"

namespace roofline::io {
namespace {

void write_steady(JsonText& json, std::string_view key, const serving::Steady& steady) {
    json.object(key, [&] {
        json.add("output_tokens_per_s", steady.flow.output_tokens);
        json.add("prompt_tokens_per_s", steady.flow.prompt_tokens);
        json.add("requests_per_s", steady.flow.requests);
        json.add("capacity_requests_per_s", steady.capacity);
        json.add("ttft_s", steady.ttft);
        json.add("tpot_s", steady.tpot);
        json.add("itl_s", steady.itl);
        json.add("request_s", steady.request);
        json.add("running", steady.running);
        json.add("held_back_by", serving::name(steady.limit));
        json.add("overloaded", steady.overloaded);
    });
}

void write_percentiles(JsonText& json, std::string_view key, const std::optional<serving::Percentiles>& found) {
    if (!found) return json.add(key, nullptr);
    json.object(key, [&] {
        json.add("mean", found->mean);
        json.add("p50", found->p50);
        json.add("p90", found->p90);
        json.add("p99", found->p99);
    });
}

std::string_view name_of(serving::Load::Kind kind) {
    switch (kind) {
        case serving::Load::Kind::saturated:
            return "saturated";
        case serving::Load::Kind::users:
            return "users";
        case serving::Load::Kind::rate:
            return "rate";
        case serving::Load::Kind::trace:
            return "trace";
    }
    return "";
}

void write_simulated(JsonText& json, const serving::Outcome& outcome) {
    json.add("requests", outcome.requests);
    json.add("seconds", outcome.seconds);
    json.add("output_tokens_per_s", outcome.flow.output_tokens);
    json.add("requests_per_s", outcome.flow.requests);
    json.add("preemptions_per_request", outcome.flow.preemptions);
    json.add("overloaded", outcome.overloaded);
    write_percentiles(json, "ttft_s", outcome.ttft);
    write_percentiles(json, "tpot_s", outcome.tpot);
    write_percentiles(json, "itl_s", outcome.itl);
    write_percentiles(json, "request_s", outcome.request);
}

void write_pools(JsonText& json, const serving::Disaggregated& pools) {
    json.add("narrowest", serving::name(pools.narrowest));
    json.add("capacity_requests_per_s", pools.capacity);
    json.add("prefill_requests_per_s", pools.prefill_capacity);
    json.add("link_requests_per_s", pools.link_capacity);
    json.add("decode_requests_per_s", pools.decode_capacity);
    json.add("output_tokens_per_s", pools.output_tokens_per_second);
    json.add("transfer_bytes", pools.transfer_bytes);
    json.add("transfer_s", pools.transfer_seconds);
    json.add("ttft_s", pools.ttft);
    json.add("tpot_s", pools.tpot);
    json.add("request_s", pools.request);
    json.add("overloaded", pools.overloaded);
}

}  // namespace

void write_load(JsonText& json, const serving::Traffic& traffic, const serving::Answer& answer) {
    const serving::Metrics& metrics = answer.metrics;
    json.add("kind", name_of(traffic.load.kind));
    json.add("value", traffic.load.value);
    json.add("replicas", answer.replicas);
    json.add("pool_bytes", answer.pool_bytes);
    json.object("replica", [&] {
        write_steady(json, "limit", answer.limit);
        write_steady(json, "attainable", answer.attainable);
        write_steady(json, "expected", answer.expected);
    });
    json.add("output_tokens_per_s", metrics.output_tokens_per_second);
    json.add("total_tokens_per_s", metrics.total_tokens_per_second);
    json.add("requests_per_s", metrics.requests_per_second);
    json.add("output_tokens_per_s_per_user", metrics.output_tokens_per_second_per_user);
    json.add("output_tokens_per_s_per_device", metrics.output_tokens_per_second_per_device);
    json.add("mfu", metrics.mfu);
    json.add("mbu", metrics.mbu);
    json.add("joules_per_output_token", metrics.joules_per_output_token);
    json.add("cost_per_million_output_tokens", metrics.price_per_million_output_tokens);
    json.add("cost_per_million_tokens", metrics.price_per_million_tokens);
    if (answer.simulated) json.object("simulated", [&] { write_simulated(json, *answer.simulated); });
    if (answer.pools) json.object("pools", [&] { write_pools(json, *answer.pools); });
    json.add("assumptions", answer.assumptions);
}

}  // namespace roofline::io
