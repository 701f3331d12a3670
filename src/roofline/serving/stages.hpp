// The stages of a pipeline and when each of them is free: the one place that says how steps wait for each other. The
// simulation and both ways to follow a pipeline in the closed form pass their steps through this.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "roofline/serving/replica.hpp"

namespace roofline::serving {

/// S8. One stage is a replica without a pipeline.
class Stages {
  public:
    explicit Stages(std::size_t count) : free_(count, 0.0) {}

    std::size_t count() const { return free_.size(); }
    /// When the first stage can take a step.
    double free() const { return free_.front(); }

    /// A step that can start at `time` goes through all stages, each behind the step before. When it is through.
    double pass(const StepCost& cost, double time) {
        const auto stages = static_cast<double>(free_.size());
        const double longest = slowest(cost);
        const double others = stages > 1.0 ? (cost.latency - longest) / (stages - 1.0) : 0.0;
        for (std::size_t stage = 0; stage < free_.size(); ++stage) {
            time = std::max(time, free_[stage]) + (stage == 0 ? longest : others);
            free_[stage] = time;
        }
        busy_ += longest;
        return time;
    }
    /// Seconds of a step on the slowest stage.
    double slowest(const StepCost& cost) const {
        return std::clamp(cost.interval, cost.latency / static_cast<double>(free_.size()), cost.latency);
    }
    /// So much time goes by in the same way; the slowest stage works for `busy` of it.
    void skip(double seconds, double busy) {
        for (double& free : free_) free += seconds;
        busy_ += busy;
    }
    /// Seconds that the slowest stage has worked, since they were last forgotten.
    double busy() const { return busy_; }
    void forget_busy() { busy_ = 0.0; }

  private:
    std::vector<double> free_;
    double busy_ = 0.0;
};

}  // namespace roofline::serving
