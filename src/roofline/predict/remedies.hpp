// F46: what would make it fit. Each answer is one change alone, tried by the same arithmetic that said it does not fit.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/device.hpp"
#include "roofline/model/operators.hpp"
#include "roofline/predict/engine.hpp"
#include "roofline/predict/workload.hpp"

namespace roofline::predict {

struct Remedy {
    enum class Kind {
        weights,
        kv,
        batch,
        context,
        sequences,
        utilisation,
        devices,
        offload_weights,
        offload_kv,
        other
    };

    Kind kind = Kind::other;
    std::string change;  // for people: "weights in fp8"
    double value = 0.0;  // bits, sequences, tokens, a fraction, devices; of an offload, bytes that stay on the host
    bool approximate = false;      // divided on paper, not lowered again
    Bytes moved{};                 // offload: over the host link in every step
    std::optional<Seconds> added;  // and what that adds to a step; empty: the link's bandwidth is not known
};

std::string_view name(Remedy::Kind kind);

/// The same model lowered another way: in other types, or shared out over more devices.
struct Candidate {
    Remedy::Kind kind = Remedy::Kind::other;
    std::string change;
    double value = 0.0;
    model::Lowered lowered;
    double ranks = 1.0;
};

struct FitQuestion {
    const model::Lowered& lowered;
    const Device& device;
    const Workload& workload;
    double longest_known = 0.0;
    const std::optional<MemoryOptions>& options;
    double kv_bits = 0.0;    // of a cached element as lowered; 0: not known
    double ranks = 1.0;      // devices in all
    double shared_by = 1.0;  // copies of the model among which the batch was divided already
};

/// Those changes that make it fit, the least invasive first. Candidates are exact and replace what would be divided on
/// paper for the same kind of change.
std::vector<Remedy> what_would_fit(const FitQuestion& question, std::span<const Candidate> candidates = {});

/// The weights of the layers in this many bits, where they have more now; tables, norms and routers stay.
model::Lowered with_weight_bits(const model::Lowered& lowered, double bits);
model::Lowered with_kv_bits(const model::Lowered& lowered, double from, double to);
/// One rank of several: matrices and experts in equal parts, caches as far as there are KV heads to share, the rest
/// whole.
model::Lowered shared_out(const model::Lowered& lowered, double ranks);

}  // namespace roofline::predict
