// The bridge from operators to expected times: which kernel class does an operator under a profile, with which
// constants, on which engine. Bound once per operator; evaluated without allocation.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>

#include "roofline/core/collective.hpp"
#include "roofline/core/roof.hpp"
#include "roofline/model/operators.hpp"
#include "roofline/predict/calibration.hpp"
#include "roofline/predict/profile.hpp"

namespace roofline::predict {

/// Under which software a model runs and what is known about it.
struct Execution {
    Profile profile;
    std::shared_ptr<const Calibration> calibration;  // empty: every class starts from its assumed constants

    /// Of the class, or of one that does its work in another way, where the profile's kernels are of that.
    Choice choose(const KernelClass& kernel_class, std::string_view type, const Device& device) const;
    /// What a whole step adds to its kernels belongs to the profile itself, then to the software it names.
    Choice choose_step(const Device& device) const;
};

/// Per direction and device, where a device's network link is not given: an adapter of 400 Gb/s for each.
inline constexpr BytesPerSecond assumed_network{50e9};

/// What bytes over links cost a deployment.
struct Links {
    Wiring wiring;
    bool network_assumed = false;
    double host_efficiency = 0.8;  // of the datasheet's bandwidth, for long copies: protocol and pinned buffers
    std::array<double, level_count> limit{};  // seconds per byte
    std::array<double, level_count> attainable{};
};
Links links_of(const Device& device);

/// Datasheet figures for one engine and type, as the formulas want them. The link is the slowest that `devices` of one
/// node need between them.
Machine machine_of(const Device& device, Engine engine, DType type, double devices = 2.0);

/// The launch that does a collective of `message_bytes`, on each of its ranks. Its class has the collective's name.
Kernel collective_kernel(Collective collective, const RankGroup& group, double message_bytes, const Device& device);
/// What its constants are told apart by: not what the bytes hold, but whether they pass the host.
std::string_view collective_type(const RankGroup& group, const Device& device);

/// How one operator is done: its kernels' class for prompts and for single tokens (they differ for attention only).
struct Manner {
    Choice prefill;
    Choice decode;
    Machine machine;
    Profile::Rule prefill_rule;
    Profile::Rule decode_rule;
    bool by_sequences = false;  // the time depends on how the work is cut into sequences: attention, recurrences

    const Choice& choice(model::Phase phase) const { return phase == model::Phase::prefill ? prefill : decode; }
    const Profile::Rule& rule(model::Phase phase) const {
        return phase == model::Phase::prefill ? prefill_rule : decode_rule;
    }

    /// One of the launches that do one instance of the operator: its share of the work.
    Kernel share(const Kernel& kernel, model::Phase phase) const;
    /// No launch of its own: it is done inside a neighbour, and costs what `share` does beyond `nothing`.
    bool rides_along(model::Phase phase) const { return rule(phase).launches < 1.0; }
    static Kernel nothing(const Kernel& kernel);
    /// Seconds of one instance of the operator, all its launches.
    double seconds(const Kernel& kernel, model::Phase phase) const;
};

Manner manner_of(const model::Operator& op, Engine engine, DType type, const Device& device,
                 const Execution& execution);

/// The launch that does an operator whose forms came to these values; `group` for patterns cut by sequences, `tokens`
/// of the whole step.
Kernel kernel_of(const model::Extent& extent, double flops, double weights, double cached, double activations,
                 const model::FeatureValues& values, const model::Sequences& group, double tokens);

}  // namespace roofline::predict
