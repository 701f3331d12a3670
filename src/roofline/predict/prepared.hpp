// A lowered model on a device, ready to be priced for any step: no allocation, a handful of multiply-adds per operator.
// Sweeps and searches run on this, and so does everything else: there is one way to compute a time.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "roofline/core/roof.hpp"
#include "roofline/model/operators.hpp"
#include "roofline/predict/execution.hpp"

namespace roofline::predict {

/// One operator in one step. Totals over its count.
struct OperatorTime {
    double flops = 0.0;
    double memory_bytes = 0.0;
    double cache_bytes = 0.0;
    double weight_bytes = 0.0;  // part of memory_bytes
    double kv_bytes = 0.0;      // part of memory_bytes
    double peer_bytes = 0.0;    // sent to devices of the same node
    double network_bytes = 0.0;
    double host_bytes = 0.0;
    double intensity = 0.0;  // flops per byte of memory
    double limit = 0.0;      // seconds
    double attainable = 0.0;
    double expected = 0.0;
    Bound bound = Bound::memory;

    bool does_nothing() const {
        return flops == 0.0 && memory_bytes == 0.0 && cache_bytes == 0.0 && peer_bytes == 0.0 && network_bytes == 0.0 &&
               host_bytes == 0.0;
    }
};

struct StageTime {
    double flops = 0.0;
    double memory_bytes = 0.0;
    double cache_bytes = 0.0;
    double weight_bytes = 0.0;
    double kv_bytes = 0.0;
    double peer_bytes = 0.0;
    double network_bytes = 0.0;
    double host_bytes = 0.0;
    double streamed_bytes = 0.0;  // part of host_bytes: weights and caches that lie in the host's memory
    double intensity = 0.0;
    double limit = 0.0;       // F18: the busiest resource, as if everything overlapped
    double attainable = 0.0;  // F19: operators one after another, under measured ceilings
    double expected = 0.0;    // E9: kernel after kernel as they are really launched
    double expected_low = 0.0;
    double expected_high = 0.0;
    double launches = 0.0;         // kernels of the step
    double kernel_seconds = 0.0;   // what they come to one by one
    double written_seconds = 0.0;  // the part of it in kernels that every engine writes anew
    double communicating = 0.0;    // the part of it that is communication, whether it shows or not
    double attainable_communicating = 0.0;
    double compute_seconds = 0.0;  // of the busiest engine, at datasheet peaks
    double memory_seconds = 0.0;
    Bound bound = Bound::memory;

    /// Steps after one another: the five times add up.
    StageTime& operator+=(const StageTime& other) {
        limit += other.limit;
        attainable += other.attainable;
        expected += other.expected;
        expected_low += other.expected_low;
        expected_high += other.expected_high;
        return *this;
    }
    StageTime& operator*=(double factor) {
        limit *= factor;
        attainable *= factor;
        expected *= factor;
        expected_low *= factor;
        expected_high *= factor;
        return *this;
    }
};

/// Launches of a step that are alike.
struct Launch {
    const KernelClass* kernel_class = nullptr;
    Machine machine;
    Kernel kernel;
    Engine engine = Engine::matrix;
    DType type = DType::bf16;
    double count = 1.0;
};

/// The step as its class sees it: seconds at datasheet peaks stand for flops and bytes, so that all engines and types
/// add up, on a machine that does one of each a second.
Kernel step_kernel(const StageTime& stage);
Machine step_machine();

class Prepared {
  public:
    Prepared(const model::Lowered& lowered, const Device& device, const Execution& execution = {},
             double overlap = 0.0);

    std::size_t size() const { return operators_.size(); }

    /// The stream of what lies in the host's memory, shown behind the operators: it runs beside all of them.
    bool streams_from_host() const { return host_weights_ > 0.0 || host_kv_ > 0.0; }
    /// Of the last step that was evaluated: nothing but its host bytes and times.
    OperatorTime host_stream(const StageTime& stage) const;

    /// Prices a step. `times` has room for size() entries.
    StageTime evaluate(std::span<const model::Sequences> step, std::span<OperatorTime> times) const;

    /// The launches that a step's expected time is the sum of, its own cost included: what a fit to whole steps needs.
    /// Added to `into`, alike ones together; `times`: that many such steps.
    void list(std::span<const model::Sequences> step, double times, std::vector<Launch>& into) const;

    const Roofs& limit() const { return limit_; }
    const Roofs& attainable() const { return attainable_; }
    Engine engine(std::size_t op) const { return operators_[op].engine; }
    DType type(std::size_t op) const { return operators_[op].type; }
    bool priced(std::size_t op) const { return operators_[op].priced; }
    const Manner& manner(std::size_t op) const { return operators_[op].manner; }
    const Choice& step_choice() const { return step_; }
    model::FeatureValues features(std::span<const model::Sequences> step) const;

  private:
    struct Entry {
        model::Form flops;
        model::Form weights;
        model::Form kv;
        model::Form activations;
        double count = 1.0;
        model::Extent extent;
        Manner manner;
        double limit_flop_cost = 0.0;
        double attainable_flop_cost = 0.0;
        model::Form held;
        model::Form message;  // of a collective, and what of it crosses each link
        LinkTraffic traffic;
        Level slowest_link = Level::peer;
        bool communicates = false;
        bool may_lie_on_host = true;
        Engine engine = Engine::matrix;
        DType type = DType::bf16;
        bool priced = true;  // the device has a rate for it
    };
    Kernel kernel(const Entry& entry, const model::FeatureValues& values, const model::Sequences& group,
                  double tokens) const;
    void price_collective(const Entry& entry, const Kernel& kernel, model::Phase phase, OperatorTime& time) const;
    void expect_cut_by_sequences(std::span<const model::Sequences> step, const model::FeatureValues& all,
                                 std::span<OperatorTime> times) const;
    void expect_stage(StageTime& stage, std::span<OperatorTime> times, model::Phase phase) const;

    std::vector<Entry> operators_;
    std::vector<std::size_t> by_sequences_;  // operators whose time depends on how the work is cut into sequences
    std::vector<model::Feature> features_;
    Choice step_;  // how the sum of kernels becomes the time of a step
    Roofs limit_;
    Roofs attainable_;
    double cache_capacity_ = 0.0;
    Links links_;
    double overlap_ = 0.0;  // share of communication that hides behind computing
    double host_weights_ = 0.0;
    double host_kv_ = 0.0;
};

}  // namespace roofline::predict
