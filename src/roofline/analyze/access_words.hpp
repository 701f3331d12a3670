// What hardware counters mean, in words: how a kernel touches memory, and how the profiler itself changed what ran.
#pragma once

#include <string>
#include <vector>

#include "roofline/analyze/counters.hpp"

namespace roofline::analyze {

/// Whether clocks were locked and caches flushed, as the launches show, and what that does to the percentages.
std::vector<std::string> clock_and_cache_words(const std::vector<Counters>& launches);

/// The pattern of one kernel's accesses: one line, or none where nothing was counted.
std::vector<std::string> access_words(const Record& record, const Counters& counters);

/// Adds what is wrong with one kernel and can be changed.
void add_diagnoses(Analysis& analysis, const std::string& stage, Seconds stage_time, const Record& record,
                   const Counters& counters);

}  // namespace roofline::analyze
