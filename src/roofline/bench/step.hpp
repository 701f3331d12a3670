// A whole decode step or prefill of a model on this machine's processors, with random weights and our own kernels:
// embedding, every layer, head, greedy sampling. Where memory is short, layers share weights; enough distinct ones stay
// that no cache holds them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "roofline/bench/backend.hpp"
#include "roofline/bench/shape.hpp"

namespace roofline::bench {

struct StepWork {
    bool prefill = false;
    std::int64_t batch = 1;
    std::int64_t tokens = 1;   // new ones of each sequence
    std::int64_t context = 1;  // entries in the cache at the end of the step
    bool expanded = false;     // latent entries: attention is over keys and values made of them, not over themselves
};

struct StepOutcome {
    std::string backend;
    std::string launch;      // CUDA: graph or eager; empty on a CPU
    Timing timing;           // of the whole step
    double attention = 0.0;  // seconds: projections, rotary, cache, core, output, their norms and residuals
    double ffn = 0.0;
    double other = 0.0;  // embedding, head, sampling
    std::int64_t layers = 0;
    std::int64_t layers_distinct = 0;
    std::string problem;
};

class CpuModel {
  public:
    /// `memory`: bytes it may take; layers share weights beyond that.
    static Result<std::unique_ptr<CpuModel>> make(const StackShape& shape, const StepWork& largest, std::int64_t memory,
                                                  Threads& threads);
    virtual ~CpuModel() = default;
    virtual std::int64_t layers() const = 0;
    virtual std::int64_t distinct_layers() const = 0;
    /// One step; returns the tokens it chose, one for each sequence.
    virtual const std::vector<std::int32_t>& step(const StepWork& work) = 0;
    /// Of the last step.
    virtual const std::vector<float>& logits() const = 0;
    struct Parts {
        double attention = 0.0;
        double ffn = 0.0;
        double other = 0.0;
    };
    virtual Parts last_parts() const = 0;

    // For who checks it: the weights as fp64 numbers, whichever way they lie. Every bias is `bias`, every gain 1.
    static constexpr float bias = 0.01F;
    enum class Matrix {
        qkv,
        q_down,
        q,
        kv_down,
        kv_up,
        index_query,
        index_key,
        out,
        router,
        up,
        down,
        shared_up,
        shared_down,
        shared_gate,
        latent_down,
        latent_up,
        in,
        select,
        step,
        taps,
        head
    };
    /// `layer` of those of a kind; `expert` where there are some.
    struct Place {
        Matrix which;
        std::size_t kind = 0;
        std::int64_t layer = 0;
        std::int64_t expert = 0;
    };
    virtual double weight(const Place& place, std::int64_t row, std::int64_t column) const = 0;
    virtual double embedding(std::int64_t token, std::int64_t column) const = 0;
    virtual double position(std::int64_t position, std::int64_t column) const = 0;
};

/// Bytes that the weights of a step and its cache take: of one layer of each kind, and of what is there once.
struct StepBytes {
    std::vector<std::int64_t> layers;
    std::int64_t outside = 0;
    std::int64_t working = 0;

    /// With one layer of each kind.
    std::int64_t least() const;
};
StepBytes step_bytes(const StackShape& shape, const StepWork& work);

StepOutcome run_step(CpuModel& model, const StepWork& work, const Pace& pace);

}  // namespace roofline::bench
