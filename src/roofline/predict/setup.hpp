// What is asked before anything is counted: a model, its number types, a device, a workload, a deployment. A plain
// value: options fill it, `advise`, `sweep` and `plan` change it, and `realise` turns it into a scenario that can be
// priced.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::predict {

/// Number types that were asked for; empty where the checkpoint decides.
struct TypeChoice {
    const Format* weights = nullptr;
    const Format* activations = nullptr;
    const Format* kv = nullptr;

    bool operator==(const TypeChoice&) const = default;
};

struct Setup {
    std::string model_name;
    std::string model_title;
    std::shared_ptr<const model::Architecture> architecture;  // empty: only the number of parameters is known
    double parameters = 0.0;
    std::shared_ptr<const model::TypePlan> checkpoint;  // types as the checkpoint has them
    std::string checkpoint_summary;                     // "bf16", "fp8_block + bf16"
    model::ActiveCounts active_counts = model::ActiveCounts::everything;
    TypeChoice types;
    model::LoweringOptions lowering;  // with the deployment
    Device device;
    Workload workload;
    Execution execution;
    std::optional<MemoryOptions> memory;  // an engine that allocates it; its ranks follow from the deployment
    std::shared_ptr<const Setup> draft;   // a model that guesses ahead for this one, in the memory of the same devices;
                                          // of its setup the model and its types count
    std::vector<std::string> notes;

    const model::Deployment& deployment() const { return lowering.deployment; }
    model::Deployment& deployment() { return lowering.deployment; }
};

/// The types a model runs in: the checkpoint's, changed as asked.
model::TypePlan plan_types(const Setup& setup);
model::TypePlan plan_types(const Setup& setup, const TypeChoice& choice);

/// The deployment as it will be run: what was not said of it is the engine's default.
model::Deployment deployment_as_run(const Setup& setup);

/// The draft by itself: on the same devices, cut in the same way, for the same sequences. Layers that predict (F49) lie
/// on the last stage of a pipeline, in the types of their model.
Setup draft_of(const Setup& setup);

/// The model's own layers that predict further tokens, as its draft; refused where it has none.
Result<std::shared_ptr<const Setup>> own_draft(const Setup& setup);

/// What the parallelism asked for makes of the model: refused where the model cannot be cut so.
Result<Scenario> realise(const Setup& setup);

/// Whether it would fit, lowered another way.
bool would_fit(const Scenario& scenario, const Candidate& candidate);

/// The same model in narrower types and over twice, four times ... as many devices, until it fits, lowered again: exact
/// answers to what would make it fit (Scenario::remedies). `scenario` is what the setup was realised as. Costs a
/// lowering each, so only worth asking where it does not fit.
std::vector<Candidate> other_ways(const Setup& setup, const Scenario& scenario);

}  // namespace roofline::predict
