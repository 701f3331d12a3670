// What a row of a sweep can say about its point, beside the values of the axes. docs/sweep.md explains each.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"

namespace roofline::ask {

/// What a column is computed from. Columns of one source stand together and are computed together.
enum class Source { deployment, fit, prefill, mixed, decode, request, load, problem };

enum class Unit { seconds, tokens_per_second, number, count, bytes, flops, flops_per_byte, flag, word };

enum class Field {
    devices,
    fits,
    max_batch,
    max_context,
    memory_bytes,
    limit,
    attainable,
    expected,
    low,
    high,
    rate,
    device_rate,
    bound,
    flops,
    bytes,
    intensity,
    ttft_limit,
    ttft_attainable,
    ttft_expected,
    tpot_limit,
    tpot_attainable,
    tpot_expected,
    request_limit,
    request_attainable,
    request_expected,
    money_output,
    money_decode,
    money_prompt,
    load_requests,
    load_tokens,
    load_device_tokens,
    load_ttft,
    load_tpot,
    load_request,
    load_running,
    load_capacity,
    load_ttft_p99,
    load_tpot_p99,
    load_money,
    load_bound,
    load_overloaded,
    problem
};

struct MetricColumn {
    std::string name;  // ends in its unit: decode_expected_s
    Source source = Source::decode;
    Field field = Field::expected;
    Unit unit = Unit::seconds;
};

/// All there are, in the order they are written in.
std::span<const MetricColumn> all_metrics();

/// Names, beginnings of names up to an underscore (`decode`, `decode_expected`), or `all`. The problem is always told.
Result<std::vector<MetricColumn>> choose_metrics(const std::string& list);

}  // namespace roofline::ask
