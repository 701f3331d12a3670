#include "roofline/serving/step_plan.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

namespace roofline::serving {
namespace {

std::size_t octave(double tokens) {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(std::max(tokens, 0.0))));
}

}  // namespace

void StepPlan::clear() {
    for (std::size_t i = lowest_; i <= highest_ && i < count_.size(); ++i) count_[i] = past_[i] = 0.0;
    lowest_ = count_.size();
    highest_ = 0;
    decoding_ = 0.0;
    chunk_tokens_ = chunk_squares_ = chunk_past_ = chunk_logits_ = 0.0;
}

void StepPlan::decode(double count, double past) {
    const std::size_t place = octave(past);
    count_[place] += count;
    past_[place] += count * past;
    lowest_ = std::min(lowest_, place);
    highest_ = std::max(highest_, place);
    decoding_ += count;
}

void StepPlan::chunk(double count, double tokens, double past, double logits) {
    chunk_tokens_ += count * tokens;
    chunk_squares_ += count * tokens * tokens;
    chunk_past_ += count * tokens * past;
    chunk_logits_ += count * logits;
}

StepCost StepPlan::cost(const Replica& replica, const Policy& policy) {
    using model::Phase;
    const Speculation& speculation = policy.speculation;
    const double each = speculation.tokens + 1.0;
    step_.clear();
    if (chunk_tokens_ > 0.0) {
        // So many of so many tokens that tokens and pairs (tokens x past + tokens^2 / 2) stay what they are.
        const double tokens = chunk_squares_ / chunk_tokens_;
        const double count = chunk_tokens_ / tokens;
        step_.push_back({Phase::prefill, count, tokens, chunk_past_ / chunk_tokens_, chunk_logits_ / count});
    }
    const std::size_t prefills = step_.size();
    for (std::size_t i = lowest_; i <= highest_ && i < count_.size(); ++i) {
        if (count_[i] > 0.0) step_.push_back({Phase::decode, count_[i], each, past_[i] / count_[i], each});
    }
    const double tokens = chunk_tokens_ + decoding_ * each;
    const auto padded = std::lower_bound(policy.captured.begin(), policy.captured.end(), tokens);
    if (padded != policy.captured.end() && *padded > tokens) {
        step_.push_back({Phase::decode, *padded - tokens, 1.0, 0.0, 0.0});
    }
    StepCost cost = replica.price(step_);
    if (speculation.tokens > 0.0) {
        double draft = 0.0;
        if (decoding_ > 0.0) {
            draft = speculation.draft_seconds + speculation.draft_fraction * cost.latency;
        }
        if (speculation.draft != nullptr) {
            const std::span<model::Sequences> all(step_);
            const auto decodes = all.subspan(prefills);
            const auto chunks = all.first(prefills);
            const auto pass = [&](std::span<const model::Sequences> step, double times) {
                if (step.empty() || times <= 0.0) return;
                const StepCost one = speculation.draft->price(step);
                draft += times * one.latency;
                cost.flops += times * one.flops;
                cost.memory_bytes += times * one.memory_bytes;
            };
            pass(chunks, 1.0);
            for (model::Sequences& group : decodes) group.logits = 1.0;
            pass(decodes, 1.0);
            for (model::Sequences& group : decodes) group.new_tokens = 1.0;
            pass(decodes, speculation.tokens - 1.0);
        }
        cost.latency += draft;
        cost.interval += draft;
    }
    cost.latency += policy.host_seconds_step;
    cost.interval += policy.host_seconds_step;
    return cost;
}

}  // namespace roofline::serving
