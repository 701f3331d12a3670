// How good a candidate is, under every goal at once: what a move wins under one it often loses under another.
#pragma once

#include <string_view>

#include "roofline/core/problem.hpp"
#include "roofline/core/record.hpp"
#include "roofline/decide/candidate.hpp"

namespace roofline::decide {

enum class Goal { tpot, ttft, throughput, cost };
std::string_view name(Goal goal);

struct Score {
    predict::Fit fit;
    double batch = 1.0;
    double devices = 1.0;
    Times ttft;
    Times tpot;
    Times device_time;  // D1: of all devices, for each token written, its share of the prompt included
    Bound prefill_bound = Bound::compute;
    Bound decode_bound = Bound::memory;
    bool mostly_decode = true;  // decoding takes more of the devices' time than prompts do

    /// What a goal makes small. Cost is device time here; a price is the caller's business.
    const Times& of(Goal goal) const;
    Bound bound(Goal goal) const;
    /// Output tokens per second and device.
    double rate() const { return device_time.expected.value > 0.0 ? 1.0 / device_time.expected.value : 0.0; }
};

/// Refused where the model cannot be cut as asked.
Result<Score> score(const Candidate& candidate);

}  // namespace roofline::decide
