// The search behind `plan`: every device, count, cut, type, batch, step size and split of a fleet, priced by a closed
// form; the best under the targets, the runner-up, what limits each, and the front that no candidate beats.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/decide/candidates.hpp"
#include "roofline/decide/pareto.hpp"
#include "roofline/serving/mix.hpp"

namespace roofline::decide {

/// What must hold; empty: it does not matter.
struct Targets {
    std::optional<double> ttft = {};           // seconds, mean
    std::optional<double> tpot = {};           // seconds, mean
    std::optional<double> requests = {};       // per second
    std::optional<double> cost_per_hour = {};  // in the currency of the prices; without prices, devices
};

enum class Target { ttft, tpot, requests, cost };
std::string_view name(Target target);

/// What is best among those that meet the targets.
enum class Aim { cost, throughput, latency };

struct PlanQuestion {
    predict::Setup model;             // with mean prompt and output lengths; the rest of it is chosen here
    std::optional<serving::Mix> mix;  // where requests are not alike: what the finalists are asked about
    Choices choices;
    Targets targets;
    Aim aim = Aim::cost;
    bool may_disaggregate = true;
    std::string draft;      // a model that guesses ahead, as engines are told of it; empty: none is named
    bool has_time = false;  // whoever waits may wait a second: finalists near capacity are simulated
};

/// One pool of replicas that are alike.
struct Fleet {
    Layout layout;
    std::string weight_types;
    std::string kv_type;
    double replicas = 1.0;
    double batch = 1.0;  // sequences of a replica at once; 0 in a pool that only computes prompts
    double step = 0.0;   // tokens of a step

    double devices() const { return replicas * layout.devices(); }
};

/// P3 to P6: what a candidate does. Times are expected ones.
struct Performance {
    double capacity = 0.0;        // requests a second with every batch full
    double capacity_limit = 0.0;  // the same at datasheet peaks
    double ttft = 0.0;            // seconds, nobody waiting before
    double tpot = 0.0;            // seconds, with every batch full
    double transfer = 0.0;        // seconds of one prompt's cache between two pools
};

/// P7: what `serving` says of a finalist, at the rate asked for or, where none is, as much as it can do.
struct Served {
    double capacity = 0.0;  // requests a second
    double ttft = 0.0;      // seconds, mean, waiting included; without a rate, from admission
    double tpot = 0.0;      // seconds, mean
    double wait = 0.0;      // part of ttft
    double running = 0.0;   // sequences of a replica at once, mean; of one that writes outputs
    bool overloaded = false;
    double simulated = 0.0;  // requests that times are the means of; 0: those of the closed form
};

/// What stands in the way of a faster or cheaper one.
enum class Obstacle { kv_capacity, sequences, ttft_target, tpot_target, prefill_pool, decode_pool, link, aim };
std::string_view name(Obstacle obstacle);

/// A candidate in full.
struct Deploy {
    std::optional<Fleet> prefill;  // where prompts have a pool of their own
    Fleet main;                    // whole requests, or their outputs
    Performance performance;
    std::optional<Served> served;
    double devices = 0.0;
    double cost_per_hour = 0.0;
    Merits merits;  // of the served, where it was asked
    Bound decode_bound = Bound::memory;
    Bound prefill_bound = Bound::compute;
    double prefill_share = 0.0;  // of the time of a full replica, with prompts beside
    Obstacle obstacle = Obstacle::sequences;
};

/// A target that nothing meets, and the nearest to it.
struct Miss {
    Target target = Target::ttft;
    double asked = 0.0;
    double found = 0.0;
    bool alone = false;  // missed even without the other targets
};

struct Counts {
    double candidates = 0.0;
    double impossible = 0.0;
    double not_fitting = 0.0;
    double beaten_early = 0.0;  // pairs of pools whose prompt pool another beats; not priced
    double priced = 0.0;
    double meeting = 0.0;  // the targets
    double layouts = 0.0;  // lowered and priced step by step
    double served = 0.0;   // of those that meet them, asked again with `serving`
};

struct Plan {
    std::string model_name;
    std::string model_title;
    std::vector<Deploy> best;   // the best and the runner-up; empty: nothing meets the targets
    std::vector<Deploy> front;  // of those that meet them, or of all where none does; by tokens per user
    std::vector<Miss> misses;
    std::optional<Deploy> closest;  // where nothing meets the targets
    double requests_limit = 0.0;    // the most requests a second that any candidate could do at datasheet peaks
    Counts counts;
    bool priced_in_money = false;
    std::vector<std::string> notes;
};

Result<Plan> plan(const PlanQuestion& question);

/// P3: one replica that computes prompts beside its outputs, with step size number `step`.
Performance together(const BatchPrice& price, std::size_t step, double prompt, double output);

/// "2 x TP4 x PP2 on h100-sxm"; "prefill 1 x TP4, decode 2 x TP2 on h100-sxm".
std::string describe(const Deploy& deploy, const PlanQuestion& question);

}  // namespace roofline::decide
