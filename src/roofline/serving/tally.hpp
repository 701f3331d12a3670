// What a simulation counts: everything over the whole run for the balance, and times and rates within the window that
// is measured.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "roofline/serving/live.hpp"
#include "roofline/serving/load.hpp"
#include "roofline/serving/percentiles.hpp"
#include "roofline/serving/policy.hpp"
#include "roofline/serving/simulation.hpp"

namespace roofline::serving {

class Tally {
  public:
    Tally(const Policy& policy, const Load& load) : policy_(policy), load_(load) {}

    /// Saturated or with users, as many come as go; there is no end but the one that is set.
    bool endless() const { return load_.kind == Load::Kind::saturated || load_.kind == Load::Kind::users; }

    void open(double time);
    void close(double time);
    bool counting() const { return counting_; }
    double opened() const { return start_; }
    bool closed() const { return end_ > 0.0; }

    void found_half_way(const Live& live) { at_start_ += (live.generated - before()) * policy_.samples; }
    void preempted() { preemptions_ += counting_ ? 1.0 : 0.0; }
    /// Nothing was under way from `since` to `now`.
    void idle(double since, double now);
    void launched(double tokens, double sequences);
    void held(double bytes) { most_held_ = std::max(most_held_, bytes); }
    void landed(const Flight& flight);
    /// `live` as it was before these tokens.
    void wrote(const Live& live, double tokens, double time);
    void ended(const Live& live, double time);
    /// The queue is longer than it should be.
    void overload() { overloaded_ = true; }
    void left_waiting(double requests) { waiting_ = requests; }

    std::uint64_t finished() const { return finished_; }
    double requests() const { return requests_; }

    /// All but who arrived and who is still there.
    Outcome summary();

  private:
    double before() const { return policy_.role == Role::decode ? 1.0 : 0.0; }  // tokens written elsewhere

    const Policy& policy_;
    const Load& load_;
    bool counting_ = false;
    bool overloaded_ = false;
    double start_ = 0.0;
    double end_ = 0.0;
    double idle_seconds_ = 0.0;
    double waiting_ = 0.0;
    double steps_ = 0.0;
    double flops_ = 0.0;
    double bytes_ = 0.0;
    double decoding_ = 0.0;
    double computed_ = 0.0;
    double prompts_ = 0.0;
    double outputs_ = 0.0;
    double requests_ = 0.0;
    double preemptions_ = 0.0;
    std::uint64_t finished_ = 0;
    double written_ = 0.0;
    double at_start_ = 0.0;
    double tokens_of_finished_ = 0.0;
    double most_tokens_ = 0.0;
    double most_sequences_ = 0.0;
    double most_held_ = 0.0;
    std::vector<Weighted> waits_;
    std::vector<Weighted> ttfts_;
    std::vector<Weighted> tpots_;
    std::vector<Weighted> gaps_;
    std::vector<Weighted> totals_;
};

}  // namespace roofline::serving
