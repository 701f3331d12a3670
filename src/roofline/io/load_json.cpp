#include "roofline/io/load_json.hpp"

#include "roofline/io/report_json.hpp"

namespace roofline::io {
namespace {

OrderedJson steady_json(const serving::Steady& steady) {
    return {{"output_tokens_per_s", steady.flow.output_tokens},
            {"prompt_tokens_per_s", steady.flow.prompt_tokens},
            {"requests_per_s", steady.flow.requests},
            {"capacity_requests_per_s", finite(steady.capacity)},
            {"ttft_s", finite(steady.ttft)},
            {"tpot_s", finite(steady.tpot)},
            {"itl_s", finite(steady.itl)},
            {"request_s", finite(steady.request)},
            {"running", steady.running},
            {"held_back_by", serving::name(steady.limit)},
            {"overloaded", steady.overloaded}};
}

OrderedJson percentiles_json(const std::optional<serving::Percentiles>& found) {
    if (!found) return nullptr;
    return {{"mean", finite(found->mean)},
            {"p50", finite(found->p50)},
            {"p90", finite(found->p90)},
            {"p99", finite(found->p99)}};
}

OrderedJson optional_json(const std::optional<double>& value) {
    return value ? finite(*value) : OrderedJson(nullptr);
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

}  // namespace

OrderedJson load_json(const serving::Traffic& traffic, const serving::Answer& answer) {
    const serving::Metrics& metrics = answer.metrics;
    OrderedJson json = {{"kind", name_of(traffic.load.kind)},
                        {"value", traffic.load.value},
                        {"replicas", answer.replicas},
                        {"pool_bytes", finite(answer.pool_bytes)},
                        {"replica",
                         {{"limit", steady_json(answer.limit)},
                          {"attainable", steady_json(answer.attainable)},
                          {"expected", steady_json(answer.expected)}}},
                        {"output_tokens_per_s", metrics.output_tokens_per_second},
                        {"total_tokens_per_s", metrics.total_tokens_per_second},
                        {"requests_per_s", metrics.requests_per_second},
                        {"output_tokens_per_s_per_user", finite(metrics.output_tokens_per_second_per_user)},
                        {"output_tokens_per_s_per_device", metrics.output_tokens_per_second_per_device},
                        {"mfu", optional_json(metrics.mfu)},
                        {"mbu", optional_json(metrics.mbu)},
                        {"joules_per_output_token", optional_json(metrics.joules_per_output_token)},
                        {"cost_per_million_output_tokens", optional_json(metrics.price_per_million_output_tokens)},
                        {"cost_per_million_tokens", optional_json(metrics.price_per_million_tokens)}};
    if (answer.simulated) {
        const serving::Outcome& outcome = *answer.simulated;
        json["simulated"] = {{"requests", outcome.requests},
                             {"seconds", outcome.seconds},
                             {"output_tokens_per_s", outcome.flow.output_tokens},
                             {"requests_per_s", outcome.flow.requests},
                             {"preemptions_per_request", outcome.flow.preemptions},
                             {"overloaded", outcome.overloaded},
                             {"ttft_s", percentiles_json(outcome.ttft)},
                             {"tpot_s", percentiles_json(outcome.tpot)},
                             {"itl_s", percentiles_json(outcome.itl)},
                             {"request_s", percentiles_json(outcome.request)}};
    }
    if (answer.pools) {
        const serving::Disaggregated& pools = *answer.pools;
        json["pools"] = {{"narrowest", serving::name(pools.narrowest)},
                         {"capacity_requests_per_s", finite(pools.capacity)},
                         {"prefill_requests_per_s", finite(pools.prefill_capacity)},
                         {"link_requests_per_s", finite(pools.link_capacity)},
                         {"decode_requests_per_s", finite(pools.decode_capacity)},
                         {"output_tokens_per_s", finite(pools.output_tokens_per_second)},
                         {"transfer_bytes", pools.transfer_bytes},
                         {"transfer_s", finite(pools.transfer_seconds)},
                         {"ttft_s", finite(pools.ttft)},
                         {"tpot_s", finite(pools.tpot)},
                         {"request_s", finite(pools.request)},
                         {"overloaded", pools.overloaded}};
    }
    json["assumptions"] = answer.assumptions;
    return json;
}

}  // namespace roofline::io
