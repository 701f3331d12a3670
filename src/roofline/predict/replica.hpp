// One replica of a deployment, ready to be priced: its devices work in step, so one device of each pipeline stage
// stands for all. On a single device this is its Prepared model and nothing more.
#pragma once

#include <span>
#include <vector>

#include "roofline/model/deployment.hpp"
#include "roofline/predict/prepared.hpp"

namespace roofline::predict {

struct Scenario;

/// A step through a pipeline. `pass`: from the first stage to the last; `interval`: until the next may follow.
struct PipelineTime {
    StageTime pass;
    StageTime interval;
};

/// How a step through a pipeline is meant: `alone`, until its last micro-batch is out; `steady`, one of many that
/// follow each other, so that all stages are busy.
enum class Pace { alone, steady };

class Replica {
  public:
    explicit Replica(const Scenario& scenario);

    const Prepared& whole() const { return whole_; }
    const model::Deployment& deployment() const { return deployment_; }

    /// What one device is given of a step of the whole replica: the sequences of its attention group, and of these one
    /// micro-batch. The busiest device counts.
    model::Step on_device(std::span<const model::Sequences> step) const;
    double micro_batches(std::span<const model::Sequences> step) const;

    /// Prices a step of the replica. `times` has room for whole().size() entries: the operators of one micro-batch on
    /// one device, all stages. F47.
    StageTime evaluate(std::span<const model::Sequences> step, std::span<OperatorTime> times, Pace pace) const;

    /// The same for one micro-batch that is already a device's.
    PipelineTime micro_batch(std::span<const model::Sequences> part, std::span<OperatorTime> times) const;

  private:
    StageTime one_pass(std::span<const model::Sequences> part, std::span<OperatorTime> times) const;

    model::Deployment deployment_;
    Prepared whole_;
    std::vector<Prepared> stages_;  // of a pipeline, those that differ
    std::size_t most_operators_ = 0;
};

}  // namespace roofline::predict
