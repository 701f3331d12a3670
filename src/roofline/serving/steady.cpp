#include "roofline/serving/steady.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "roofline/serving/backlog.hpp"
#include "roofline/serving/footprint.hpp"
#include "roofline/serving/pipeline.hpp"
#include "roofline/serving/random.hpp"
#include "roofline/serving/step_plan.hpp"

namespace roofline::serving {
namespace {

constexpr int quarters = 4;  // places in its output at which a sequence is looked at
constexpr double worth_a_chain =
    0.02;  // of the time to the first token: what a queue must cost to be looked at closely
constexpr double longest_chain = 1e5;

/// The mix as one engine sees it: what a request brings, how long it stays, what it holds.
struct Demand {
    std::vector<PromptSize> prompts;  // tokens to compute
    std::vector<double> steps;        // of each of them: steps after the first token
    struct Context {
        double fraction = 0.0;  // of decoding sequences
        double past = 0.0;
    };
    std::vector<Context> contexts;
    double fresh = 0.0;             // prompt tokens to compute, mean
    double prompt = 0.0;            // tokens
    double output = 0.0;            // tokens written here by each sample
    double decode_steps = 0.0;      // Z: steps after the first token, mean
    double decode_variation = 0.0;  // standard deviation of those over their mean
    double prompt_bytes = 0.0;      // held while the prompt is computed
    double decode_bytes = 0.0;      // held while writing, mean over such steps
    double growth_bytes = 0.0;      // between the end of the prompt and the end, mean over requests
    double admitted_bytes = 0.0;    // that admission asks for, mean over requests
    double whole_bytes = 0.0;       // at the end of its output, mean over sequences that write
    double whole_variation = 0.0;
    bool alike = false;  // all requests
};

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

Result<Demand> demand_of(const Replica& replica, const Policy& policy, const Mix& mix) {
    Demand demand;
    Footprint footprint(replica, policy);
    const TokensPerStep tokens = tokens_per_step(policy.speculation);
    const double overshoot = (tokens.square - tokens.mean) / (2.0 * tokens.mean);
    const double each = policy.speculation.tokens + 1.0;
    auto shares = mix.shares();
    if (policy.role == Role::decode) {
        std::erase_if(shares, [](const Share& share) { return share.output < 2.0; });
        if (shares.empty()) return fail("no request writes more than one token: there is nothing to decode");
        double sum = 0.0;
        for (const Share& share : shares) sum += share.weight;
        for (Share& share : shares) share.weight /= sum;
    }
    demand.alike = shares.size() == 1;
    double squares = 0.0;
    double whole_squares = 0.0;
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
        squares += weight * steps * (steps + (tokens.square - tokens.mean * tokens.mean) / (tokens.mean * tokens.mean));
        demand.prompt_bytes += weight * at_entry;
        demand.admitted_bytes += weight * at_entry;
        demand.growth_bytes += weight * (whole - at_entry);
        demand.whole_bytes += weight * (steps + 1.0) * whole;
        whole_squares += weight * (steps + 1.0) * whole * whole;
        for (int quarter = 0; quarter < quarters && steps > 0.0; ++quarter) {
            const double past = share.prompt + std::floor((output - 1.0) * (quarter + 0.5) / quarters);
            const double part = weight * steps / quarters;
            gather(demand.contexts, part, past);
            demand.decode_bytes += part * (reserving ? whole : footprint.bytes(share.prompt, past + each));
        }
    }
    const double stays = demand.decode_steps + 1.0;
    demand.whole_bytes /= stays;
    const double whole_variance = whole_squares / stays - demand.whole_bytes * demand.whole_bytes;
    demand.whole_variation = std::sqrt(std::max(0.0, whole_variance)) / demand.whole_bytes;
    if (demand.decode_steps > 0.0) {
        for (Demand::Context& context : demand.contexts) context.fraction /= demand.decode_steps;
        demand.decode_bytes /= demand.decode_steps;
        const double variance = squares - demand.decode_steps * demand.decode_steps;
        demand.decode_variation = std::sqrt(std::max(0.0, variance)) / demand.decode_steps;
    }
    return demand;
}

/// A step as the steady state has it on average, in units of steps: no price has been asked yet.
struct Pace {
    double arrivals = 0.0;   // requests that come and go per step
    double decoding = 0.0;   // sequences (samples included) that write in a step
    double room = 0.0;       // budget left for prompts
    double fresh = 0.0;      // prompt tokens per request, recomputed ones included
    double spans = 1.0;      // steps that a prompt spans
    double delay = 0.0;      // steps that it waits for the budget
    double clustered = 0.0;  // how much requests march in step: 0 at random, 1 all together
    double slots = 0.0;      // 0: without limit
    double use = 0.0;        // with a clock: arrivals over capacity
    double clock = 0.0;      // > 0: the arrivals are those of this many seconds, and a longer step sees more of them
    double running = 0.0;
    Limit limit = Limit::pool;
};

class Analysis {
  public:
    Analysis(const Replica& replica, const Policy& policy, const Demand& demand)
        : replica_(replica), policy_(policy), demand_(demand), stages_(replica.pipeline_stages) {}

    /// S6: as many requests at once as pool, sequences and `most` allow.
    Pace pace(double most) const {
        Pace pace;
        pace.fresh = demand_.fresh;
        const double room = replica_.pool_bytes - common_bytes();
        const double by_sequences = std::floor(replica_.max_sequences / policy_.samples);
        double slots = std::min(by_sequences, most);
        pace.limit = most < by_sequences ? Limit::users : Limit::sequences;
        settle(pace, slots, std::numeric_limits<double>::infinity());
        const bool optimistic = policy_.admission == Admission::optimistic;
        const double memory = std::isinf(room) ? room : optimistic ? optimistic_bytes(room) : reserved_bytes(room);
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

    /// S9: requests that come at `arrivals` per step whatever happens, as one of them sees it: with itself, beside as
    /// many others as there are on average.
    Pace seen_by_one(double arrivals) const {
        Pace pace = open(arrivals);
        if (demand_.decode_steps > 0.0) pace.decoding += policy_.samples;
        pace.room = std::max(1.0, replica_.max_step_tokens - pace.decoding * (policy_.speculation.tokens + 1.0));
        return pace;
    }
    /// The same as steps see it: only those count in which there is somebody.
    Pace seen_by_steps(double arrivals) const {
        Pace pace = open(arrivals);
        const double mean = pace.decoding / policy_.samples;
        if (mean > 1e-9) pace.decoding *= 1.0 / (1.0 - exponential(-mean));
        return pace;
    }

    /// S8: mean times and work of the steps of a pace.
    struct Times {
        double interval = 0.0;  // from one step to the next
        double met = 0.0;       // the step that somebody meets who comes at any time: long ones are met more often
        double prompt = 0.0;    // that the steps of a prompt take, mean over requests
        double flops = 0.0;
        double memory_bytes = 0.0;
    };
    Times times(const Pace& pace) {
        Times result;
        if (pace.clustered < 1.0) add(result, 1.0 - pace.clustered, at_random(pace));
        if (pace.clustered > 0.0) add(result, pace.clustered, together(pace));
        return result;
    }

    /// A pipeline in which as many come as go is followed step by step.
    bool followed(const Pace& pace) const { return stages_ > 1.0 && pace.slots > 0.0; }

    /// Its times, and the pace that is kept when steps wait for each other.
    std::pair<Times, Pace> in_line(const Pace& asked) {
        PipelineInput input{.stages = static_cast<std::size_t>(stages_),
                            .slots = static_cast<std::size_t>(std::max(1.0, std::floor(asked.slots + 0.5))),
                            .budget = replica_.max_step_tokens,
                            .step_tokens = step_tokens_of_one(),
                            .samples = policy_.samples,
                            .holds_up = replica_.holds_up,
                            .requests = {}};
        // What is computed twice is spread over all prompts.
        const double again = demand_.fresh > 0.0 ? asked.fresh / demand_.fresh : 1.0;
        for (std::size_t i = 0; i < demand_.prompts.size(); ++i)
            input.requests.push_back({demand_.prompts[i].weight, demand_.prompts[i].tokens * again, demand_.steps[i]});
        const PipelineFlow flow = follow(input, table(asked, static_cast<double>(input.slots)));
        Pace pace = asked;
        pace.arrivals = flow.ended;
        pace.decoding = flow.writing * policy_.samples;
        pace.running = flow.inside;
        pace.delay = 0.0;  // within the time of the prompt
        return {{.interval = flow.interval,
                 .met = flow.interval,
                 .prompt = flow.prompt,
                 .flops = flow.flops,
                 .memory_bytes = flow.memory_bytes},
                pace};
    }

    double stages() const { return stages_; }

  private:
    /// Prices for the steps of a pipeline with so many requests inside.
    StepTable table(const Pace& pace, double slots) {
        StepTable result;
        result.most_decoding = std::max(1.0, std::ceil(slots / stages_)) * policy_.samples;
        const double most = demand_.fresh > 0.0 ? std::min(replica_.max_step_tokens, slots * pace.fresh + 1.0) : 0.0;
        result.tokens = {0.0};
        for (double tokens = 16.0; tokens < most; tokens *= 2.0) result.tokens.push_back(tokens);
        if (most > 0.0) result.tokens.push_back(most);
        Pace step = pace;
        for (const double tokens : result.tokens) {
            auto& row = result.costs.emplace_back();
            for (std::size_t i = 0; i < StepTable::counts; ++i) {
                const double share = static_cast<double>(i) / static_cast<double>(StepTable::counts - 1);
                step.decoding = share * result.most_decoding;
                if (tokens == 0.0) step.decoding = std::max(step.decoding, std::min(1.0, result.most_decoding));
                step.room = std::max(1.0, tokens);
                row[i] = price(step, tokens);
            }
        }
        return result;
    }

    Pace open(double arrivals) const {
        Pace pace;
        pace.fresh = demand_.fresh;
        pace.limit = Limit::rate;
        fill(pace, std::min(arrivals, most_arrivals(pace)));
        return pace;
    }

    double common_bytes() const {
        return policy_.prefix.common > 0.0 ? replica_.sequence_bytes(policy_.prefix.common) : 0.0;
    }
    double step_tokens_of_one() const { return (policy_.speculation.tokens + 1.0) * policy_.samples; }

    /// Every step full: what a request puts through the model over what a step takes.
    double most_arrivals(const Pace& pace) const {
        return replica_.max_step_tokens / std::max(pace.fresh + demand_.decode_steps * step_tokens_of_one(), 1e-9);
    }

    double bytes(const Pace& pace) const {
        const double stage = stages_;
        return pace.arrivals * (stage * demand_.decode_steps * demand_.decode_bytes +
                                (pace.spans + pace.delay + stage - 1.0) * demand_.prompt_bytes);
    }

    /// Everything that follows from the arrivals per step.
    void fill(Pace& pace, double arrivals) const {
        pace.arrivals = arrivals;
        pace.decoding = arrivals * demand_.decode_steps * policy_.samples;
        pace.room = std::max(1.0, replica_.max_step_tokens - arrivals * demand_.decode_steps * step_tokens_of_one());
        double spans = 0.0;
        double first = 0.0;
        double second = 0.0;
        for (const PromptSize& size : demand_.prompts) {
            const double rooms = size.tokens / pace.room;
            spans += size.weight * std::ceil(rooms);
            first += size.weight * rooms;
            second += size.weight * rooms * rooms;
        }
        const double load = std::min(1.0, arrivals * pace.fresh / pace.room);
        const double others = pace.slots > 0.0 ? (pace.slots - 1.0) / pace.slots : 1.0;
        pace.spans = demand_.fresh > 0.0 ? spans : 0.0;
        pace.delay = first > 0.0 ? load * second / (2.0 * first) / std::max(1.0 - load * others, 1e-6) : 0.0;
        const double stage = stages_;
        pace.running = arrivals * (stage * demand_.decode_steps + pace.spans + pace.delay + (stage - 1.0));
    }

    /// The arrivals at which slots or memory are used up, by bisection.
    void settle(Pace& pace, double slots, double memory) const {
        double low = 0.0;
        double high = most_arrivals(pace);
        pace.slots = slots;
        for (int round = 0; round < 60; ++round) {
            const double middle = (low + high) / 2.0;
            fill(pace, middle);
            (pace.running > slots || bytes(pace) > memory ? high : low) = middle;
        }
        fill(pace, low);
        if (memory < std::numeric_limits<double>::infinity())
            pace.slots = std::max(1.0, std::floor(pace.running + 0.5));
    }

    /// S6: the part of the pool that is in use on average when the next request does not fit. Requests of one size use
    /// it up to the last that fits; of many sizes, all but half a request.
    double reserved_bytes(double room) const {
        const double whole = demand_.whole_bytes;
        const double fit = std::floor(room / whole);
        const double smeared = std::min(1.0, 2.0 * std::sqrt(std::max(fit, 1.0)) * demand_.whole_variation);
        return std::max(whole, (1.0 - smeared) * fit * whole + smeared * (room - whole / 2.0));
    }

    /// The same for an optimistic engine: all but half a prompt and the watermark, and never fewer requests than fit
    /// at their full length.
    double optimistic_bytes(double room) const {
        const double one = std::max(demand_.decode_bytes, demand_.prompt_bytes);
        const double kept = policy_.watermark * replica_.pool_bytes;
        return std::max({one, room - kept - demand_.admitted_bytes / 2.0,
                         reserved_bytes(room - kept) / demand_.whole_bytes * demand_.decode_bytes});
    }

    /// S9: what an optimistic engine computes twice, and how much it makes requests march in step.
    void recompute(Pace& pace, double pressure, double slots, double memory) const {
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

    /// Requests that were admitted together end together if their outputs are alike, and nothing pulls them apart.
    double march() const {
        const double spread = demand_.decode_variation / 0.12;
        return exponential(-spread * spread);
    }

    StepCost price(const Pace& pace, double tokens) {
        plan_.clear();
        if (tokens > 0.0) add_prompts(pace, tokens);
        for (const Demand::Context& context : demand_.contexts) {
            const double count = context.fraction * pace.decoding;
            if (count > 0.0) plan_.decode(count, context.past);
        }
        return plan_.cost(replica_, policy_);
    }

    /// `tokens` prompt tokens of the mix: every size in proportion, long prompts in the middle of their way.
    void add_prompts(const Pace& pace, double tokens) {
        for (const PromptSize& size : demand_.prompts) {
            if (size.tokens <= 0.0) continue;
            const double part = tokens * size.weight * size.tokens / demand_.fresh;
            const double chunk = std::min({size.tokens, tokens, pace.room});
            const double count = part / chunk;
            const double cached = size.past;
            plan_.chunk(count, chunk, cached + (size.tokens - chunk) / 2.0, chunk / size.tokens);
        }
    }

    static void add(Times& sum, double weight, const Times& part) {
        sum.interval += weight * part.interval;
        sum.met += weight * part.met;
        sum.prompt += weight * part.prompt;
        sum.flops += weight * part.flops;
        sum.memory_bytes += weight * part.memory_bytes;
    }

    double interval(const StepCost& cost) const { return stages_ > 1.0 ? cost.interval : cost.latency; }

    /// Requests come and go at random: steps are as full as the chain says.
    Times at_random(const Pace& pace) {
        BacklogInput input{.sizes = demand_.prompts,
                           .arrivals = demand_.fresh > 0.0 ? pace.arrivals * pace.fresh / demand_.fresh : 0.0,
                           .sources = pace.slots,
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
        for (std::size_t i = 0; i < costs.size(); ++i) {
            const double probability = chain.level[i];
            result.interval += probability * interval(costs[i]);
            result.met += probability * interval(costs[i]) * interval(costs[i]);
            result.flops += probability * costs[i].flops;
            result.memory_bytes += probability * costs[i].memory_bytes;
        }
        double slower = 1.0;
        if (stages_ > 1.0 && replica_.holds_up && !chain.arriving.empty()) slower = waiting_in_line(chain, grid, costs);
        if (result.interval > 0.0) result.met /= result.interval;
        const double crowd = pace.clock > 0.0 ? result.met / result.interval : 1.0;
        result.prompt = slower * prompt_seconds(pace, crowd * pace.arrivals * pace.fresh);
        result.interval *= slower;
        result.met *= slower;
        return result;
    }

    /// How long the steps of a prompt take, beside `others` tokens of other prompts, through all stages.
    double prompt_seconds(const Pace& met, double others) {
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
            const double before = std::max(0.0, std::ceil(tokens / pace.room) - 1.0);
            const double last = interval(price(pace, std::min(tokens - before * pace.room + others, pace.room)));
            sum += weight * (before * full + stages_ * last);
        }
        return sum;
    }

    /// Levels beyond which there is next to nothing.
    static std::size_t likely(const Backlog& chain) {
        std::size_t used = chain.level.size();
        for (double tail = 0.0; used > 1; --used) {
            tail += chain.level[used - 1];
            if (tail > 1e-6) break;
        }
        return used;
    }

    /// A cost for every level of the chain: priced at some twenty, between them linear. No prompt at all is a case of
    /// its own, because engines run such steps differently.
    std::vector<StepCost> ladder(const Pace& pace, const BacklogGrid& grid, std::size_t used) {
        std::vector<StepCost> costs(used);
        costs[0] = price(pace, 0.0);
        const std::size_t stride = std::max<std::size_t>(1, used / 20);
        std::size_t last = 0;
        for (std::size_t i = 1; i < used; i = std::min(i + stride, std::max(i + 1, used - 1))) {
            costs[i] = price(pace, static_cast<double>(i) * grid.cell);
            for (std::size_t k = last + 1; k < i && last > 0; ++k) {
                costs[k] =
                    between(costs[last], costs[i], static_cast<double>(k - last) / static_cast<double>(i - last));
            }
            last = i;
        }
        return costs;
    }

    static StepCost between(const StepCost& a, const StepCost& b, double part) {
        const auto mixed = [part](double x, double y) { return x + part * (y - x); };
        return {mixed(a.latency, b.latency), mixed(a.interval, b.interval), mixed(a.flops, b.flops),
                mixed(a.memory_bytes, b.memory_bytes)};
    }

    /// Requests march in step: all prompts come at once, and then nobody's for as long as the outputs last.
    Times together(const Pace& pace) {
        const double each = pace.arrivals * pace.fresh;  // prompt tokens per step
        const double burst = std::clamp(pace.slots * pace.fresh, each, pace.room);
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

    /// S9: at a rate, steps of unlike length wait for each other in a pipeline, and a group of sequences for its own
    /// step.
    class Line {
      public:
        explicit Line(double stages)
            : stages_(stages), ready_(static_cast<std::size_t>(stages), 0.0), finished_(ready_) {}

        /// When the next step can start: its group is back, and the first stage is free.
        double start() const { return std::max(finished_[next()], ready_.front()); }
        std::size_t next() const { return step_ % finished_.size(); }
        std::size_t groups() const { return finished_.size(); }
        double finished(std::size_t group) const { return finished_[group]; }

        void pass(const StepCost& cost) {
            const double slowest = std::clamp(cost.interval, cost.latency / stages_, cost.latency);
            const double others = (cost.latency - slowest) / (stages_ - 1.0);
            double& time = finished_[next()];
            for (std::size_t stage = 0; stage < ready_.size(); ++stage) {
                time = std::max(time, ready_[stage]) + (stage == 0 ? slowest : others);
                ready_[stage] = time;
            }
            end_ = time;
            busy_ += slowest;
            ++step_;
        }
        /// The time they took over the sum of their intervals.
        double slower() const { return busy_ > 0.0 ? std::max(1.0, end_ / busy_) : 1.0; }

      private:
        double stages_;
        std::vector<double> ready_;
        std::vector<double> finished_;
        std::size_t step_ = 0;
        double end_ = 0.0;
        double busy_ = 0.0;
    };

    /// The chain followed for a while through a pipeline. What a step leaves behind comes when it is through: steps
    /// that were held up behind a long one come through together, and their prompts pile up in the next.
    double waiting_in_line(const Backlog& chain, const BacklogGrid& grid, const std::vector<StepCost>& costs) const {
        constexpr int followed = 10000;
        std::vector<double> below(chain.arriving.size());
        double sum = 0.0;
        for (std::size_t i = 0; i < below.size(); ++i) below[i] = sum += chain.arriving[i];
        Random random(1);
        Line line(stages_);
        std::vector<std::size_t> brings(line.groups(), 0);
        std::size_t waiting = 0;
        for (int step = 0; step < followed; ++step) {
            const double start = line.start();
            for (std::size_t group = 0; group < brings.size(); ++group) {
                if (line.finished(group) <= start) waiting += std::exchange(brings[group], 0);
            }
            const std::size_t level = std::min({waiting, grid.room, costs.size() - 1});
            waiting = std::min(waiting - level, 8 * below.size());
            const auto come = std::lower_bound(below.begin(), below.end() - 1, random.uniform()) - below.begin();
            brings[line.next()] = static_cast<std::size_t>(come);
            line.pass(costs[level]);
        }
        return line.slower();
    }

    const Replica& replica_;
    const Policy& policy_;
    const Demand& demand_;
    double stages_;
    StepPlan plan_;
};

}  // namespace

std::string_view name(Limit limit) {
    switch (limit) {
        case Limit::pool:
            return "memory for keys and values";
        case Limit::sequences:
            return "sequences at once";
        case Limit::step_tokens:
            return "tokens of a step";
        case Limit::users:
            return "users";
        case Limit::rate:
            return "arrivals";
    }
    return "";
}

namespace {

struct Case {
    const Replica& replica;
    const Policy& policy;
    const Demand& demand;
    Analysis& analysis;
};

/// Flow and times of a pace in which as many come as go: there is always somebody.
Steady closed(const Case& the, const Pace& asked) {
    const bool followed = the.analysis.followed(asked);
    const auto [times, pace] = followed ? the.analysis.in_line(asked) : std::pair(the.analysis.times(asked), asked);
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
    flow.preemptions =
        the.demand.prompt > 0.0 ? result.recomputed / (the.demand.prompt + the.demand.output / 2.0) : 0.0;
    result.itl = stages * times.interval;
    if (the.demand.decode_steps > 0.0) {
        // A sequence that writes does not meet its own prompt: what it stays, less the time of that (Little).
        const double stay = pace.running * times.interval / std::max(pace.arrivals, 1e-300);
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

/// Seconds in front of the running set with `places` always in use at `residence` each (Sakasegawa).
double wait_for_a_place(double use, double places, double residence) {
    return power(use, std::sqrt(2.0 * (places + 1.0)) - 1.0) / (places * (1.0 - use)) * residence;
}

/// S9: the same where few are served faster than many. The number of requests inside is a chain of births at the rate
/// and deaths at the throughput of so many; who comes beyond the running set waits.
double wait_in_line(const Case& the, double rate, double running, const Steady& full) {
    const double places = std::floor(full.running + 0.5);
    std::vector<std::pair<double, double>> known = {{0.0, 0.0}};  // requests inside, requests per second
    const double from = std::min(running, places);
    for (const double inside : {0.5 * from, 0.75 * from, from, from + 0.25 * (places - from),
                                from + 0.5 * (places - from), from + 0.75 * (places - from)}) {
        const double whole = std::floor(inside + 0.5);
        if (whole <= known.back().first || whole >= places) continue;
        known.emplace_back(whole, closed(the, the.analysis.pace(whole)).flow.requests);
    }
    known.emplace_back(places, full.capacity);
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
    const double use = rate / full.capacity;
    const double waiting = weight * use / ((1.0 - use) * (1.0 - use));
    return waiting / (sum + weight * use / (1.0 - use)) / rate;
}

/// S9: the time between steps and the requests that come meanwhile, each from the other.
Steady arriving(const Case& the, double rate, const Load& load, const Steady& full) {
    const Demand& demand = the.demand;
    double time = 0.0;
    Pace pace = the.analysis.seen_by_one(0.0);
    Analysis::Times times;
    for (int round = 0; round < 60; ++round) {
        times = the.analysis.times(pace);
        const bool settled = times.interval - time <= 1e-6 * times.interval;
        time = times.interval;
        if (settled) break;
        pace = the.analysis.seen_by_one(rate * time);
        pace.clock = time;
        pace.use = rate / full.capacity;
    }
    Steady result = closed(the, pace);
    result.itl = the.replica.pipeline_stages * times.interval;
    result.capacity = full.capacity;
    const double prompt = times.prompt + pace.delay * times.interval;
    const double residence = prompt + result.itl * demand.decode_steps;
    Flow& flow = result.flow;
    flow.requests = rate;
    flow.busy = 1.0 - exponential(-rate * residence);
    Pace steps = the.analysis.seen_by_steps(rate * time);
    steps.clock = time;
    steps.use = rate / full.capacity;
    const auto mean = the.analysis.times(steps);
    flow.steps = mean.interval > 0.0 ? flow.busy / mean.interval : 0.0;
    flow.step_seconds = mean.interval;
    flow.decoding = flow.steps > 0.0 ? rate * demand.decode_steps * the.policy.samples / flow.steps : 0.0;
    flow.flops = mean.flops * flow.steps;
    flow.memory_bytes = mean.memory_bytes * flow.steps;
    result.running = rate * residence;
    result.prompt_step_tokens = flow.steps > 0.0 ? rate * demand.fresh / flow.steps : 0.0;
    // The queue in front of the running set: nothing far from capacity, everything near it.
    const double places = std::max(1.0, full.running);
    const double uneven = ((load.poisson ? 1.0 : 0.0) + demand.decode_variation * demand.decode_variation) / 2.0;
    const double inside = flow.busy * times.met / 2.0 + prompt;
    result.wait = uneven * wait_for_a_place(rate / full.capacity, places, residence);
    // To follow a pipeline for every number inside would take too long.
    if (result.wait > worth_a_chain * inside && places < longest_chain && the.replica.pipeline_stages == 1)
        result.wait = uneven * wait_in_line(the, rate, result.running, full);
    result.ttft = the.policy.host_seconds_request + result.wait + inside;
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
    Analysis analysis(replica, policy, *demand);
    const Case the{replica, policy, *demand, analysis};
    constexpr double infinity = std::numeric_limits<double>::infinity();

    Steady full = closed(the, analysis.pace(infinity));
    full.capacity = full.flow.requests;
    complete(the, full);
    if (load.kind == Load::Kind::rate) {
        Steady result = load.value < full.capacity ? arriving(the, load.value, load, full) : full;
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
            result = closed(the, analysis.pace(std::max(inside, 1e-3)));
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
