// Units as profilers print them beside a metric: "Tbyte/s", "usecond", "Ghz", "inst/cycle", "%". Prefixes are powers of
// a thousand.
#pragma once

#include <string_view>

namespace roofline::analyze {

/// The factor to bytes, seconds, hertz, a fraction or a plain count; 1 for what is not known.
double metric_factor(std::string_view unit);

}  // namespace roofline::analyze
