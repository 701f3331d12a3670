// The answer to `predict`: the scenario, whether it fits, every operator of every stage, what a request sees. A plain
// value; tables, JSON and charts are made of it elsewhere.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "roofline/core/device.hpp"
#include "roofline/core/record.hpp"
#include "roofline/model/deployment.hpp"
#include "roofline/model/operators.hpp"
#include "roofline/predict/fit.hpp"
#include "roofline/predict/prepared.hpp"
#include "roofline/predict/replica.hpp"
#include "roofline/predict/workload.hpp"

namespace roofline::predict {

/// Layers of a pipeline that one device holds, and how many stages are alike.
struct PipelineStage {
    model::Lowered lowered;
    double count = 1.0;
};

/// What is predicted: a model already lowered under its types, on a device, for a workload.
struct Scenario {
    std::string model_name;
    std::string model_title;
    std::string weight_types;  // "bf16", "fp8_block + bf16"
    std::string activation_type;
    std::string kv_type;
    double longest_context = 0.0;
    double active_parameters = 0.0;                   // as the model's publisher counts them
    std::optional<model::ParameterCount> parameters;  // of the whole model; empty: what was lowered is all of it
    std::optional<double> kv_bytes_per_token;         // likewise
    model::Lowered lowered;                           // the operators of one device, of all pipeline stages in a row
    std::vector<PipelineStage> stages;                // where there are several
    model::Deployment deployment;
    Device device;
    Workload workload;
    Execution execution;
    std::optional<MemoryOptions> memory;  // an engine that allocates it; empty: what the model needs
    std::optional<double> price;          // of a device for an hour, in whatever currency
    std::vector<Candidate> remedies;      // other ways to lower it, tried where it does not fit
    std::vector<std::string> notes;
};

/// How much of the machine something uses: its datasheet time on each resource over its expected time. For a stage
/// these are what people call MFU and MBU.
struct Use {
    double of_peak = 0.0;
    double of_bandwidth = 0.0;
};

struct GroupShare {
    Group group = Group::other;
    Seconds limit{};
    Seconds attainable{};
    Seconds expected{};
    Seconds computing{};  // at datasheet peaks
    Flops flops{};
    Bytes memory{};
    FlopsPerByte intensity{};
    Bound bound = Bound::memory;
    Use use;
    double share = 0.0;  // of the stage's expected time
};

struct StageReport {
    StageKind kind = StageKind::decode;
    double batch = 1.0;
    double tokens = 1.0;         // new tokens in the step, over all sequences
    double micro_batches = 1.0;  // of a pipeline; records are those of one
    double context = 0.0;
    StageTime totals;
    Times times;
    FlopsPerByte ridge{};  // of the engine that does most of the flops
    Use use;
    std::vector<Use> uses;  // one per record
    std::vector<Record> records;
    std::vector<OperatorTime> details;   // one per record
    std::vector<std::size_t> operators;  // index of each record's operator in the lowered model
    std::vector<Choice> choices;         // the kernel class and constants behind each record's expected time
    std::vector<GroupShare> groups;
    model::FeatureValues features{};

    double tokens_per_second(Seconds time) const { return time.value > 0.0 ? produced() / time.value : 0.0; }
    /// Prefill is counted in prompt tokens, decode in written ones.
    double produced() const { return kind == StageKind::decode ? batch : tokens; }
};

/// F31: what a million tokens cost while the devices do nothing but this, batch after batch.
struct Money {
    std::optional<double> prompt;  // of prompts; empty where they are computed beside other work
    std::optional<double> decode;  // written by decode steps alone; empty where there are none
    std::optional<double> output;  // written, prompts included
};

struct RequestMetrics {
    Times ttft;
    Times tpot;  // mean over the written tokens, the context growing
    Times request;
    std::optional<double> joules_per_token;  // at the device's rated power
    std::optional<Money> money;              // where a price was given
};

/// "h200-sxm", "hopper, transferred", "assumed": how much of the expected time rests on which source.
struct CalibrationShare {
    std::string source;
    double share = 0.0;
};

struct Report {
    Fit fit;
    std::vector<StageReport> stages;
    RequestMetrics metrics;
    model::ParameterCount parameters;
    double kv_bytes_per_token = 0.0;
    bool measured_ceilings = false;
    std::vector<CalibrationShare> calibration;  // where the constants come from, most of the time first
    std::vector<std::string> notes;
};

/// Whether a fit also says what would make it one: that takes far longer, and who asks about many points has no use for
/// it.
enum class Advice { given, left_out };

/// Of the fullest device.
Fit fit_deployment(const Scenario& scenario, Advice advice = Advice::given);

/// One step of the scenario's workload as a whole, for those who ask about many: the totals of its StageReport. `times`
/// has room for replica.whole().size() entries.
StageTime time_stage(const Scenario& scenario, const Replica& replica, StageKind kind, std::span<OperatorTime> times);

/// What a request of the scenario's workload sees. Prices every step it takes.
RequestMetrics request_metrics(const Scenario& scenario, const Replica& replica);

Report predict(const Scenario& scenario);

}  // namespace roofline::predict
