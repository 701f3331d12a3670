// What a machine has, as something that can be doubled: rates, bandwidths, capacities, and the time it loses at every
// launch.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "roofline/decide/candidate.hpp"

namespace roofline::decide {

enum class ResourceKind { compute, bandwidth, capacity, launch, start_up, link_latency };

struct Resource {
    ResourceKind kind = ResourceKind::compute;
    std::string name;              // "memory.bandwidth": as --set spells it, where it can
    std::string title;             // "HBM3 bandwidth"
    std::optional<DType> type;     // of compute; empty: all of it
    Level level = Level::memory;   // of a bandwidth or capacity
    std::optional<double> amount;  // in base units, where it is a figure of the device
};

/// All that the device has; of its compute, the types that do the work.
std::vector<Resource> resources_of(const Candidate& candidate, std::span<const DType> types);

/// So many times as much of it; of time lost, so many times less.
void scale(Candidate& candidate, const Resource& resource, double factor);

}  // namespace roofline::decide
