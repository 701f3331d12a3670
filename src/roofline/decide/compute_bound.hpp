// The batch from which decoding is held back by compute and no longer by memory: beyond it a larger batch only waits.
#pragma once

#include <optional>

#include "roofline/decide/candidate.hpp"

namespace roofline::decide {

struct ComputeBoundBatch {
    std::optional<double> batch;    // empty: none, however large: caches grow with the batch
    std::optional<double> largest;  // that fits; empty: memory does not limit it
    bool fits() const { return batch && (!largest || *batch <= *largest); }
};

/// D5, at datasheet peaks.
Result<ComputeBoundBatch> compute_bound_batch(const Candidate& candidate);

}  // namespace roofline::decide
