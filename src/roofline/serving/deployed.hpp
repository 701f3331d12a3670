// A deployment as its scheduler sees it: predict prices its steps, and its memory rules say what a sequence takes of
// the pool. The one place where serving meets devices.
#pragma once

#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/predict/report.hpp"
#include "roofline/serving/replica.hpp"

namespace roofline::serving {

/// Which of its times a step is priced at.
enum class Price { limit, attainable, expected, low, high };  // the last two: the range of the expected

class Deployed final : public Replica {
  public:
    /// One replica of the scenario. What does not fit has an empty pool.
    Deployed(const predict::Scenario& scenario, Price price);

    /// A step of the replica: its sequences are shared by the attention groups; in a pipeline it is one micro-batch.
    StepCost price(std::span<const model::Sequences> step) const override;
    double sequence_bytes(double context) const override;

    const predict::Replica& priced() const { return replica_; }

  private:
    predict::Replica replica_;
    Price price_;
    double devices_of_a_stage_ = 1.0;
    double groups_ = 1.0;
    // Of the device that is worst off.
    model::Lowered fullest_;
    std::optional<predict::EngineMemory> engine_;
    mutable std::vector<predict::OperatorTime> times_;  // room to work in: a Deployed belongs to one thread
    mutable model::Step part_;
};

}  // namespace roofline::serving
