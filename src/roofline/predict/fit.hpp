// Does it fit? Answered before time: a batch that does not fit has no latency.
#pragma once

#include <optional>
#include <vector>

#include "roofline/core/device.hpp"
#include "roofline/model/operators.hpp"
#include "roofline/predict/memory.hpp"
#include "roofline/predict/remedies.hpp"
#include "roofline/predict/workload.hpp"

namespace roofline::predict {

struct Fit {
    Bytes weights{};
    Bytes kv{};                             // keys, values and states of the whole batch at its longest context
    Bytes activations{};                    // of the largest step
    Bytes draft_weights{};                  // what of the weights is of a model that guesses
    Bytes draft_kv{};                       // and of the keys and values
    std::optional<Bytes> capacity;          // empty: the device's memory size is not fixed (a CPU's DIMMs)
    bool fits = true;                       // under the engine's rules where one is named
    std::optional<double> largest_batch;    // at this context; empty: memory does not limit it
    std::optional<double> longest_context;  // at this batch; likewise
    std::optional<EngineMemory> engine;     // as the engine named allocates it
    std::vector<Remedy> remedies;           // F46: where it does not fit, single changes that would make it

    Bytes total() const { return weights + kv + activations; }
    Bytes shortfall() const;
};

/// F30. `longest_known` caps the context by what the model was made for; 0: unknown. With an engine, F40 to F45 decide.
Fit fit(const model::Lowered& lowered, const Device& device, const Workload& workload, double longest_known,
        const std::optional<MemoryOptions>& options = std::nullopt);

}  // namespace roofline::predict
