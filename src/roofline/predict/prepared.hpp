// A lowered model on a device, ready to be priced for any step: no allocation, a handful of multiply-adds per operator.
// Sweeps and searches run on this, and so does everything else: there is one way to compute a time.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "roofline/core/roof.hpp"
#include "roofline/model/operators.hpp"

namespace roofline::predict {

/// One operator in one step. Totals over its count.
struct OperatorTime {
    double flops = 0.0;
    double memory_bytes = 0.0;
    double cache_bytes = 0.0;
    double weight_bytes = 0.0;  // part of memory_bytes
    double kv_bytes = 0.0;      // part of memory_bytes
    double intensity = 0.0;     // flops per byte of memory
    double limit = 0.0;         // seconds
    double attainable = 0.0;
    Bound bound = Bound::memory;
};

struct StageTime {
    double flops = 0.0;
    double memory_bytes = 0.0;
    double cache_bytes = 0.0;
    double weight_bytes = 0.0;
    double kv_bytes = 0.0;
    double intensity = 0.0;
    double limit = 0.0;       // F18: the busiest resource, as if everything overlapped
    double attainable = 0.0;  // F19: operators one after another, under measured ceilings
    Bound bound = Bound::memory;
};

class Prepared {
  public:
    Prepared(const model::Lowered& lowered, const Device& device);

    std::size_t size() const { return operators_.size(); }

    /// Prices a step. `times` has room for size() entries.
    StageTime evaluate(std::span<const model::Sequences> step, std::span<OperatorTime> times) const;

    const Roofs& limit() const { return limit_; }
    const Roofs& attainable() const { return attainable_; }
    Engine engine(std::size_t op) const { return operators_[op].engine; }
    DType type(std::size_t op) const { return operators_[op].type; }
    bool priced(std::size_t op) const { return operators_[op].priced; }
    model::FeatureValues features(std::span<const model::Sequences> step) const;

  private:
    struct Entry {
        model::Form flops;
        model::Form weights;
        model::Form kv;
        model::Form activations;
        double count = 1.0;
        double limit_flop_cost = 0.0;
        double attainable_flop_cost = 0.0;
        Engine engine = Engine::matrix;
        DType type = DType::bf16;
        bool priced = true;  // the device has a rate for it
    };
    std::vector<Entry> operators_;
    std::vector<model::Feature> features_;
    Roofs limit_;
    Roofs attainable_;
    double cache_capacity_ = 0.0;
};

}  // namespace roofline::predict
