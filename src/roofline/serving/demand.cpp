#include "roofline/serving/demand.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "roofline/serving/footprint.hpp"

namespace roofline::serving {
namespace {

constexpr int quarters = 4;  // places in its output at which a sequence is looked at

/// S4 again: contexts of one power of two as one.
void gather(std::vector<Demand::Context>& into, double fraction, double past) {
    for (Demand::Context& context : into) {
        if (std::ilogb(context.past + 1.0) != std::ilogb(past + 1.0)) continue;
        const double sum = context.fraction + fraction;
        context.past += (past - context.past) * fraction / sum;
        context.fraction = sum;
        return;
    }
    into.push_back({fraction, past});
}

}  // namespace

Result<Demand> demand_of(const Replica& replica, const Policy& policy, const Mix& mix, bool fine) {
    Demand demand;
    Footprint footprint(replica, policy);
    const TokensPerStep tokens = tokens_per_step(policy.speculation);
    const double overshoot = (tokens.square - tokens.mean) / (2.0 * tokens.mean);
    const double each = policy.speculation.tokens + 1.0;
    auto shares = mix.shares(fine);
    if (policy.role == Role::decode) {
        std::erase_if(shares, [](const Share& share) { return share.output < 2.0; });
        if (shares.empty()) return fail("no request writes more than one token: there is nothing to decode");
        double sum = 0.0;
        for (const Share& share : shares) sum += share.weight;
        for (Share& share : shares) share.weight /= sum;
    }
    demand.tokens_a_step = tokens.mean;
    demand.luck = tokens.square / (tokens.mean * tokens.mean) - 1.0;
    double squares = 0.0;
    double held_squares = 0.0;
    for (const Share& share : shares) {
        const double output = policy.role == Role::prefill ? 1.0 : share.output;
        const double longest = footprint.bytes(share.prompt, share.prompt + output + each);
        if (longest > footprint.room()) {
            return fail("a request of " + std::to_string(static_cast<long>(share.prompt)) + " + " +
                        std::to_string(static_cast<long>(output)) + " tokens needs " +
                        std::to_string(static_cast<long>(longest)) + " bytes of cache, the pool has " +
                        std::to_string(static_cast<long>(std::max(0.0, footprint.room()))));
        }
        const double weight = share.weight;
        const double fresh =
            policy.role == Role::decode ? 0.0 : share.prompt - cached_tokens(policy.prefix, share.prompt);
        const double steps = output > 1.0 ? (output - 1.0 + overshoot) / tokens.mean : 0.0;
        const bool reserving = policy.admission == Admission::reserving;
        const double whole = footprint.bytes(share.prompt, share.prompt + output + policy.speculation.tokens);
        const double at_entry = reserving ? whole : footprint.bytes(share.prompt, share.prompt);
        demand.prompts.push_back({fresh, weight, share.prompt - fresh});
        demand.steps.push_back(steps);
        demand.fresh += weight * fresh;
        demand.prompt += weight * share.prompt;
        demand.output += weight * (policy.role == Role::decode ? output - 1.0 : output);
        demand.decode_steps += weight * steps;
        squares += weight * steps * (steps + demand.luck);
        demand.prompt_bytes += weight * at_entry;
        demand.wholes.push_back(whole);
        for (int quarter = 0; quarter < quarters && steps > 0.0; ++quarter) {
            const double past = share.prompt + std::floor((output - 1.0) * (quarter + 0.5) / quarters);
            const double part = weight * steps / quarters;
            gather(demand.contexts, part, past);
            const double held = reserving ? whole : footprint.bytes(share.prompt, past + each);
            demand.decode_bytes += part * held;
            held_squares += part * held * held;
        }
    }
    if (demand.decode_steps > 0.0) {
        for (Demand::Context& context : demand.contexts) context.fraction /= demand.decode_steps;
        demand.decode_bytes /= demand.decode_steps;
        const double held_square = demand.decode_bytes * demand.decode_bytes;
        if (held_square > 0.0) demand.held_variance = held_squares / demand.decode_steps / held_square - 1.0;
        const double variance = squares - demand.decode_steps * demand.decode_steps;
        demand.decode_variation = std::sqrt(std::max(0.0, variance)) / demand.decode_steps;
    }
    return demand;
}

}  // namespace roofline::serving
