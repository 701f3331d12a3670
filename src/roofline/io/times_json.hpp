// The times of an operator or a stage as every report writes them, in seconds.
#pragma once

#include "roofline/core/record.hpp"
#include "roofline/io/fields.hpp"
#include "roofline/io/json_text.hpp"

namespace roofline::io {

/// { "limit", "attainable", "expected", "expected_low", "expected_high", "measured"? }
OrderedJson times_json(const Times& times);
void write_times(JsonText& json, std::string_view key, const Times& times);

}  // namespace roofline::io
