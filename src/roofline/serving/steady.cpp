#include "roofline/serving/steady.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "roofline/serving/elementary.hpp"
#include "roofline/serving/pace.hpp"
#include "roofline/serving/step_times.hpp"

namespace roofline::serving {
namespace {

constexpr double worth_a_chain =
    0.02;  // of the time to the first token: what a queue must cost to be looked at closely
constexpr double longest_chain = 1e5;
constexpr double most_load = 0.99;  // of prompts: capacity says when it is too much

struct Case {
    const Replica& replica;
    const Policy& policy;
    const Demand& demand;
    const Pacing& pacing;
    StepTimes& times;
};

/// Flow and times of a pace in which as many come as go: there is always somebody.
Steady closed(const Case& the, const Pace& asked) {
    const bool followed = the.times.is_followed(asked);
    const auto [times, pace] = followed ? the.times.followed(asked) : std::pair(the.times.of(asked), asked);
    const double stages = the.replica.pipeline_stages;
    Steady result;
    result.limit = pace.limit;
    result.running = pace.running;
    result.prompt_step_tokens = pace.arrivals * pace.fresh;
    result.recomputed = pace.fresh - the.demand.fresh;
    Flow& flow = result.flow;
    flow.steps = 1.0 / times.interval;
    flow.requests = pace.arrivals * flow.steps;
    flow.flops = times.flops * flow.steps;
    flow.memory_bytes = times.memory_bytes * flow.steps;
    flow.decoding = pace.decoding;
    flow.step_seconds = times.interval;
    flow.busy = 1.0;
    flow.preemptions = pace.preemptions;
    result.itl = stages * times.interval;
    if (the.demand.decode_steps > 0.0) {
        // A sequence that writes does not meet its own prompt: what it stays, less the time of that (Little).
        const double stay = (pace.running + pace.outside) * times.interval / std::max(pace.arrivals, 1e-300);
        const double writing = stay - times.prompt - pace.delay * times.interval;
        const double each = writing / the.demand.decode_steps;
        result.itl = followed ? each : std::clamp(each, 0.5 * result.itl, result.itl);
    }
    result.ttft = the.policy.host_seconds_request + times.prompt;
    return result;
}

/// What follows from requests per second and the time between steps.
void complete(const Case& the, Steady& result) {
    const Demand& demand = the.demand;
    Flow& flow = result.flow;
    flow.prompt_tokens = flow.requests * demand.prompt;
    flow.output_tokens = flow.requests * demand.output * the.policy.samples;
    flow.computed_tokens = flow.requests * (demand.fresh + result.recomputed);
    const double written = demand.output - (the.policy.role == Role::decode ? 0.0 : 1.0);
    const double writing = result.itl * demand.decode_steps;
    result.tpot = written > 0.0 ? writing / written : 0.0;
    if (the.policy.role == Role::decode) result.ttft = result.wait + the.policy.host_seconds_request;
    result.request = result.ttft + writing;
}

/// In front of the running set.
struct Line {
    double seconds = 0.0;
    double chance = 0.0;  // that somebody must wait for a place
};

/// With `places` always in use at `residence` each (Sakasegawa).
Line wait_for_a_place(double use, double places, double residence) {
    const double chance = power(use, std::sqrt(2.0 * (places + 1.0)) - 1.0);
    return {chance / (places * (1.0 - use)) * residence, chance};
}

/// S9: requests of unlike size share a pool as if fewer and larger ones did, since a large one takes the place of
/// several.
double size_of_a_place(const Case& the, const Steady& full) {
    return full.limit == Limit::pool ? 1.0 + std::max(0.0, the.demand.held_variance) : 1.0;
}

/// S9: the same where few are served faster than many. The number of requests inside is a chain of births at the rate
/// and deaths at the throughput of so many; who comes beyond the running set waits.
Line wait_in_line(const Case& the, double rate, double running, const Steady& full, double most) {
    const double size = size_of_a_place(the, full);
    const double places = std::max(1.0, std::floor(most / size + 0.5));
    std::vector<std::pair<double, double>> known = {{0.0, 0.0}};  // requests inside, requests per second
    const double from = std::min(running / size, places);
    for (const double inside : {0.5 * from, 0.75 * from, from, from + 0.25 * (places - from),
                                from + 0.5 * (places - from), from + 0.75 * (places - from)}) {
        const double whole = std::floor(inside + 0.5);
        if (whole <= known.back().first || whole >= places) continue;
        known.emplace_back(whole, closed(the, the.pacing.saturated(whole * size)).flow.requests / size);
    }
    known.emplace_back(places, full.capacity / size);
    rate /= size;
    double weight = 1.0;  // of as many inside as the loop has come to, on a scale of its own
    double sum = 1.0;
    for (std::size_t i = 1; i < known.size(); ++i) {
        const auto [low, slow] = known[i - 1];
        const auto [high, fast] = known[i];
        for (double inside = low + 1.0; inside <= high; ++inside) {
            weight *= rate / (slow + (fast - slow) * (inside - low) / (high - low));
            sum += weight;
            if (sum > 1e200) {
                weight *= 1e-200;
                sum *= 1e-200;
            }
        }
    }
    const double use = rate * size / full.capacity;
    const double all = sum + weight * use / (1.0 - use);
    return {weight * use / ((1.0 - use) * (1.0 - use)) / all / rate, weight / (1.0 - use) / all};
}

/// S9: what a prompt waits for those before it. Prompts that are longer than a step has room for are computed one after
/// another in full steps (Pollaczek and Khinchine); shorter ones share steps, and only those wait that the step under
/// way has no room for.
struct PromptQueue {
    double load = 0.0;     // the part of the time whose steps are counted here
    double seconds = 0.0;  // with what is left of those
};
PromptQueue prompts_before(const Case& the, double rate, const Pace& pace, const Times& times) {
    double first = 0.0;
    double second = 0.0;
    for (const PromptSize& size : the.demand.prompts) {
        const double rooms = size.tokens / pace.room;
        first += size.weight * rooms;
        second += size.weight * rooms * rooms;
    }
    if (!(first > 0.0)) return {};
    const double step = the.times.full_step(pace);
    // The chain knows no idle time: somebody writes, or every step computes a prompt.
    const bool writes = the.demand.decode_steps > 0.0;
    if (first < 1.0 && writes && the.replica.pipeline_stages == 1) return {0.0, times.left / pace.room * step};
    const double load = std::min(rate * first * step, most_load);
    return {load, load / (1.0 - load) * second / (2.0 * first) * step};
}

/// S9: what the steps that a sequence meets while it writes are longer than the mean one. Its own prompt made long
/// steps, in which more requests came than in others; their prompts make its first steps longer, and so on. `load` is
/// the part of the time that prompts take.
double longer_for_writers(const Times& times, double load, double steps) {
    double longer = 0.0;  // of its own prompt's excess, by all its steps together
    double part = 1.0;
    for (double step = 0.0; step < steps && part > 1e-6; ++step) longer += part *= load;
    return std::max(0.0, times.prompt - times.interval) * longer / std::max(steps, 1.0);
}

/// S9: the time between steps and the requests that come meanwhile, each from the other. `most`: requests that find a
/// place.
Steady arriving(const Case& the, double rate, const Load& load, const Steady& full, double most) {
    const Demand& demand = the.demand;
    double time = 0.0;
    Pace pace = the.pacing.seen_by_one(0.0);
    Times times;
    for (int round = 0; round < 60; ++round) {
        times = the.times.of(pace);
        const bool settled = times.interval - time <= 1e-6 * times.interval;
        time = times.interval;
        if (settled) break;
        pace = the.pacing.seen_by_one(rate * time);
        pace.clock = time;
        pace.use = rate / full.capacity;
    }
    Steady result = closed(the, pace);
    result.itl = the.replica.pipeline_stages * times.interval;
    result.capacity = full.capacity;
    const PromptQueue before = prompts_before(the, rate, pace, times);
    const double prompt = times.prompt + before.seconds;
    const double residence = prompt + result.itl * demand.decode_steps;
    Flow& flow = result.flow;
    flow.requests = rate;
    flow.busy = 1.0 - exponential(-rate * residence);
    Pace steps = the.pacing.seen_by_steps(rate * time);
    steps.clock = time;
    steps.use = rate / full.capacity;
    const auto mean = the.times.of(steps);
    flow.steps = mean.interval > 0.0 ? flow.busy / mean.interval : 0.0;
    flow.step_seconds = mean.interval;
    flow.decoding = flow.steps > 0.0 ? rate * demand.decode_steps * the.policy.samples / flow.steps : 0.0;
    flow.flops = mean.flops * flow.steps;
    flow.memory_bytes = mean.memory_bytes * flow.steps;
    result.running = rate * residence;
    result.prompt_step_tokens = flow.steps > 0.0 ? rate * demand.fresh / flow.steps : 0.0;
    // The queue in front of the running set: nothing far from capacity, everything near it.
    const double places = std::max(1.0, most / size_of_a_place(the, full));
    const double uneven = ((load.poisson ? 1.0 : 0.0) + demand.decode_variation * demand.decode_variation) / 2.0;
    // What is left of the step under way.
    const double rest = std::max(0.0, flow.busy - before.load) * times.met / 2.0;
    Line line = wait_for_a_place(rate / full.capacity, places, residence);
    // To follow a pipeline for every number inside would take too long.
    if (uneven * line.seconds > worth_a_chain * (rest + prompt) && places < longest_chain &&
        the.replica.pipeline_stages == 1)
        line = wait_in_line(the, rate, result.running, full, most);
    result.wait = uneven * line.seconds;
    if (!load.poisson || !(demand.decode_steps > 0.0)) line.chance = 0.0;
    // Who waits for a place gets it when a step ends, and as many prompts begin as requests end.
    if (the.replica.pipeline_stages == 1) {
        const double each = std::max(0.0, the.times.full_step(pace) - the.times.empty_step(pace)) / pace.room;
        const double prompts = std::min(rate * demand.fresh * each, most_load);
        result.itl += (1.0 - line.chance) * longer_for_writers(times, prompts, demand.decode_steps);
        result.running = rate * (prompt + result.itl * demand.decode_steps);
    }
    result.ttft = the.policy.host_seconds_request + std::max(result.wait, line.chance * rest) +
                  (1.0 - line.chance) * (rest + before.seconds) + times.prompt;
    return result;
}

}  // namespace

Result<Steady> steady(const Replica& replica, const Policy& policy, const Mix& mix, const Load& load) {
    if (const auto checked = check(replica, policy); !checked) return std::unexpected(checked.error());
    if ((load.kind == Load::Kind::users || load.kind == Load::Kind::rate) && !(load.value > 0.0 && load.value < 1e9)) {
        return fail(load.kind == Load::Kind::users ? "users: expected more than 0" : "rate: expected more than 0");
    }
    const auto demand = demand_of(replica, policy, mix);
    if (!demand) return std::unexpected(demand.error());
    const Pacing pacing(replica, policy, *demand);
    StepTimes times(replica, policy, mix, *demand);
    const Case the{replica, policy, *demand, pacing, times};
    constexpr double infinity = std::numeric_limits<double>::infinity();

    const Pace most = pacing.saturated(infinity);
    const Steady crowded = closed(the, most);
    Steady full = crowded;
    full.capacity = full.flow.requests;
    complete(the, full);
    if (load.kind == Load::Kind::rate) {
        Steady result = load.value < full.capacity ? arriving(the, load.value, load, full,
                                                              full.limit == Limit::pool ? full.running : most.slots)
                                                   : full;
        complete(the, result);
        if (load.value >= full.capacity) {
            result.overloaded = true;
            result.wait = result.ttft = result.request = infinity;
        }
        return result;
    }
    if (load.kind == Load::Kind::users) {
        // Who is with the host is not in the running set.
        double inside = load.value;
        Steady result;
        for (int round = 0; round < 20; ++round) {
            const Pace pace = pacing.saturated(std::max(inside, 1e-3));
            result = pace == most ? crowded : closed(the, pace);  // more users than the replica takes
            const double before = inside;
            inside = std::max(1e-3, load.value - result.flow.requests * policy.host_seconds_request);
            if (std::abs(inside - before) <= 1e-6 * inside) break;
        }
        result.capacity = full.capacity;
        result.wait = std::max(0.0, inside - result.running) / result.flow.requests;
        result.ttft += result.wait;
        complete(the, result);
        return result;
    }
    return full;
}

}  // namespace roofline::serving