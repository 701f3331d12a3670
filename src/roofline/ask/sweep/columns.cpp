#include "roofline/ask/sweep/columns.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/ask/sweep/ranges.hpp"
#include "roofline/io/names.hpp"
#include "roofline/io/tensors.hpp"

namespace roofline::ask {
namespace {

std::vector<MetricColumn> list_metrics() {
    std::vector<MetricColumn> list = {
        {"devices_used", Source::deployment, Field::devices, Unit::count},
        {"fits", Source::fit, Field::fits, Unit::flag},
        {"max_batch", Source::fit, Field::max_batch, Unit::count},
        {"max_context", Source::fit, Field::max_context, Unit::count},
        {"memory_bytes", Source::fit, Field::memory_bytes, Unit::bytes},
    };
    const std::pair<const char*, Source> stages[] = {
        {"prefill", Source::prefill}, {"mixed", Source::mixed}, {"decode", Source::decode}};
    for (const auto& [stage, source] : stages) {
        const auto add = [&](const char* what, Field field, Unit unit) {
            list.push_back({fmt::format("{}_{}", stage, what), source, field, unit});
        };
        add("limit_s", Field::limit, Unit::seconds);
        add("attainable_s", Field::attainable, Unit::seconds);
        add("expected_s", Field::expected, Unit::seconds);
        add("expected_low_s", Field::low, Unit::seconds);
        add("expected_high_s", Field::high, Unit::seconds);
        add("tokens_per_s", Field::rate, Unit::tokens_per_second);
        add("tokens_per_s_per_device", Field::device_rate, Unit::tokens_per_second);
        add("bound", Field::bound, Unit::word);
        add("flops", Field::flops, Unit::flops);
        add("memory_bytes", Field::bytes, Unit::bytes);
        add("flops_per_byte", Field::intensity, Unit::flops_per_byte);
    }
    const auto add = [&](const char* name, Field field) {
        list.push_back({name, Source::request, field, Unit::seconds});
    };
    add("ttft_limit_s", Field::ttft_limit);
    add("ttft_attainable_s", Field::ttft_attainable);
    add("ttft_expected_s", Field::ttft_expected);
    add("tpot_limit_s", Field::tpot_limit);
    add("tpot_attainable_s", Field::tpot_attainable);
    add("tpot_expected_s", Field::tpot_expected);
    add("request_limit_s", Field::request_limit);
    add("request_attainable_s", Field::request_attainable);
    add("request_expected_s", Field::request_expected);
    list.push_back({"cost_per_million_tokens", Source::request, Field::money_output, Unit::number});
    list.push_back({"cost_per_million_decoded_tokens", Source::request, Field::money_decode, Unit::number});
    list.push_back({"cost_per_million_prompt_tokens", Source::request, Field::money_prompt, Unit::number});
    const auto load = [&](const char* name, Field field, Unit unit) {
        list.push_back({name, Source::load, field, unit});
    };
    load("load_requests_per_s", Field::load_requests, Unit::number);
    load("load_output_tokens_per_s", Field::load_tokens, Unit::tokens_per_second);
    load("load_output_tokens_per_s_per_device", Field::load_device_tokens, Unit::tokens_per_second);
    load("load_ttft_s", Field::load_ttft, Unit::seconds);
    load("load_tpot_s", Field::load_tpot, Unit::seconds);
    load("load_request_s", Field::load_request, Unit::seconds);
    load("load_running", Field::load_running, Unit::number);
    load("load_capacity_requests_per_s", Field::load_capacity, Unit::number);
    load("load_ttft_p99_s", Field::load_ttft_p99, Unit::seconds);
    load("load_tpot_p99_s", Field::load_tpot_p99, Unit::seconds);
    load("load_cost_per_million_output_tokens", Field::load_money, Unit::number);
    load("load_bound", Field::load_bound, Unit::word);
    load("load_overloaded", Field::load_overloaded, Unit::flag);
    list.push_back({"problem", Source::problem, Field::problem, Unit::word});
    return list;
}

/// A whole name means that column alone, even where others begin with it.
bool is_meant(const std::string& asked, const std::string& name) {
    const auto metrics = all_metrics();
    if (std::any_of(metrics.begin(), metrics.end(), [&](const auto& known) { return known.name == asked; }))
        return name == asked;
    return asked == "all" || name.starts_with(asked + "_");
}

}  // namespace

std::span<const MetricColumn> all_metrics() {
    static const std::vector<MetricColumn> list = list_metrics();
    return list;
}

Result<std::vector<MetricColumn>> choose_metrics(const std::string& list) {
    const auto asked = parse_list("--metrics", list);
    if (!asked) return std::unexpected(asked.error());
    for (const std::string& one : *asked) {
        const auto metrics = all_metrics();
        if (std::any_of(metrics.begin(), metrics.end(), [&](const auto& known) { return is_meant(one, known.name); }))
            continue;
        std::vector<std::string> names = {"all", "prefill", "decode", "mixed", "ttft", "tpot", "request", "load"};
        for (const MetricColumn& metric : metrics) names.push_back(metric.name);
        return fail(fmt::format("--metrics: found \"{}\", expected names of columns such as decode_expected_s, ttft{}",
                                io::printable(one), io::suggestion(one, names)));
    }
    std::vector<MetricColumn> chosen;
    for (const MetricColumn& metric : all_metrics()) {
        const bool meant = std::any_of(asked->begin(), asked->end(),
                                       [&](const std::string& one) { return is_meant(one, metric.name); });
        if (meant || metric.source == Source::problem) chosen.push_back(metric);
    }
    return chosen;
}

}  // namespace roofline::ask
