#include "roofline/serving/pace.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "roofline/serving/dealing.hpp"
#include "roofline/serving/elementary.hpp"

namespace roofline::serving {

namespace {

/// Of the pool, that requests must hold on average for it to be the limit at times.
constexpr double may_be_full = 0.8;

}  // namespace

Pace Pacing::saturated(double most) const {
    Pace pace;
    pace.fresh = demand_.fresh;
    const double room = room_bytes();
    const double by_sequences = std::floor(replica_.max_sequences / policy_.samples);
    const double slots = std::min(by_sequences, most);
    pace.limit = most < by_sequences ? Limit::users : Limit::sequences;
    settle(pace, slots, std::numeric_limits<double>::infinity());
    if (bytes(pace) > may_be_full * room) {
        settle(pace, slots, room);
        pace.limit = Limit::pool;
    } else if (pace.arrivals >= 0.999 * most_arrivals(pace)) {
        pace.limit = Limit::step_tokens;
    }
    pace.places = slots;
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

double Pacing::room_bytes() const {
    const double common = policy_.prefix.common > 0.0 ? replica_.sequence_bytes(policy_.prefix.common) : 0.0;
    return replica_.pool_bytes - common;
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

}  // namespace roofline::serving
