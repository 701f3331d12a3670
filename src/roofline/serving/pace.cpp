#include "roofline/serving/pace.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "roofline/serving/dealing.hpp"
#include "roofline/serving/elementary.hpp"

namespace roofline::serving {

Pace Pacing::saturated(double most) const {
    Pace pace;
    pace.fresh = demand_.fresh;
    const double room = replica_.pool_bytes - common_bytes();
    const double by_sequences = std::floor(replica_.max_sequences / policy_.samples);
    double slots = std::min(by_sequences, most);
    pace.limit = most < by_sequences ? Limit::users : Limit::sequences;
    settle(pace, slots, std::numeric_limits<double>::infinity());
    const bool optimistic = policy_.admission == Admission::optimistic;
    const double memory = std::isinf(room) ? room : bytes_in_use(room);
    const double pressure = std::clamp((bytes(pace) / memory - 1.0) / 0.1, 0.0, 1.0);
    if (pressure > 0.0) {
        pace.limit = Limit::pool;
        settle(pace, slots, memory);
        if (optimistic && demand_.decode_steps > 0.0) {
            recompute(pace, pressure, slots, memory);
        } else if (!demand_.alike) {
            pace.clustered = march();
        }
    }
    if (pace.arrivals >= 0.999 * most_arrivals(pace)) pace.limit = Limit::step_tokens;
    return pace;
}

Pace Pacing::seen_by_one(double arrivals) const {
    Pace pace = open(arrivals);
    if (demand_.decode_steps > 0.0) pace.decoding += policy_.samples;
    pace.room = std::max(1.0, replica_.max_step_tokens - pace.decoding * (policy_.speculation.tokens + 1.0));
    return pace;
}

Pace Pacing::seen_by_steps(double arrivals) const {
    Pace pace = open(arrivals);
    const double mean = pace.decoding / policy_.samples;
    if (mean > 1e-9) pace.decoding *= 1.0 / (1.0 - exponential(-mean));
    return pace;
}

Pace Pacing::open(double arrivals) const {
    Pace pace;
    pace.fresh = demand_.fresh;
    pace.limit = Limit::rate;
    fill(pace, std::min(arrivals, most_arrivals(pace)));
    return pace;
}

double Pacing::common_bytes() const {
    return policy_.prefix.common > 0.0 ? replica_.sequence_bytes(policy_.prefix.common) : 0.0;
}

double Pacing::most_arrivals(const Pace& pace) const {
    return replica_.max_step_tokens / std::max(pace.fresh + demand_.decode_steps * tokens_of_a_writer(policy_), 1e-9);
}

double Pacing::bytes(const Pace& pace) const {
    const double stage = stages_;
    return pace.arrivals * (stage * demand_.decode_steps * demand_.decode_bytes +
                            (pace.spans + pace.delay + stage - 1.0) * demand_.prompt_bytes);
}

void Pacing::fill(Pace& pace, double arrivals) const {
    pace.arrivals = arrivals;
    pace.decoding = arrivals * demand_.decode_steps * policy_.samples;
    pace.room = std::max(1.0, replica_.max_step_tokens - arrivals * demand_.decode_steps * tokens_of_a_writer(policy_));
    double spans = 0.0;
    double first = 0.0;
    double second = 0.0;
    for (const PromptSize& size : demand_.prompts) {
        const double rooms = size.tokens / pace.room;
        const double inside = pace.slots > 0.0 ? pace.slots : stages_;
        const double parts = parts_of_a_prompt(size.tokens, stages_, inside);
        spans += size.weight * std::max(std::ceil(rooms), size.tokens > 0.0 ? parts : 0.0);
        first += size.weight * rooms;
        second += size.weight * rooms * rooms;
    }
    const double load = std::min(1.0, arrivals * pace.fresh / pace.room);
    const double others = pace.slots > 0.0 ? (pace.slots - 1.0) / pace.slots : 1.0;
    pace.spans = demand_.fresh > 0.0 ? spans : 0.0;
    // Prompts that come at random wait for each other. Requests that all stay equally long have got out of each other's
    // way after one round, unless what they differ by carries them past their neighbours.
    double at_random = 1.0;
    if (pace.slots > 0.0) {
        const double stay = demand_.decode_steps + pace.spans;
        const double past = pace.slots * demand_.decode_variation * demand_.decode_steps / std::max(stay, 1e-9);
        at_random = past * past / (1.0 + past * past);
    }
    const double waits = second - (1.0 - at_random) * first * first;
    pace.delay = first > 0.0 ? load * waits / (2.0 * first) / std::max(1.0 - load * others, 1e-6) : 0.0;
    const double stage = stages_;
    pace.running = arrivals * (stage * demand_.decode_steps + pace.spans + pace.delay + (stage - 1.0));
}

void Pacing::settle(Pace& pace, double slots, double memory) const {
    double low = 0.0;
    double high = most_arrivals(pace);
    // Where memory is the limit, so many are inside at most while the limit is looked for.
    const double smallest = std::max(1.0, std::min(demand_.prompt_bytes, demand_.decode_bytes));
    pace.slots = std::max(1.0, std::min(slots, std::floor(memory / smallest + 0.5)));
    for (int round = 0; round < 60; ++round) {
        const double middle = (low + high) / 2.0;
        fill(pace, middle);
        (pace.running > slots || bytes(pace) > memory ? high : low) = middle;
    }
    fill(pace, low);
    if (bytes(pace) > 0.999 * memory) pace.slots = std::max(1.0, pace.running);
}

double Pacing::bytes_in_use(double room) const {
    const bool optimistic = policy_.admission == Admission::optimistic;
    const double kept = optimistic ? policy_.watermark * replica_.pool_bytes : 0.0;
    const double one = std::max(demand_.decode_bytes, demand_.prompt_bytes);
    const double inside = alike_inside(room, kept);
    // As many as fit, if all are of one size; the more they differ, and the more of them there are, the less does it
    // matter what is left behind the last whole one.
    const double unlike = std::min(1.0, 2.0 * std::sqrt(std::max(inside, 1.0)) * demand_.whole_variation);
    return std::max(one, (1.0 - unlike) * inside * one + unlike * (room - mean_free_bytes()));
}

double Pacing::mean_free_bytes() const {
    // A long request is more likely to be the one that does not fit: the age of a renewal process.
    const double head = demand_.admitted_square / (2.0 * demand_.admitted_bytes);
    if (policy_.admission == Admission::reserving) return head;
    const double top = policy_.watermark * replica_.pool_bytes + head;
    return top - drained_bytes(top);
}

double Pacing::drained_bytes(double top) const {
    const double growth = demand_.growth_bytes;
    if (!(growth > 0.0)) return 0.0;
    // Writing takes from what is free, ends of requests give back at random times, admission takes all above `top`:
    // what has been taken is exponential, with the rate for which  rate x growth = 1 - E[exp(-rate x whole)].
    double low = 0.0;
    double high = 1.0 / growth;
    for (int round = 0; round < 50; ++round) {
        const double rate = (low + high) / 2.0;
        double ends = 0.0;
        for (std::size_t i = 0; i < demand_.wholes.size(); ++i)
            ends += demand_.prompts[i].weight * (1.0 - exponential(-rate * demand_.wholes[i]));
        (rate * growth < ends ? low : high) = rate;
    }
    const double mean = 1.0 / high;
    // Nothing is taken beyond `top`: then somebody is thrown out.
    return mean - top / std::max(1.0 / exponential(-top / mean) - 1.0, 1e-300);
}

double Pacing::alike_inside(double room, double kept) const {
    const double first = demand_.admitted_bytes;
    const double each = std::max(demand_.decode_bytes, demand_.prompt_bytes);
    if (policy_.admission == Admission::reserving) return std::floor(room / first);
    // The next one enters if its prompt fits beside those that are there, each somewhere on its way.
    const double spread = demand_.growth_bytes / std::sqrt(12.0);
    double inside = 0.0;
    for (double others = 0.0; others < 1e6; ++others) {
        const double left = room - (others > 0.0 ? kept : 0.0) - first - others * each;
        const double deviation = std::max(spread * std::sqrt(others), 1e-9 * room);
        const double chance = normal_below(left / deviation);
        inside += chance;
        if (chance < 1e-6) break;
    }
    return std::min(inside, room / each);
}

void Pacing::recompute(Pace& pace, double pressure, double slots, double memory) const {
    const double growth = demand_.growth_bytes;
    const double prompt = demand_.admitted_bytes;
    if (!(growth > 0.0)) return;
    const double tokens_per_byte = (demand_.output - 1.0) / growth;
    const double kept = policy_.watermark * replica_.pool_bytes;
    // At random: the growth until the next request ends, less what is free by then.
    const double random =
        growth * growth / prompt * (1.0 - exponential(-prompt / growth)) * exponential(-kept / (2.0 * growth));
    // All together: half the growth of all, less what is free, must be thrown out at three quarters of the way.
    const double half = pace.running * growth / 2.0;
    const double squeezed = std::max(0.0, 1.0 - (kept + prompt / 2.0) / half);
    const double together = squeezed * growth / 2.0 / (prompt + growth) * (prompt + 0.75 * growth);
    const double tight = squeezed * march();
    const double tokens = pressure * tokens_per_byte * (tight * together + (1.0 - tight) * random);
    pace.clustered = demand_.alike ? tight : march();
    // If there is no budget to compute it all, the pool is not full, and less is thrown out.
    double high = 1.0;
    double low = 0.0;
    for (int round = 0; round < 8; ++round) {
        const double part = round == 0 ? 1.0 : (low + high) / 2.0;
        pace.fresh = demand_.fresh + part * tokens;
        settle(pace, slots, memory);
        const bool full = pace.arrivals < 0.97 * most_arrivals(pace);
        if (full && round == 0) break;
        (full ? low : high) = part;
    }
}

double Pacing::march() const {
    const double spread = demand_.decode_variation / 0.12;
    return exponential(-spread * spread);
}

}  // namespace roofline::serving
