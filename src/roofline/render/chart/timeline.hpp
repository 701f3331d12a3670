// One step of a trace: what ran when, on which lane, and when nothing did.
#pragma once

#include <string>
#include <vector>

#include "roofline/core/record.hpp"

namespace roofline::render::chart {

struct TimelineEvent {
    std::string name;
    Group group = Group::other;
    double start = 0.0;  // seconds, of any clock
    double end = 0.0;
    int lane = 0;  // stream or thread
};

struct TimelineLane {
    std::string name;
};

/// As SVG. Time in which no lane does anything is shaded and summed.
std::string timeline_chart(std::vector<TimelineEvent> events, const std::vector<TimelineLane>& lanes,
                           const std::string& title);

/// Seconds between the first start and the last end in which nothing runs.
double idle_time(std::vector<TimelineEvent> events);

}  // namespace roofline::render::chart
