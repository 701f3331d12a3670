#include "roofline/serving/tally.hpp"

#include <algorithm>
#include <utility>

namespace roofline::serving {

void Tally::open(double time) {
    counting_ = true;
    start_ = time;
}

void Tally::close(double time) {
    end_ = time;
    counting_ = false;
}

void Tally::idle(double since, double now) {
    if (counting_) idle_seconds_ += std::max(0.0, now - std::max(since, start_));
}

void Tally::launched(double tokens, double sequences) {
    most_tokens_ = std::max(most_tokens_, tokens);
    most_sequences_ = std::max(most_sequences_, sequences);
}

void Tally::landed(const Flight& flight) {
    if (!counting_) return;
    steps_ += 1.0;
    flops_ += flight.cost.flops;
    bytes_ += flight.cost.memory_bytes;
    decoding_ += flight.decoding;
    computed_ += flight.chunk_tokens;
}

void Tally::wrote(const Live& live, double tokens, double time) {
    written_ += tokens * policy_.samples;
    const bool first = live.generated == 0.0;
    if (first && counting_) prompts_ += live.request.prompt;
    // A guest's first token here is not its first, and the time before it is unknown.
    const bool wanted = endless() ? counting_ : live.counted;
    if (!first && !(live.guest && live.last == 0.0) && wanted) {
        const double gap = time - live.last;
        if (!gaps_.empty() && gaps_.back().value == gap) {
            gaps_.back().weight += 1.0;
        } else {
            gaps_.push_back({gap, 1.0});
        }
    }
    if (counting_) outputs_ += tokens * policy_.samples;
}

void Tally::ended(const Live& live, double time) {
    ++finished_;
    tokens_of_finished_ += (live.request.output - before()) * policy_.samples;
    if (counting_) requests_ += 1.0;
    const bool measured = endless() ? counting_ && !live.guest : live.counted;
    if (!measured) return;
    const double arrival = live.request.arrival;
    waits_.push_back({std::max(0.0, live.entered - arrival), 1.0});
    ttfts_.push_back({live.first - arrival, 1.0});
    totals_.push_back({time - arrival, 1.0});
    if (live.request.output > 1.0) tpots_.push_back({(time - live.first) / (live.request.output - 1.0), 1.0});
}

Outcome Tally::summary() {
    Outcome outcome;
    outcome.seconds = std::max(0.0, end_ - start_);
    outcome.requests = static_cast<double>(totals_.size());
    const double per_second = outcome.seconds > 0.0 ? 1.0 / outcome.seconds : 0.0;
    Flow& flow = outcome.flow;
    flow.requests = requests_ * per_second;
    flow.prompt_tokens = prompts_ * per_second;
    flow.output_tokens = outputs_ * per_second;
    flow.computed_tokens = computed_ * per_second;
    flow.flops = flops_ * per_second;
    flow.memory_bytes = bytes_ * per_second;
    flow.steps = steps_ * per_second;
    flow.decoding = steps_ > 0.0 ? decoding_ / steps_ : 0.0;
    flow.busy = std::clamp(1.0 - idle_seconds_ * per_second, 0.0, 1.0);
    flow.step_seconds = steps_ > 0.0 ? flow.busy * outcome.seconds / steps_ : 0.0;
    flow.preemptions = requests_ > 0.0 ? preemptions_ / requests_ : 0.0;
    outcome.overloaded = overloaded_;
    outcome.waiting = waiting_;
    if (!overloaded_) {
        outcome.wait = percentiles(std::move(waits_));
        outcome.ttft = percentiles(std::move(ttfts_));
        outcome.tpot = percentiles(std::move(tpots_));
        outcome.itl = percentiles(std::move(gaps_));
        outcome.request = percentiles(std::move(totals_));
    }
    outcome.finished = static_cast<double>(finished_);
    outcome.tokens_written = written_;
    outcome.tokens_at_start = at_start_;
    outcome.tokens_of_finished = tokens_of_finished_;
    outcome.most_pool_bytes = most_held_;
    outcome.most_step_tokens = most_tokens_;
    outcome.most_sequences = most_sequences_;
    return outcome;
}

}  // namespace roofline::serving
