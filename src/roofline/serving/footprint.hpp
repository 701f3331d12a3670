// What a request holds of the pool, remembered by context: asked for every sequence of every step.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "roofline/serving/policy.hpp"

namespace roofline::serving {

/// S5: samples share their prompt; a common prefix is held once, by nobody.
class Footprint {
  public:
    Footprint(const Replica& replica, const Policy& policy)
        : replica_(replica),
          samples_(policy.samples),
          common_tokens_(policy.prefix.common),
          common_bytes_(policy.prefix.common > 0.0 ? replica.sequence_bytes(policy.prefix.common) : 0.0),
          room_(replica.pool_bytes - common_bytes_) {}

    /// With `context` tokens cached, of which `prompt` are shared by the samples.
    double bytes(double prompt, double context) {
        const double own = one(context) - (common_bytes_ > 0.0 ? one(std::min(common_tokens_, context)) : 0.0);
        if (samples_ == 1.0 || context <= prompt) return own;
        return own + (samples_ - 1.0) * (one(context) - one(prompt));
    }
    double room() const { return room_; }

  private:
    double one(double context) {
        const auto place = static_cast<std::size_t>(context);
        if (place >= known_.size()) known_.resize(std::max(place + 1, 2 * known_.size()), std::nan(""));
        if (std::isnan(known_[place])) known_[place] = replica_.sequence_bytes(static_cast<double>(place));
        return known_[place];
    }

    const Replica& replica_;
    double samples_;
    double common_tokens_;
    double common_bytes_;
    double room_;
    std::vector<double> known_;
};

}  // namespace roofline::serving
