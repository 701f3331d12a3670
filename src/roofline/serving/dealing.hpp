// Prompts dealt to the steps of a pipeline. A step with much more to compute than its neighbours holds them all up, so
// a scheduler does not put all prompts that wait into the next step, but shares them among the steps under way. The
// simulation and the closed form deal by this rule.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace roofline::serving {

/// Fewer tokens than this take a step hardly less time, as its weights are read all the same: nothing is cut finer.
constexpr double smallest_part = 256.0;

/// Two rounds of the steps under way.
constexpr double steps_to_deal_to(double stages) {
    return stages > 1.0 ? 2.0 * stages : 1.0;
}

/// Parts that a prompt of so many tokens is cut into beside `inside` requests, itself included: one for each step that
/// can be under way. Alone it stays whole, since there is nobody to hold up.
inline double parts_of_a_prompt(double tokens, double stages, double inside) {
    const double steps = std::min(steps_to_deal_to(stages), std::floor(inside));
    return std::max(1.0, std::min(steps, std::ceil(tokens / smallest_part)));
}

/// S8. Without a pipeline everything is due at once.
class Dealing {
  public:
    explicit Dealing(std::size_t stages)
        : stages_(static_cast<double>(stages)), due_(static_cast<std::size_t>(steps_to_deal_to(stages_)), 0.0) {}

    /// A prompt is admitted: its parts go to those of the coming steps that have the least to do, the next first.
    void enter(double tokens, double inside) {
        const auto parts = static_cast<std::size_t>(parts_of_a_prompt(tokens, stages_, inside));
        const double most = static_cast<double>(due_.size());
        const auto steps = static_cast<std::size_t>(std::clamp(std::floor(inside), 1.0, most));
        const double each = std::ceil(tokens / static_cast<double>(parts));
        left_ += tokens;
        order_.resize(steps);
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return due_[a] < due_[b]; });
        for (std::size_t i = 0; i < parts && tokens > 0.0; ++i) {
            const double part = std::min(each, tokens);
            due_[order_[i]] += part;
            tokens -= part;
        }
    }

    /// Tokens that the step which is put together may still compute.
    double due() const { return std::min(due_.front() - computed_, left_); }
    void compute(double tokens) {
        computed_ += tokens;
        left_ -= tokens;
    }
    /// Somebody was thrown out with so many tokens to compute.
    void leave(double tokens) { left_ -= tokens; }

    /// The step is on its way. What it had no room for is due in the next.
    void next() {
        const double over = std::max(0.0, due());
        std::rotate(due_.begin(), due_.begin() + 1, due_.end());
        due_.back() = 0.0;
        due_.front() += over;
        computed_ = 0.0;
    }

  private:
    double stages_;
    std::vector<double> due_;  // in the step that is put together, and in those after it
    std::vector<std::size_t> order_;
    double computed_ = 0.0;  // of this step
    double left_ = 0.0;      // of all prompts that have been admitted
};

}  // namespace roofline::serving
