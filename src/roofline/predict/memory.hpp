// F42 to F45: what an engine leaves for caches on one device, and what that holds. Answers for one rank: the lowered
// model is what this device runs, however the whole was shared out.
#pragma once

#include <optional>
#include <string>

#include "roofline/core/device.hpp"
#include "roofline/model/operators.hpp"
#include "roofline/predict/engine.hpp"
#include "roofline/predict/pages.hpp"
#include "roofline/predict/workload.hpp"

namespace roofline::predict {

struct EngineMemory {
    std::string engine;
    Bytes reported{};             // memory of the device as programs see it
    bool reported_known = false;  // false: the datasheet's capacity stands in
    double utilisation = 0.0;
    Bytes budget{};  // what the engine allows itself, weights included
    Bytes weights{};
    Bytes activations{};             // F43: of the largest step, as a trial run measures them
    bool activations_inside = true;  // they come out of the budget; false: they live in what it leaves
    Bytes overhead{};                // context, libraries, collectives, graphs: what of them counts against the budget
    Bytes pool{};  // F42: what is left for caches; negative: so much is missing before the first token

    double step_tokens = 0.0;  // of the largest step
    double sequences = 0.0;    // that the engine runs at once, at most
    double longest = 0.0;      // context it was started for
    double here = 1.0;         // share of the caches that lies on the device, not in the host's memory
    double in_flight = 0.0;    // tokens whose blocks a window has not given back

    PagedCache cache;
    double pool_blocks = 0.0;  // of the first pool
    double pool_tokens = 0.0;  // F44: as the engine prints it
    double concurrency = 0.0;  // sequences of the longest length

    Bytes allocated{};  // F41: of the workload's batch, in whole blocks
    Bytes needed{};     // pool that would hold them
    bool fits = false;
    Bytes shortfall{};  // 0: it fits
    double largest_batch = 0.0;
    std::optional<double> longest_context;  // at this batch; empty: memory does not limit it
};

/// F41: bytes of one sequence at a context under an engine's rules.
double allocated_bytes(const model::Lowered& lowered, const MemoryOptions& options, double context);

/// F42: bytes of the weights as the engine lays them out.
double loaded_weights(const model::Lowered& lowered, const EngineRules& rules);

/// F43: what a trial run of the largest step needs beside the weights.
double trial_activations(const model::Lowered& lowered, const EngineRules& rules, double step_tokens, double sequences);

/// Empty where the device's memory size is not known. `longest_known` is the context the model was made for; 0:
/// unknown.
std::optional<EngineMemory> engine_memory(const model::Lowered& lowered, const Device& device, const Workload& workload,
                                          double longest_known, const MemoryOptions& options);

/// The same with a pool that is given, e.g. from a log.
EngineMemory with_pool(EngineMemory memory, const EngineRules& rules, Bytes pool, double batch, double context);

}  // namespace roofline::predict
