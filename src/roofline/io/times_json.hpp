// The times of an operator or a stage as every report writes them, in seconds.
#pragma once

#include "roofline/core/record.hpp"
#include "roofline/io/fields.hpp"

namespace roofline::io {

/// { "limit", "attainable", "expected", "expected_low", "expected_high", "measured"? }
OrderedJson times_json(const Times& times);

}  // namespace roofline::io
