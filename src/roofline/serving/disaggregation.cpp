#include "roofline/serving/disaggregation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "roofline/core/sort.hpp"

namespace roofline::serving {
namespace {

Policy policy_of(const Pool& pool, Role role) {
    Policy policy = pool.policy;
    policy.role = role;
    return policy;
}

Result<void> check_pools(const Pools& pools) {
    if (pools.prefill.replica == nullptr || pools.decode.replica == nullptr)
        return fail("pools: expected two replicas");
    for (const Pool* pool : {&pools.prefill, &pools.decode}) {
        if (!(pool->replicas >= 1.0 && pool->replicas <= 1e6 && pool->replicas == std::floor(pool->replicas))) {
            return fail("replicas of a pool: expected a whole number from 1");
        }
    }
    if (!(pools.link_bytes_per_second >= 0.0)) return fail("link: expected bytes per second, 0 or more");
    return {};
}

double transfer_bytes(const Pools& pools, double prompt) {
    return pools.decode.replica->sequence_bytes(prompt);
}

/// The part of requests that write a second token and so go to the decode pool, and their bytes.
struct Passing {
    double fraction = 0.0;
    double bytes = 0.0;    // mean over those
    double further = 0.0;  // tokens after the first, mean over those
};

Passing passing(const Pools& pools, const Mix& mix) {
    Passing result;
    for (const Share& share : mix.shares()) {
        if (share.output < 2.0) continue;
        result.fraction += share.weight;
        result.bytes += share.weight * transfer_bytes(pools, share.prompt);
        result.further += share.weight * (share.output - 1.0);
    }
    if (result.fraction > 0.0) {
        result.bytes /= result.fraction;
        result.further /= result.fraction;
    }
    return result;
}

}  // namespace

std::string_view name(Narrowest narrowest) {
    switch (narrowest) {
        case Narrowest::prefill:
            return "prefill pool";
        case Narrowest::link:
            return "link";
        case Narrowest::decode:
            return "decode pool";
    }
    return "";
}

Result<Disaggregated> disaggregate(const Pools& pools, const Mix& mix, const Load& load) {
    if (const auto checked = check_pools(pools); !checked) return std::unexpected(checked.error());
    if (load.kind != Load::Kind::saturated && load.kind != Load::Kind::rate) {
        return fail("two pools: expected a rate, or as much as they can do");
    }
    const Policy prefill_policy = policy_of(pools.prefill, Role::prefill);
    const Policy decode_policy = policy_of(pools.decode, Role::decode);
    const auto prefill = steady(*pools.prefill.replica, prefill_policy, mix, Load::saturated());
    if (!prefill) return std::unexpected(prefill.error());
    const auto decode = steady(*pools.decode.replica, decode_policy, mix, Load::saturated());
    if (!decode) return std::unexpected(decode.error());

    const Passing pass = passing(pools, mix);
    Disaggregated result;
    result.transfer_bytes = pass.bytes;
    result.prefill_capacity = prefill->capacity * pools.prefill.replicas;
    result.decode_capacity = decode->capacity * pools.decode.replicas / pass.fraction;
    result.link_capacity = std::numeric_limits<double>::infinity();
    if (pools.link_bytes_per_second > 0.0) {
        result.transfer_seconds = pass.bytes / pools.link_bytes_per_second;
        result.link_capacity = pools.prefill.replicas / (result.transfer_seconds * pass.fraction);
    }
    result.capacity = std::min({result.prefill_capacity, result.link_capacity, result.decode_capacity});
    result.narrowest = result.capacity == result.prefill_capacity ? Narrowest::prefill
                       : result.capacity == result.link_capacity  ? Narrowest::link
                                                                  : Narrowest::decode;
    const bool saturated = load.kind == Load::Kind::saturated;
    result.overloaded = !saturated && load.value >= result.capacity;
    result.requests_per_second = saturated || result.overloaded ? result.capacity : load.value;

    // A pool at its own capacity is saturated; one with slack sees a rate.
    const auto at = [&](const Pool& pool, const Policy& policy, double requests, double capacity) {
        const bool full = requests >= 0.999 * capacity;
        return steady(*pool.replica, policy, mix, full ? Load::saturated() : Load::rate(requests / pool.replicas));
    };
    const auto first = at(pools.prefill, prefill_policy, result.requests_per_second, result.prefill_capacity);
    if (!first) return std::unexpected(first.error());
    const double passed = result.requests_per_second * pass.fraction;
    const auto second = at(pools.decode, decode_policy, passed, result.decode_capacity * pass.fraction);
    if (!second) return std::unexpected(second.error());
    result.prefill = *first;
    result.decode = *second;
    result.output_tokens_per_second =
        result.requests_per_second * (1.0 + pass.fraction * pass.further) * pools.decode.policy.samples;
    result.ttft = first->ttft;
    const double after = result.transfer_seconds + second->request;
    result.tpot = pass.further > 0.0 ? after / pass.further : 0.0;
    result.request = first->ttft + pass.fraction * after;
    if (result.overloaded) result.ttft = result.request = std::numeric_limits<double>::infinity();
    return result;
}

namespace {

/// A request on its way through both pools.
struct Journey {
    Request request;
    double first_token = 0.0;
    double handed_over = 0.0;
    double finished = 0.0;
    std::size_t link = 0;
};

/// Deals requests to the replicas of a pool in turn and runs each by itself; `put` takes what came of each.
template <class Put>
Result<void> run_pool(const Pool& pool, const Policy& policy, const std::vector<std::size_t>& order,
                      const std::vector<Request>& requests, const Put& put) {
    const auto replicas = static_cast<std::size_t>(pool.replicas);
    for (std::size_t replica = 0; replica < std::min(replicas, order.size()); ++replica) {
        Mix mix;
        std::vector<std::size_t> ids;
        for (std::size_t i = replica; i < order.size(); i += replicas) {
            mix.trace.push_back(requests[order[i]]);
            ids.push_back(order[i]);
        }
        const auto outcome = simulate(*pool.replica, policy, mix, Load::trace());
        if (!outcome) return std::unexpected(outcome.error());
        for (std::size_t i = 0; i < ids.size(); ++i) put(ids[i], replica, outcome->served[i]);
    }
    return {};
}

}  // namespace

Result<DisaggregatedOutcome> simulate(const Pools& pools, const Mix& mix, const Load& load, const Sampling& sampling) {
    if (const auto checked = check_pools(pools); !checked) return std::unexpected(checked.error());
    if (load.kind != Load::Kind::rate) return fail("two pools are simulated at a rate");
    const auto whole = disaggregate(pools, mix, load);
    if (!whole) return std::unexpected(whole.error());
    DisaggregatedOutcome outcome;
    outcome.overloaded = whole->overloaded;
    if (outcome.overloaded) return outcome;

    // A fifth more before and after those that are measured, so that they never meet an empty replica.
    const double margin = std::floor(sampling.requests / 5.0) + 50.0;
    const auto total = static_cast<std::size_t>(sampling.requests + 2.0 * margin);
    Random lengths(sampling.seed, 1);
    Random arrivals(sampling.seed, 2);
    std::vector<Request> requests;
    std::vector<std::size_t> order;
    double time = 0.0;
    for (std::size_t i = 0; i < total; ++i) {
        time += load.poisson ? arrivals.waiting_time(1.0 / load.value) : 1.0 / load.value;
        requests.push_back(mix.draw(i, lengths));
        requests.back().arrival = time;
        order.push_back(i);
    }
    std::vector<Journey> journeys(total);
    const auto computed = run_pool(pools.prefill, policy_of(pools.prefill, Role::prefill), order, requests,
                                   [&](std::size_t id, std::size_t replica, const Served& served) {
                                       journeys[id].request = requests[id];
                                       journeys[id].first_token = served.first_token;
                                       journeys[id].link = replica;
                                   });
    if (!computed) return std::unexpected(computed.error());

    sort_stably(order, [&](std::size_t a, std::size_t b) { return journeys[a].first_token < journeys[b].first_token; });
    std::vector<double> link_free(static_cast<std::size_t>(pools.prefill.replicas), 0.0);
    std::vector<std::size_t> further;
    for (const std::size_t id : order) {
        Journey& journey = journeys[id];
        journey.finished = journey.first_token;
        if (journey.request.output < 2.0) continue;
        journey.handed_over = journey.first_token;
        if (pools.link_bytes_per_second > 0.0) {
            double& free = link_free[journey.link];
            free = std::max(free, journey.first_token) +
                   transfer_bytes(pools, journey.request.prompt) / pools.link_bytes_per_second;
            journey.handed_over = free;
        }
        further.push_back(id);
    }
    sort_stably(further,
                [&](std::size_t a, std::size_t b) { return journeys[a].handed_over < journeys[b].handed_over; });
    for (const std::size_t id : further) requests[id].arrival = journeys[id].handed_over;
    const auto written =
        run_pool(pools.decode, policy_of(pools.decode, Role::decode), further, requests,
                 [&](std::size_t id, std::size_t, const Served& served) { journeys[id].finished = served.finished; });
    if (!written) return std::unexpected(written.error());

    std::vector<Weighted> ttft;
    std::vector<Weighted> tpot;
    std::vector<Weighted> whole_request;
    const auto first = static_cast<std::size_t>(margin);
    const auto end = static_cast<std::size_t>(margin + sampling.requests);
    double tokens = 0.0;
    for (std::size_t i = first; i < end; ++i) {
        const Journey& journey = journeys[i];
        const double output = journey.request.output;
        ttft.push_back({journey.first_token - journey.request.arrival, 1.0});
        whole_request.push_back({journey.finished - journey.request.arrival, 1.0});
        if (output > 1.0) tpot.push_back({(journey.finished - journey.first_token) / (output - 1.0), 1.0});
        tokens += output * pools.decode.policy.samples;
    }
    const double seconds = journeys[end - 1].request.arrival - journeys[first].request.arrival;
    outcome.requests = static_cast<double>(end - first);
    if (seconds > 0.0) {
        outcome.requests_per_second = outcome.requests / seconds;
        outcome.output_tokens_per_second = tokens / seconds;
    }
    outcome.ttft = percentiles(std::move(ttft));
    outcome.tpot = percentiles(std::move(tpot));
    outcome.request = percentiles(std::move(whole_request));
    return outcome;
}

}  // namespace roofline::serving
