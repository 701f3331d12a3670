// Does it fit? Answered before time: a batch that does not fit has no latency.
#pragma once

#include <optional>

#include "roofline/core/device.hpp"
#include "roofline/model/operators.hpp"
#include "roofline/predict/workload.hpp"

namespace roofline::predict {

struct Fit {
    Bytes weights{};
    Bytes kv{};                     // keys, values and states of the whole batch at its longest context
    Bytes activations{};            // of the largest step
    std::optional<Bytes> capacity;  // empty: the device's memory size is not fixed (a CPU's DIMMs)
    bool fits = true;
    std::optional<double> largest_batch;    // at this context; empty: memory does not limit it
    std::optional<double> longest_context;  // at this batch; likewise

    Bytes total() const { return weights + kv + activations; }
};

/// F30. `longest_known` caps the context by what the model was made for; 0: unknown.
Fit fit(const model::Lowered& lowered, const Device& device, const Workload& workload, double longest_known);

}  // namespace roofline::predict
