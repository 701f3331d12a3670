// One step being put together: sequences of like context go into one group, so that a step of hundreds of ragged
// sequences is priced as a handful. The simulation and the closed form price through this, and so by the same rule.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "roofline/serving/policy.hpp"

namespace roofline::serving {

/// S4: contexts of one power of two share a group at their mean. Chunks of prompts share one group that keeps their
/// tokens and their query-key pairs.
class StepPlan {
  public:
    void clear();
    /// `past`: tokens cached before the step.
    void decode(double count, double past);
    void chunk(double count, double tokens, double past, double logits);

    double decoding() const { return decoding_; }
    double tokens(const Policy& policy) const { return chunk_tokens_ + decoding_ * (policy.speculation.tokens + 1.0); }
    double chunk_tokens() const { return chunk_tokens_; }
    bool empty() const { return decoding_ == 0.0 && chunk_tokens_ == 0.0; }

    /// Padded to a captured size, with the draft's share and the host's.
    StepCost cost(const Replica& replica, const Policy& policy);

  private:
    std::array<double, 64> count_{};  // decoding, by the bits of past
    std::array<double, 64> past_{};
    std::size_t lowest_ = 64;
    std::size_t highest_ = 0;
    std::vector<model::Sequences> step_;
    double decoding_ = 0.0;
    double chunk_tokens_ = 0.0;
    double chunk_squares_ = 0.0;
    double chunk_past_ = 0.0;
    double chunk_logits_ = 0.0;
};

}  // namespace roofline::serving
