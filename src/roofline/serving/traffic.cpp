#include "roofline/serving/traffic.hpp"

#include <algorithm>
#include <cmath>

namespace roofline::serving {
namespace {

constexpr double near_capacity = 0.85;
constexpr double many_requests = 20000.0;
constexpr double few_requests = 2000.0;

// What a simulation takes on a usual core: of a step, of a sequence in it, and what may be spent unasked.
constexpr double seconds_of_a_step = 3e-6;
constexpr double seconds_of_a_writer = 4e-8;
constexpr double seconds_unasked = 0.5;

Load of_one_replica(const Load& load, double replicas) {
    Load one = load;
    if (one.kind == Load::Kind::rate) one.value /= replicas;
    if (one.kind == Load::Kind::users) one.value = std::max(1.0, std::ceil(one.value / replicas));
    return one;
}

/// Of a trace, the requests that one replica is dealt in turn.
Mix dealt(const Mix& mix, double replicas) {
    if (replicas <= 1.0 || mix.trace.empty()) return mix;
    Mix one = mix;
    one.trace.clear();
    for (std::size_t i = 0; i < mix.trace.size(); i += static_cast<std::size_t>(replicas))
        one.trace.push_back(mix.trace[i]);
    return one;
}

/// The type that does most of the flops decides what the peak is.
std::optional<double> peak_of(const predict::Scenario& scenario) {
    const predict::Prepared prepared(scenario.lowered, scenario.device, scenario.execution);
    std::vector<predict::OperatorTime> times(prepared.size());
    prepared.evaluate(model::decode_step(1.0, 1024.0), times);
    std::size_t most = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (times[i].flops > times[most].flops) most = i;
    }
    const double cost = prepared.limit().flop_cost(prepared.engine(most), prepared.type(most));
    return cost > 0.0 ? std::optional(1.0 / cost) : std::nullopt;
}

void scale(Flow& flow, double replicas) {
    for (double* rate : {&flow.requests, &flow.prompt_tokens, &flow.output_tokens, &flow.computed_tokens, &flow.flops,
                         &flow.memory_bytes, &flow.steps})
        *rate *= replicas;
}

Metrics metrics_of(const predict::Scenario& scenario, const Traffic& traffic, Flow flow, double tpot, double replicas) {
    scale(flow, replicas);
    const double devices = scenario.deployment.replica_devices() * replicas;
    Economy economy{.devices = devices,
                    .peak_flops = peak_of(scenario),
                    .peak_bandwidth = std::nullopt,
                    .watts = std::nullopt,
                    .price_per_device_hour = traffic.price_per_device_hour};
    if (economy.peak_flops) *economy.peak_flops *= devices;
    if (const Figure* bandwidth = scenario.device.bandwidth(Level::memory))
        economy.peak_bandwidth = bandwidth->value * devices;
    if (scenario.device.power) economy.watts = scenario.device.power->value * devices;
    return metrics(flow, tpot, economy);
}

/// What leaves a prefill replica: the link between nodes where there is one, of all its devices.
double transfer_rate(const predict::Scenario& scenario) {
    const predict::Links links = predict::links_of(scenario.device);
    return 1.0 / links.limit[index(Level::network)];
}

}  // namespace

Result<Answer> answer(const predict::Scenario& scenario, const Traffic& traffic) {
    Answer result;
    result.replicas = scenario.deployment.replicas;
    const Load load = of_one_replica(traffic.load, result.replicas);
    std::optional<Deployed> draft;
    const auto at = [&](Price price, Steady& into) -> Result<void> {
        const Deployed replica(scenario, price);
        Policy policy = traffic.policy;
        if (traffic.draft) {
            draft.emplace(*traffic.draft, price);
            policy.speculation.draft = &*draft;
        }
        if (auto sound = check(replica, policy); !sound) return sound;
        // A trace's lengths are a mix; only the simulation follows its arrivals.
        const Load steady_load = load.kind == Load::Kind::trace ? Load::saturated() : load;
        auto found = steady(replica, policy, traffic.mix, steady_load);
        if (!found) return std::unexpected(found.error());
        into = *found;
        result.pool_bytes = replica.pool_bytes;
        return {};
    };
    if (auto done = at(Price::limit, result.limit); !done) return std::unexpected(done.error());
    if (auto done = at(Price::attainable, result.attainable); !done) return std::unexpected(done.error());
    if (auto done = at(Price::expected, result.expected); !done) return std::unexpected(done.error());

    const Deployed replica(scenario, Price::expected);
    Policy policy = traffic.policy;
    if (draft) policy.speculation.draft = &*draft;
    if (traffic.simulate && traffic.prefill_replicas == 0.0) {
        auto found = simulate(replica, policy, dealt(traffic.mix, result.replicas), load, traffic.sampling);
        if (!found) return std::unexpected(found.error());
        result.simulated = std::move(*found);
    }
    double replicas = result.replicas;
    if (traffic.prefill_replicas > 0.0) {
        const Pools pools{.prefill = {&replica, policy, traffic.prefill_replicas},
                          .decode = {&replica, policy, result.replicas},
                          .link_bytes_per_second = transfer_rate(scenario)};
        auto found = disaggregate(pools, traffic.mix, traffic.load);
        if (!found) return std::unexpected(found.error());
        result.pools = *found;
        if (traffic.simulate && traffic.load.kind == Load::Kind::rate) {
            auto simulated = simulate(pools, traffic.mix, traffic.load, traffic.sampling);
            if (!simulated) return std::unexpected(simulated.error());
            result.simulated_pools = std::move(*simulated);
        }
        replicas += traffic.prefill_replicas;
        Flow flow;  // of all, divided among all devices
        flow.requests = found->requests_per_second / replicas;
        flow.output_tokens = found->output_tokens_per_second / replicas;
        const double prompt = result.expected.flow.requests > 0.0
                                  ? result.expected.flow.prompt_tokens / result.expected.flow.requests
                                  : 0.0;
        flow.prompt_tokens = flow.requests * prompt;
        result.metrics = metrics_of(scenario, traffic, flow, found->tpot, replicas);
        result.metrics.mfu.reset();
        result.metrics.mbu.reset();
    } else if (load.kind == Load::Kind::trace && result.simulated) {
        // What came, not what it could do if there were always more.
        const auto& tpot = result.simulated->tpot;
        result.metrics = metrics_of(scenario, traffic, result.simulated->flow, tpot ? tpot->mean : 0.0, replicas);
    } else {
        result.metrics = metrics_of(scenario, traffic, result.expected.flow, result.expected.tpot, replicas);
    }
    if (load.kind == Load::Kind::rate && !result.expected.overloaded) {
        const double use = load.value / result.expected.capacity;
        if (use > near_capacity && !result.simulated)
            result.assumptions.emplace_back(
                "so near to capacity the wait for a place is a rough mean: --simulate follows the queue");
        if (use > near_capacity && result.simulated)
            result.assumptions.emplace_back(
                "so near to capacity the wait above is a rough mean; the simulated one follows the queue");
        if (use > near_capacity && result.simulated && traffic.sampling.requests < many_requests)
            result.assumptions.emplace_back(
                "so near to capacity queues come and go slowly: --requests 50000 or more gives a steady mean");
    }
    if (traffic.policy.host_seconds_request == 0.0 && traffic.policy.host_seconds_step == 0.0)
        result.assumptions.emplace_back("the host costs nothing (--host-time, --host-time-per-step say what it does)");
    const Speculation& guesses = traffic.policy.speculation;
    if (guesses.tokens > 0.0 && !traffic.draft)
        result.assumptions.emplace_back("the memory of what guesses is not counted (--draft-model counts it)");
    if (guesses.tokens > 0.0 && guesses.draft_fraction == 0.0 && !traffic.draft)
        result.assumptions.emplace_back(
            "guessing costs nothing (a third number of --speculate, or --draft-model, says what it does)");
    if (traffic.mix.prompt.shape == Lengths::Shape::fixed && traffic.mix.trace.empty())
        result.assumptions.emplace_back(
            "all requests are alike; --prompts lognormal:1024,0.5 and the like spread them");
    return result;
}

double worth_simulating(const Traffic& traffic, const Answer& answer) {
    if (traffic.load.kind != Load::Kind::rate || traffic.prefill_replicas > 0.0 || answer.simulated) return 0.0;
    return worth_simulating(answer.expected, traffic.load.value / answer.replicas, seconds_unasked);
}

double worth_simulating(const Steady& found, double rate, double seconds) {
    if (found.overloaded || rate <= near_capacity * found.capacity) return 0.0;
    const double steps = 1.0 + (found.itl > 0.0 ? (found.request - found.ttft) / found.itl : 0.0);
    const double each = steps * (seconds_of_a_writer + seconds_of_a_step / std::max(found.running, 1.0));
    const double requests = std::min(many_requests, std::floor(seconds / each));
    return requests < few_requests ? 0.0 : requests;
}

}  // namespace roofline::serving
