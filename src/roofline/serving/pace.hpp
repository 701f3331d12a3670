// How many requests a replica serves at once, in units of steps: what comes and goes, writes and waits in a mean step.
// No price is asked here.
#pragma once

#include "roofline/serving/demand.hpp"
#include "roofline/serving/limit.hpp"

namespace roofline::serving {

/// A step as the steady state has it on average, in units of steps: no price has been asked yet.
struct Pace {
    double arrivals = 0.0;  // requests that come and go per step
    double decoding = 0.0;  // sequences (samples included) that write in a step
    double room = 0.0;      // budget left for prompts
    double fresh = 0.0;     // prompt tokens per request, recomputed ones included
    double spans = 1.0;     // steps that a prompt spans
    double delay = 0.0;     // steps that it waits for the budget
    double slots = 0.0;     // 0: without limit
    double places = 0.0;    // the same without memory as a limit
    double use = 0.0;       // with a clock: arrivals over capacity
    double clock = 0.0;     // > 0: the arrivals are those of this many seconds, and a longer step sees more of them
    double running = 0.0;
    double outside = 0.0;      // requests that were thrown out and wait to come back
    double preemptions = 0.0;  // per request
    Limit limit = Limit::pool;

    bool operator==(const Pace&) const = default;
};

class Pacing {
  public:
    Pacing(const Replica& replica, const Policy& policy, const Demand& demand)
        : replica_(replica), policy_(policy), demand_(demand), stages_(replica.pipeline_stages) {}

    /// S6: as many requests at once as sequences and `most` allow, and of what they hold on average as the pool has
    /// room for. Where that may be the limit, it is a rough pace, to be followed (`followed.hpp`).
    Pace saturated(double most) const;
    /// S9: requests that come at `arrivals` per step whatever happens, as one of them sees it: with itself, beside as
    /// many others as there are on average.
    Pace seen_by_one(double arrivals) const;
    /// The same as steps see it: only those count in which there is somebody.
    Pace seen_by_steps(double arrivals) const;

  private:
    Pace open(double arrivals) const;
    double room_bytes() const;
    /// Every step full: what a request puts through the model over what a step takes.
    double most_arrivals(const Pace& pace) const;
    double bytes(const Pace& pace) const;
    /// Everything that follows from the arrivals per step.
    void fill(Pace& pace, double arrivals) const;
    /// The arrivals at which slots or memory are used up, by bisection.
    void settle(Pace& pace, double slots, double memory) const;

    const Replica& replica_;
    const Policy& policy_;
    const Demand& demand_;
    double stages_;
};

}  // namespace roofline::serving
