#include "roofline/serving/step_times.hpp"

#include <algorithm>
#include <cmath>

#include "roofline/serving/backlog.hpp"
#include "roofline/serving/dealing.hpp"
#include "roofline/serving/random.hpp"
#include "roofline/serving/stages.hpp"

namespace roofline::serving {
namespace {

/// S7: requests that come in one step, where they march. Every time they are all replaced, a crowd gains or loses one
/// or two, so that it grows as the root of the time: this is what twenty generations make of them, many more than
/// servers see before something pulls them apart.
constexpr double crowd = 6.0;

/// Of the requests inside: what a part of one must amount to for a pipeline to be followed once more.
constexpr double worth_following = 0.01;

PipelineFlow between(const PipelineFlow& a, const PipelineFlow& b, double part) {
    const auto mixed = [part](double x, double y) { return x + part * (y - x); };
    return {.interval = mixed(a.interval, b.interval),
            .ended = mixed(a.ended, b.ended),
            .writing = mixed(a.writing, b.writing),
            .inside = mixed(a.inside, b.inside),
            .prompt = mixed(a.prompt, b.prompt),
            .flops = mixed(a.flops, b.flops),
            .memory_bytes = mixed(a.memory_bytes, b.memory_bytes)};
}

void add(Times& sum, double weight, const Times& part) {
    sum.interval += weight * part.interval;
    sum.met += weight * part.met;
    sum.prompt += weight * part.prompt;
    sum.left += weight * part.left;
    sum.flops += weight * part.flops;
    sum.memory_bytes += weight * part.memory_bytes;
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

Times StepTimes::of(const Pace& pace) {
    Times result;
    if (pace.clustered < 1.0) add(result, 1.0 - pace.clustered, at_random(pace));
    if (pace.clustered > 0.0) add(result, pace.clustered, together(pace));
    return result;
}

std::pair<Times, Pace> StepTimes::in_line(const Pace& asked) {
    PipelineInput input{.stages = static_cast<std::size_t>(stages_),
                        .slots = static_cast<std::size_t>(std::max(1.0, asked.slots)),
                        .budget = replica_.max_step_tokens,
                        .step_tokens = tokens_of_a_writer(policy_),
                        .samples = policy_.samples,
                        .holds_up = replica_.holds_up,
                        .requests = {}};
    // What is computed twice is spread over all prompts.
    const double again = demand_.fresh > 0.0 ? asked.fresh / demand_.fresh : 1.0;
    for (std::size_t i = 0; i < demand_.prompts.size(); ++i)
        input.requests.push_back({.weight = demand_.prompts[i].weight,
                                  .fresh = demand_.prompts[i].tokens * again,
                                  .past = demand_.prompts[i].past,
                                  .steps = demand_.steps[i]});
    PipelineFlow flow = follow(input, table(asked, static_cast<double>(input.slots)));
    // Memory that holds four and a half requests on average holds four in half of the steps and five in the others.
    const double part = asked.slots - std::floor(asked.slots);
    if (part > worth_following * asked.slots && asked.slots > 1.0) {
        ++input.slots;
        flow = between(flow, follow(input, table(asked, static_cast<double>(input.slots))), part);
    }
    Pace pace = asked;
    pace.arrivals = flow.ended;
    pace.decoding = flow.writing * policy_.samples;
    pace.running = flow.inside;
    pace.delay = 0.0;  // within the time of the prompt
    return {{.interval = flow.interval,
             .met = flow.interval,
             .prompt = flow.prompt,
             .left = 0.0,
             .flops = flow.flops,
             .memory_bytes = flow.memory_bytes},
            pace};
}

StepTable StepTimes::table(const Pace& pace, double slots) {
    StepTable result;
    result.most_decoding = std::max(1.0, std::ceil(slots / stages_)) * policy_.samples;
    const double most = demand_.fresh > 0.0 ? std::min(replica_.max_step_tokens, slots * pace.fresh + 1.0) : 0.0;
    double longest = 0.0;
    for (const PromptSize& size : demand_.prompts) longest = std::max(longest, size.past + size.tokens);
    result.rows.push_back({});
    for (double tokens = 16.0; tokens < most; tokens *= 2.0) result.rows.push_back({.tokens = tokens});
    if (most > 0.0) result.rows.push_back({.tokens = most});
    for (StepTable::Row& row : result.rows) {
        const double chunk = std::min(row.tokens, demand_.fresh);
        row.near = chunk / 2.0;
        row.far = std::max(row.near, longest - chunk / 2.0);
        for (std::size_t i = 0; i < StepTable::counts; ++i) {
            const double share = static_cast<double>(i) / static_cast<double>(StepTable::counts - 1);
            double decoding = share * result.most_decoding;
            if (row.tokens == 0.0) decoding = std::max(decoding, std::min(1.0, result.most_decoding));
            row.at_head[i] = price(decoding, row.tokens, chunk, 0.0);
            row.at_end[i] = row.tokens > 0.0 ? price(decoding, row.tokens, chunk, row.far - row.near) : row.at_head[i];
        }
    }
    return result;
}

StepCost StepTimes::price(double decoding, double tokens, double chunk, double past) {
    plan_.clear();
    if (tokens > 0.0) plan_.chunk(tokens / chunk, chunk, past, chunk / demand_.fresh);
    add_writers(decoding);
    return plan_.cost(replica_, policy_);
}

StepCost StepTimes::price(const Pace& pace, double tokens) {
    plan_.clear();
    if (tokens > 0.0) add_prompts(pace, tokens);
    add_writers(pace.decoding);
    return plan_.cost(replica_, policy_);
}

void StepTimes::add_writers(double decoding) {
    for (const Demand::Context& context : demand_.contexts) {
        const double count = context.fraction * decoding;
        if (count > 0.0) plan_.decode(count, context.past);
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

Times StepTimes::at_random(const Pace& pace) {
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

Times StepTimes::together(const Pace& pace) {
    const double each = pace.arrivals * pace.fresh;  // prompt tokens per step
    const double burst = std::clamp(std::min(pace.slots, crowd) * pace.fresh, each, pace.room);
    const double share = std::min(1.0, each / burst);
    const StepCost full = price(pace, burst);
    const StepCost empty = price(pace, 0.0);
    Times result;
    result.interval = share * interval(full) + (1.0 - share) * interval(empty);
    result.flops = share * full.flops + (1.0 - share) * empty.flops;
    result.memory_bytes = share * full.memory_bytes + (1.0 - share) * empty.memory_bytes;
    result.prompt = pace.spans * interval(full);
    return result;
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
