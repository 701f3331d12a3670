#include "roofline/serving/step_times.hpp"

#include <algorithm>
#include <cmath>

#include "roofline/serving/backlog.hpp"
#include "roofline/serving/dealing.hpp"
#include "roofline/serving/random.hpp"
#include "roofline/serving/stages.hpp"

namespace roofline::serving {
namespace {

/// Of the requests inside: what a part of one must amount to for a pipeline to be followed once more.
constexpr double worth_following = 0.01;

/// Sequences that write in a step over their mean: up to so many are priced.
constexpr double most_over_mean = 2.0;

/// Contexts over their mean at which the price of a key is looked at.
constexpr double longer_contexts = 1.25;

/// What a step costs more for each of `more`.
StepCost slope(const StepCost& from, const StepCost& to, double more) {
    return {(to.latency - from.latency) / more, (to.interval - from.interval) / more, (to.flops - from.flops) / more,
            (to.memory_bytes - from.memory_bytes) / more};
}

/// A kind of step that makes up `part` of all.
void add_step(Times& sum, double part, const StepCost& cost, double interval) {
    sum.interval += part * interval;
    sum.met += part * interval * interval;
    sum.flops += part * cost.flops;
    sum.memory_bytes += part * cost.memory_bytes;
}

/// Levels beyond which there is next to nothing.
std::size_t likely(const Backlog& chain) {
    std::size_t used = chain.level.size();
    for (double tail = 0.0; used > 1; --used) {
        tail += chain.level[used - 1];
        if (tail > 1e-6) break;
    }
    return used;
}

}  // namespace

std::pair<Times, Pace> StepTimes::followed(const Pace& asked) {
    const bool optimistic = policy_.admission == Admission::optimistic;
    Footprint footprint(replica_, policy_);
    FollowedInput input{
        .stages = static_cast<std::size_t>(stages_),
        .slots = static_cast<std::size_t>(std::max(1.0, asked.places)),
        .writing = asked.decoding / policy_.samples * stages_,
        .pool_bytes = footprint.room(),
        .kept_bytes = optimistic && std::isfinite(footprint.room()) ? policy_.watermark * replica_.pool_bytes : 0.0,
        .tokens_a_step = demand_.tokens_a_step,
        .checked = policy_.speculation.tokens + 1.0,
        .budget = replica_.max_step_tokens,
        .step_tokens = tokens_of_a_writer(policy_),
        .samples = policy_.samples,
        .holds_up = replica_.holds_up,
        .requests = requests()};
    // Where memory is the limit, more write at times than on average.
    const StepTable prices = table(asked, std::min(std::ceil(asked.places), most_over_mean * asked.decoding * stages_));
    FollowedFlow flow = follow(input, prices, footprint);
    // Four and a half users are four in half of the steps and five in the others.
    const double part = asked.places - std::floor(asked.places);
    if (part > worth_following * asked.places && asked.places > 1.0 && flow.limit == Limit::sequences) {
        ++input.slots;
        flow = between(flow, follow(input, prices, footprint), part);
    }
    Pace pace = asked;
    pace.arrivals = flow.ended;
    pace.decoding = flow.writing * policy_.samples;
    pace.running = flow.inside;
    pace.outside = flow.outside;
    pace.fresh = demand_.fresh + flow.again;
    pace.preemptions = flow.thrown_out;
    pace.delay = 0.0;  // within the time of the prompt
    if (flow.limit != Limit::sequences || asked.limit != Limit::users) pace.limit = flow.limit;
    return {{.interval = flow.interval,
             .met = flow.interval,
             .prompt = flow.prompt,
             .left = 0.0,
             .flops = flow.flops,
             .memory_bytes = flow.memory_bytes},
            pace};
}

std::vector<FollowedRequest> StepTimes::requests() const {
    // A rare long one holds up all behind it in front of a small pool. Where it can never enter, it does not come.
    const Result<Demand> fine = demand_.prompts.size() > 1 ? demand_of(replica_, policy_, mix_, true) : demand_;
    const Demand& demand = fine ? *fine : demand_;
    const bool optimistic = policy_.admission == Admission::optimistic;
    std::vector<FollowedRequest> result;
    for (std::size_t i = 0; i < demand.prompts.size(); ++i) {
        const PromptSize& prompt = demand.prompts[i];
        result.push_back({.weight = prompt.weight,
                          .fresh = prompt.tokens,
                          .past = prompt.past,
                          .steps = demand.steps[i],
                          .deviation = std::sqrt(demand.steps[i] * demand.luck),
                          .prompt = prompt.past + prompt.tokens,
                          .reserved_bytes = optimistic ? 0.0 : demand.wholes[i]});
    }
    return result;
}

StepTable StepTimes::table(const Pace& pace, double slots) {
    StepTable result;
    result.most_decoding = std::max(1.0, std::ceil(slots / stages_)) * policy_.samples;
    for (const Demand::Context& context : demand_.contexts) result.mean_context += context.fraction * context.past;
    const double most = demand_.fresh > 0.0 ? std::min(replica_.max_step_tokens, slots * pace.fresh + 1.0) : 0.0;
    // Where the tokens of prompts begin and end, on average.
    double begin = 0.0;
    double end = 0.0;
    for (const PromptSize& size : demand_.prompts) {
        const double share = demand_.fresh > 0.0 ? size.weight * size.tokens / demand_.fresh : 0.0;
        begin += share * size.past;
        end += share * (size.past + size.tokens);
    }
    result.rows.push_back({});
    for (double tokens = 16.0; tokens < most; tokens *= 2.0) {
        // What prompts have room for beside those that write is the fullest step there is, and often met.
        if (tokens / 2.0 < pace.room && pace.room < tokens && tokens > 16.0)
            result.rows.push_back({.tokens = pace.room});
        result.rows.push_back({.tokens = tokens});
    }
    if (result.rows.back().tokens < pace.room && pace.room < most) result.rows.push_back({.tokens = pace.room});
    if (most > 0.0) result.rows.push_back({.tokens = most});
    const double few = result.most_decoding / 2.0;
    for (StepTable::Row& row : result.rows) {
        const double chunk = std::min(row.tokens, demand_.fresh);
        // Which steps meet which matters in pipelines; else means do, and a third of the prices.
        const double head = stages_ > 1.0 ? begin : std::max(begin, (begin + end - chunk) / 2.0);
        row.near = head + chunk / 2.0;
        row.far = stages_ > 1.0 ? std::max(row.near, end - chunk / 2.0) : row.near;
        for (std::size_t i = 0; i < StepTable::counts; ++i) {
            const double share = static_cast<double>(i) / static_cast<double>(StepTable::counts - 1);
            double decoding = share * result.most_decoding;
            if (row.tokens == 0.0) decoding = std::max(decoding, std::min(1.0, result.most_decoding));
            row.at_head[i] = price(decoding, row.tokens, chunk, head);
            row.at_end[i] = row.far > row.near ? price(decoding, row.tokens, chunk, end - chunk) : row.at_head[i];
        }
        if (stages_ == 1.0 || !(few * result.mean_context > 0.0)) continue;
        row.per_key = slope(price(few, row.tokens, chunk, begin), price(few, row.tokens, chunk, begin, longer_contexts),
                            (longer_contexts - 1.0) * few * result.mean_context);
    }
    return result;
}

StepCost StepTimes::price(double decoding, double tokens, double chunk, double past, double longer) {
    plan_.clear();
    if (tokens > 0.0) plan_.chunk(tokens / chunk, chunk, past, chunk / demand_.fresh);
    add_writers(decoding, longer);
    return plan_.cost(replica_, policy_);
}

StepCost StepTimes::price(const Pace& pace, double tokens) {
    plan_.clear();
    if (tokens > 0.0) add_prompts(pace, tokens);
    add_writers(pace.decoding);
    return plan_.cost(replica_, policy_);
}

void StepTimes::add_writers(double decoding, double longer) {
    for (const Demand::Context& context : demand_.contexts) {
        const double count = context.fraction * decoding;
        if (count > 0.0) plan_.decode(count, longer * context.past);
    }
}

void StepTimes::add_prompts(const Pace& pace, double tokens) {
    for (const PromptSize& size : demand_.prompts) {
        if (size.tokens <= 0.0) continue;
        const double part = tokens * size.weight * size.tokens / demand_.fresh;
        // A pipeline cuts the row of its prompts into steps wherever their shares end: a step holds pieces of one more
        // prompt than it has whole ones.
        const double whole = stages_ > 1.0 ? tokens * size.tokens / (tokens + size.tokens) : tokens;
        const double chunk = std::min({size.tokens, whole, pace.room});
        const double count = part / chunk;
        const double cached = size.past;
        plan_.chunk(count, chunk, cached + (size.tokens - chunk) / 2.0, chunk / size.tokens);
    }
}

Times StepTimes::of(const Pace& pace) {
    BacklogInput input{.sizes = demand_.prompts,
                       .arrivals = demand_.fresh > 0.0 ? pace.arrivals * pace.fresh / demand_.fresh : 0.0,
                       .sources = std::floor(pace.slots + 0.5),
                       .room = pace.room,
                       .by_the_clock = pace.clock > 0.0 && stages_ == 1.0,
                       .use = pace.use};
    const BacklogGrid grid = backlog_grid(input);
    Backlog chain;
    std::vector<StepCost> costs;
    if (input.by_the_clock) {
        costs = ladder(pace, grid, grid.levels);
        std::vector<double> durations;
        durations.reserve(costs.size());
        for (const StepCost& cost : costs) durations.push_back(cost.latency / pace.clock);
        chain = backlog(input, grid, durations);
    } else {
        chain = backlog(input, grid);
        costs = ladder(pace, grid, likely(chain));
    }
    Times result;
    double slower = 1.0;
    if (stages_ > 1.0 && !chain.arriving.empty()) {
        slower = waiting_in_line(pace, chain, grid, costs, result);
    } else {
        for (std::size_t i = 0; i < costs.size(); ++i) add_step(result, chain.level[i], costs[i], interval(costs[i]));
    }
    if (result.interval > 0.0) result.met /= result.interval;
    result.left = chain.left;
    const double crowd = pace.clock > 0.0 ? result.met / result.interval : 1.0;
    result.prompt = slower * prompt_seconds(pace, crowd * pace.arrivals * pace.fresh);
    result.interval *= slower;
    result.met *= slower;
    return result;
}

double StepTimes::prompt_seconds(const Pace& met, double others) {
    if (!(demand_.fresh > 0.0)) return 0.0;
    // Of so many requests one computes its prompt here: it meets the others, not itself.
    Pace pace = met;
    if (pace.slots > 0.0) {
        const double not_itself = std::max(0.0, 1.0 - 1.0 / pace.slots);
        pace.decoding *= not_itself;
        others *= not_itself;
    }
    constexpr std::size_t groups = 8;  // of prompts in the order of their size
    const std::size_t count = demand_.prompts.size();
    const double full = interval(price(pace, pace.room));
    double sum = 0.0;
    for (std::size_t group = 0; group < std::min(groups, count); ++group) {
        const std::size_t first = group * count / std::min(groups, count);
        const std::size_t end = (group + 1) * count / std::min(groups, count);
        double weight = 0.0;
        double tokens = 0.0;
        for (std::size_t i = first; i < end; ++i) {
            weight += demand_.prompts[i].weight;
            tokens += demand_.prompts[i].weight * demand_.prompts[i].tokens;
        }
        tokens /= weight;
        if (stages_ > 1.0) {
            // Dealt to several steps, which follow each other closely.
            const double parts = parts_of_a_prompt(tokens, stages_, pace.running + 1.0);
            const double steps = std::max(std::ceil(tokens / pace.room), parts);
            const double each = interval(price(pace, std::min(tokens / steps + others, pace.room)));
            sum += weight * (steps - 1.0 + stages_) * each;
            continue;
        }
        const double before = std::max(0.0, std::ceil(tokens / pace.room) - 1.0);
        const double last = interval(price(pace, std::min(tokens - before * pace.room + others, pace.room)));
        sum += weight * (before * full + last);
    }
    return sum;
}

std::vector<StepCost> StepTimes::ladder(const Pace& pace, const BacklogGrid& grid, std::size_t used) {
    std::vector<StepCost> costs(used);
    costs[0] = price(pace, 0.0);
    const std::size_t stride = std::max<std::size_t>(1, used / 20);
    std::size_t last = 0;
    for (std::size_t i = 1; i < used; i = std::min(i + stride, std::max(i + 1, used - 1))) {
        costs[i] = price(pace, static_cast<double>(i) * grid.cell);
        for (std::size_t k = last + 1; k < i && last > 0; ++k) {
            costs[k] = between(costs[last], costs[i], static_cast<double>(k - last) / static_cast<double>(i - last));
        }
        last = i;
    }
    return costs;
}

double StepTimes::waiting_in_line(const Pace& pace, const Backlog& chain, const BacklogGrid& grid,
                                  const std::vector<StepCost>& costs, Times& result) const {
    constexpr std::size_t followed = 10000;
    std::vector<double> below(chain.arriving.size());
    double sum = 0.0;
    for (std::size_t i = 0; i < below.size(); ++i) below[i] = sum += chain.arriving[i];
    Random random(1);
    Stages stages(static_cast<std::size_t>(stages_));
    Dealing dealing(stages.count());
    std::vector<double> finished(stages.count(), 0.0);  // when the latest step of each group was through
    std::vector<double> brings(stages.count(), 0.0);    // tokens
    const double most = static_cast<double>(std::min(grid.room, costs.size() - 1)) * grid.cell;
    double end = 0.0;
    for (std::size_t step = 0; step < followed; ++step) {
        const std::size_t next = step % stages.count();
        // Its group is back, and the first stage is free.
        const double start = std::max(finished[next], stages.free());
        for (std::size_t group = 0; group < brings.size(); ++group) {
            if (finished[group] <= start && brings[group] > 0.0)
                dealing.enter(std::exchange(brings[group], 0.0), pace.running + 1.0);
        }
        const double tokens = std::min(dealing.due(), most);
        const auto level = static_cast<std::size_t>(std::ceil(tokens / grid.cell));
        dealing.compute(tokens);
        dealing.next();
        const auto come = std::lower_bound(below.begin(), below.end() - 1, random.uniform()) - below.begin();
        brings[next] = static_cast<double>(come) * grid.cell;
        const StepCost cost =
            level < 2 ? costs[level]
                      : between(costs[level - 1], costs[level], tokens / grid.cell - static_cast<double>(level - 1));
        add_step(result, 1.0 / static_cast<double>(followed), cost, interval(cost));
        end = finished[next] = stages.pass(cost, finished[next]);
    }
    // The time they took over the sum of their intervals.
    return replica_.holds_up && stages.busy() > 0.0 ? std::max(1.0, end / stages.busy()) : 1.0;
}

}  // namespace roofline::serving
