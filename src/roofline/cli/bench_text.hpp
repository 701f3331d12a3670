// What `bench` found, for people.
#pragma once

#include <string>

#include "roofline/bench/report.hpp"

namespace roofline::cli {

std::string bench_text(const bench::Run& run, bool markdown);

}  // namespace roofline::cli
