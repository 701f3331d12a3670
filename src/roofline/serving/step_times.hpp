// Mean times of the steps of a pace: how full they are, what they cost, how long a prompt takes through them.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "roofline/serving/followed.hpp"
#include "roofline/serving/pace.hpp"
#include "roofline/serving/step_plan.hpp"

namespace roofline::serving {

/// S8: mean times and work of the steps of a pace.
struct Times {
    double interval = 0.0;  // from one step to the next
    double met = 0.0;       // the step that somebody meets who comes at any time: long ones are met more often
    double prompt = 0.0;    // that the steps of a prompt take, mean over requests
    double left = 0.0;      // prompt tokens that the step which somebody meets has no room for
    double flops = 0.0;
    double memory_bytes = 0.0;
};

class StepTimes {
  public:
    StepTimes(const Replica& replica, const Policy& policy, const Mix& mix, const Demand& demand)
        : replica_(replica), policy_(policy), mix_(mix), demand_(demand), stages_(replica.pipeline_stages) {}

    /// Requests come and go at random: steps are as full as the chain of S7 says.
    Times of(const Pace& pace);
    /// Seconds of a step with all the prompt tokens that its budget has room for, and of one with none.
    double full_step(const Pace& pace) { return interval(price(pace, pace.room)); }
    double empty_step(const Pace& pace) { return interval(price(pace, 0.0)); }
    /// Where as many come as go, a pipeline or a pool that may be full is followed step by step.
    bool is_followed(const Pace& pace) const {
        return pace.places > 0.0 && (stages_ > 1.0 || pace.limit == Limit::pool);
    }
    /// Its times, and the pace that it keeps.
    std::pair<Times, Pace> followed(const Pace& asked);

  private:
    /// The mix request by request.
    std::vector<FollowedRequest> requests() const;
    /// Prices for steps with up to so many requests inside.
    StepTable table(const Pace& pace, double slots);
    StepCost price(const Pace& pace, double tokens);
    /// The same with chunks of one length, all at one place of their prompts, beside contexts so much longer.
    StepCost price(double decoding, double tokens, double chunk, double past, double longer = 1.0);
    void add_writers(double decoding, double longer = 1.0);
    /// `tokens` prompt tokens of the mix: every size in proportion, long prompts in the middle of their way.
    void add_prompts(const Pace& pace, double tokens);
    /// How long the steps of a prompt take, beside `others` tokens of other prompts, through all stages.
    double prompt_seconds(const Pace& met, double others);
    /// A cost for every level of the chain: priced at some twenty, between them linear. No prompt at all is a case of
    /// its own, because engines run such steps differently.
    std::vector<StepCost> ladder(const Pace& pace, const BacklogGrid& grid, std::size_t used);
    /// The chain followed for a while through a pipeline: mean steps into `result`, and the time they took over the sum
    /// of their intervals. What a step leaves behind comes when it is through: steps that were held up behind a long
    /// one come through together, and their prompts are dealt together.
    double waiting_in_line(const Pace& pace, const Backlog& chain, const BacklogGrid& grid,
                           const std::vector<StepCost>& costs, Times& result) const;
    double interval(const StepCost& cost) const { return stages_ > 1.0 ? cost.interval : cost.latency; }

    const Replica& replica_;
    const Policy& policy_;
    const Mix& mix_;
    const Demand& demand_;
    double stages_;
    StepPlan plan_;
};

}  // namespace roofline::serving
