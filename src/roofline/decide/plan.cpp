#include "roofline/decide/plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "roofline/core/collective.hpp"
#include "roofline/serving/deployed.hpp"
#include "roofline/serving/disaggregation.hpp"

namespace roofline::decide {
namespace {

constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
// Finalists are asked again in order until two hold; of one deployment no more than this, as its batches are much
// alike.
constexpr int tries_of_a_deployment = 12;
constexpr int tries = 600;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// A candidate as the search keeps it: places in its tables, and what came of it.
struct Pick {
    std::uint32_t main = 0;  // layout
    std::uint32_t batch = 0;
    std::uint32_t step = 0;
    std::uint32_t prefill = none;  // layout of the pool for prompts
    std::uint32_t prefill_step = 0;
    double replicas = 1.0;
    double prefill_replicas = 0.0;
    Performance performance;
    double devices = 0.0;
    double cost_per_hour = 0.0;
    double worst = 0.0;  // largest of value over target: 1 or less meets them all
    Merits merits;
};

/// A pool for prompts: a layout and a step size, per replica.
struct PromptPool {
    std::size_t layout = 0;
    std::size_t step = 0;
    double devices = 0.0;
    double capacity = 0.0;
    double capacity_limit = 0.0;
    double ttft = 0.0;
};

/// What the best of each target is, whatever the others ask.
struct Extremes {
    double ttft = infinity;
    double tpot = infinity;
    double requests = 0.0;
    double cost = infinity;
};

class Search {
  public:
    explicit Search(const PlanQuestion& question)
        : question_(question), prompt_(question.model.workload.prompt), output_(question.model.workload.generate) {}

    Plan run() {
        const double layers =
            question_.model.architecture ? static_cast<double>(question_.model.architecture->layers.size()) : 1.0;
        const bool experts = has_experts(question_.model);
        const Choices& choices = question_.choices;
        for (std::size_t offer = 0; offer < choices.offers.size(); ++offer) {
            const auto ways = ways_to_cut(choices.offers[offer].device, choices.offers[offer].count, layers, experts);
            for (std::size_t types = 0; types < choices.types.size(); ++types) {
                const std::size_t first = layouts_.size();
                for (const model::Deployment& way : ways) {
                    try_layout({offer, types, way});
                    if (choices.speculation.tokens > 0.0) try_layout({offer, types, way, true});
                }
                for (std::size_t layout = first; layout < layouts_.size(); ++layout) colocated(layout);
                if (layouts_.size() > first) kinds_.push_back({offer, types, first, layouts_.size()});
            }
        }
        if (question_.may_disaggregate) {
            for (const Kind& prompts : kinds_) {
                const std::vector<PromptPool> pools = prompt_pools(prompts);
                for (const Kind& outputs : kinds_) {
                    // Keys and values travel as they are: both pools keep them in one format.
                    if (outputs.types == prompts.types) disaggregated(prompts, pools, outputs);
                }
            }
        }
        return answer();
    }

  private:
    /// Layouts on one offer in one choice of types, beside each other in the list of all.
    struct Kind {
        std::size_t offer = 0;
        std::size_t types = 0;
        std::size_t first = 0;
        std::size_t end = 0;
    };

    const Offer& offer_of(std::size_t layout) const { return question_.choices.offers[layouts_[layout].layout.offer]; }

    void try_layout(const Layout& layout) {
        Passed passed;
        auto priced = price(question_.model, question_.choices, layout, passed);
        // Copies of what was passed over are passed over too.
        const double copies = std::floor(question_.choices.offers[layout.offer].count / layout.devices());
        counts_.impossible += copies * passed.impossible;
        counts_.not_fitting += copies * passed.not_fitting;
        counts_.candidates += copies * (passed.impossible + passed.not_fitting);
        if (!priced) return;
        counts_.layouts += 1.0;
        layouts_.push_back(std::move(*priced));
    }

    void colocated(std::size_t layout) {
        const PricedLayout& priced = layouts_[layout];
        const double copies = std::floor(offer_of(layout).count / priced.layout.devices());
        for (std::size_t batch = 0; batch < priced.batches.size(); ++batch) {
            for (std::size_t step = 0; step < priced.steps.size(); ++step) {
                if (priced.batches[batch].mixed[step].prompt_tokens <= 0.0) continue;
                const Performance one = together(priced.batches[batch], step, prompt_, output_);
                for (double replicas = 1.0; replicas <= copies; ++replicas) {
                    Pick pick;
                    pick.main = static_cast<std::uint32_t>(layout);
                    pick.batch = static_cast<std::uint32_t>(batch);
                    pick.step = static_cast<std::uint32_t>(step);
                    pick.replicas = replicas;
                    pick.performance = one;
                    pick.performance.capacity *= replicas;
                    pick.performance.capacity_limit *= replicas;
                    pick.devices = replicas * priced.layout.devices();
                    pick.cost_per_hour = pick.devices * price_of(layout);
                    counts_.candidates += 1.0;
                    consider(pick, one.capacity, priced.layout.devices(), priced.layout.devices() * price_of(layout));
                }
            }
        }
    }

    /// P4: a pool that only computes prompts.
    PromptPool prompt_pool(std::size_t layout, std::size_t step) const {
        const PricedLayout& priced = layouts_[layout];
        const StepSize& size = priced.steps[step];
        PromptPool pool{layout, step, priced.layout.devices(), 0.0, 0.0, 0.0};
        pool.capacity = size.prompt_tokens / prompt_ / size.prompts.expected;
        pool.capacity_limit = size.prompt_tokens / prompt_ / size.prompts.limit;
        pool.ttft = std::ceil(prompt_ / size.tokens) * size.alone.expected;
        return pool;
    }

    /// Pools that none of the others beats: as fast, as cheap, as small and as quick to hand over.
    std::vector<PromptPool> prompt_pools(const Kind& kind) const {
        std::vector<PromptPool> all;
        for (std::size_t layout = kind.first; layout < kind.end; ++layout) {
            if (layouts_[layout].layout.speculates) continue;  // a prompt has nothing to guess
            for (std::size_t step = 0; step < layouts_[layout].steps.size(); ++step) {
                if (layouts_[layout].steps[step].prompt_tokens > 0.0) all.push_back(prompt_pool(layout, step));
            }
        }
        const auto sent = [&](const PromptPool& pool) { return layouts_[pool.layout].prompt_bytes_on_device; };
        const auto as_good = [&](const PromptPool& a, const PromptPool& b) {
            return a.capacity / a.devices >= b.capacity / b.devices && a.devices <= b.devices && a.ttft <= b.ttft &&
                   sent(a) <= sent(b);
        };
        std::vector<PromptPool> kept;
        for (std::size_t i = 0; i < all.size(); ++i) {
            bool beaten = false;
            for (std::size_t j = 0; j < all.size() && !beaten; ++j) {
                beaten = j != i && as_good(all[j], all[i]) && (j < i || !as_good(all[i], all[j]));
            }
            if (!beaten) kept.push_back(all[i]);
        }
        all_pools_ = std::move(all);
        return kept;
    }

    /// P5: seconds that the cache of one prompt travels: every device sends, or is sent, its own part. Devices of two
    /// kinds do not stand in one node.
    double transfer(const PromptPool& from, std::size_t to, double devices) const {
        const Device& sender = offer_of(from.layout).device;
        const Device& device = offer_of(to).device;
        const double bytes =
            std::max(layouts_[from.layout].prompt_bytes_on_device, layouts_[to].prompt_bytes_on_device);
        const bool one_kind = layouts_[from.layout].layout.offer == layouts_[to].layout.offer;
        const bool leaves_the_node = !one_kind || devices > node_size(device);
        const auto rate = [&](const Device& end) {
            const Figure* bandwidth = end.bandwidth(leaves_the_node ? Level::network : link_within(end, devices));
            if (bandwidth == nullptr && !leaves_the_node) bandwidth = end.bandwidth(Level::host);
            return bandwidth != nullptr ? bandwidth->value : predict::assumed_network.value;
        };
        return bytes / std::min(rate(sender), rate(device));
    }

    static double splits(double count, double prefill_devices, double decode_devices) {
        double total = 0.0;
        for (double first = prefill_devices; first + decode_devices <= count; first += prefill_devices)
            total += std::floor((count - first) / decode_devices);
        return total;
    }

    /// Devices for prompts and for outputs, and together where they are of one offer.
    struct Supply {
        double prompts = 0.0;
        double outputs = 0.0;
        double both = infinity;

        double left_for_outputs(double taken) const { return std::min(outputs, both - taken); }
    };

    void disaggregated(const Kind& prompts, const std::vector<PromptPool>& pools, const Kind& outputs) {
        const double first_count = question_.choices.offers[prompts.offer].count;
        const double second_count = question_.choices.offers[outputs.offer].count;
        const bool one_kind = prompts.offer == outputs.offer;
        const Supply supply{first_count, second_count, one_kind ? first_count : infinity};
        for (std::size_t layout = outputs.first; layout < outputs.end; ++layout) {
            const PricedLayout& priced = layouts_[layout];
            const double devices = priced.layout.devices();
            double batches = 0.0;
            for (std::size_t batch = 0; batch < priced.batches.size(); ++batch) {
                const auto step = decode_step_size(priced, priced.batches[batch].batch);
                if (!step) continue;
                batches += 1.0;
                for (const PromptPool& pool : pools) split(pool, layout, batch, *step, supply);
            }
            for (const PromptPool& pool : all_pools_) {
                const double ways = one_kind
                                        ? splits(first_count, pool.devices, devices)
                                        : std::floor(first_count / pool.devices) * std::floor(second_count / devices);
                counts_.candidates += batches * ways;
            }
        }
    }

    /// The smallest step that takes all sequences at once, as nothing else is asked of it.
    std::optional<std::size_t> decode_step_size(const PricedLayout& priced, double batch) const {
        const model::Deployment& deployment = priced.layout.deployment;
        const double checked = priced.layout.speculates ? question_.choices.speculation.tokens + 1.0 : 1.0;
        for (std::size_t step = 0; step < priced.steps.size(); ++step) {
            if (priced.steps[step].tokens >= checked * std::ceil(batch / deployment.groups) &&
                batch <= priced.steps[step].largest_batch)
                return step;
        }
        return std::nullopt;
    }

    /// P6: for each number of prompt replicas only as many others as can follow: fewer leave prompt replicas idle, more
    /// are idle themselves.
    void split(const PromptPool& pool, std::size_t layout, std::size_t batch, std::size_t step, const Supply& supply) {
        const PricedLayout& priced = layouts_[layout];
        const double devices = priced.layout.devices();
        const BatchPrice& price = priced.batches[batch];
        const double rounds = price.rounds(output_);
        const double each = price.batch / (rounds * price.decode.expected);
        const double each_limit = price.batch / (rounds * price.decode.limit);
        for (double prompts = 1.0; prompts * pool.devices <= supply.prompts; ++prompts) {
            const double most = std::floor(supply.left_for_outputs(prompts * pool.devices) / devices);
            if (most < 1.0) break;
            const double balanced = std::floor(prompts * pool.capacity / each);
            double last = 0.0;
            const double asked = question_.targets.requests ? std::ceil(*question_.targets.requests / each) : 1.0;
            for (const double wanted : {std::min(asked, balanced), balanced, balanced + 1.0}) {
                const double replicas = std::clamp(wanted, 1.0, most);
                if (replicas <= last) continue;
                last = replicas;
                Pick pick;
                pick.main = static_cast<std::uint32_t>(layout);
                pick.batch = static_cast<std::uint32_t>(batch);
                pick.step = static_cast<std::uint32_t>(step);
                pick.prefill = static_cast<std::uint32_t>(pool.layout);
                pick.prefill_step = static_cast<std::uint32_t>(pool.step);
                pick.replicas = replicas;
                pick.prefill_replicas = prompts;
                pick.devices = prompts * pool.devices + replicas * devices;
                pick.cost_per_hour =
                    prompts * pool.devices * price_of(pool.layout) + replicas * devices * price_of(layout);
                Performance& performance = pick.performance;
                performance.transfer = transfer(pool, layout, pick.devices);
                const double link = prompts / performance.transfer;
                performance.capacity = std::min({prompts * pool.capacity, replicas * each, link});
                performance.capacity_limit = std::min({prompts * pool.capacity_limit, replicas * each_limit, link});
                performance.ttft = pool.ttft;
                performance.tpot = (rounds * price.decode.expected + performance.transfer) / (output_ - 1.0);
                consider(pick, performance.capacity, pick.devices, pick.cost_per_hour);
            }
        }
    }

    double price_of(std::size_t layout) const { return offer_of(layout).price.value_or(1.0); }

    /// `capacity`, `devices` and `cost` of the part that is copied: copies have its merits to the last digit.
    void consider(Pick& pick, double capacity, double devices, double cost) {
        counts_.priced += 1.0;
        const Performance& performance = pick.performance;
        const Targets& targets = question_.targets;
        pick.merits = {capacity * output_ / devices, 1.0 / performance.tpot,
                       cost / (3600.0 * capacity * output_) * 1e6};
        if (targets.requests && *targets.requests < performance.capacity)
            pick.merits.cost = pick.cost_per_hour / (3600.0 * *targets.requests * output_) * 1e6;
        pick.worst = 0.0;
        if (targets.ttft) pick.worst = std::max(pick.worst, performance.ttft / *targets.ttft);
        if (targets.tpot) pick.worst = std::max(pick.worst, performance.tpot / *targets.tpot);
        if (targets.requests) pick.worst = std::max(pick.worst, *targets.requests / performance.capacity);
        if (targets.cost_per_hour) pick.worst = std::max(pick.worst, pick.cost_per_hour / *targets.cost_per_hour);

        extremes_.ttft = std::min(extremes_.ttft, performance.ttft);
        extremes_.tpot = std::min(extremes_.tpot, performance.tpot);
        extremes_.requests = std::max(extremes_.requests, performance.capacity);
        extremes_.cost = std::min(extremes_.cost, pick.cost_per_hour);
        requests_limit_ = std::max(requests_limit_, performance.capacity_limit);
        if (pick.worst <= 1.0) {
            counts_.meeting += 1.0;
            meeting_front_.offer(pick.merits, pick);
            meeting_.push_back(pick);
        } else if (counts_.meeting == 0.0) {
            front_.offer(pick.merits, pick);
            if (!closest_ || pick.worst < closest_->worst) closest_ = pick;
        }
    }

    /// True if `a` is to be taken before `b`.
    bool before(const Pick& a, const Pick& b) const {
        const bool rated = question_.targets.requests.has_value();
        const auto key = [&](const Pick& pick) {
            const Performance& performance = pick.performance;
            // At a rate that is asked for, the hour counts; else the token, and copies come later.
            const double cost = rated ? pick.cost_per_hour : pick.merits.cost;
            switch (question_.aim) {
                case Aim::cost:
                    return std::array{cost, pick.cost_per_hour, -performance.capacity, performance.tpot,
                                      performance.ttft};
                case Aim::throughput:
                    return std::array{-performance.capacity, cost, pick.cost_per_hour, performance.tpot,
                                      performance.ttft};
                case Aim::latency:
                    return std::array{performance.tpot, performance.ttft, cost, pick.cost_per_hour,
                                      -performance.capacity};
            }
            return std::array<double, 5>{};
        };
        return key(a) < key(b);
    }

    static bool same_layouts(const Pick& a, const Pick& b) { return a.main == b.main && a.prefill == b.prefill; }

    /// P7: a layout as an engine would run it.
    Result<serving::Deployed> deployed(std::size_t layout, double step, double batch) const {
        const Layout& of = layouts_[layout].layout;
        const auto scenario = predict::realise(setup_of(question_.model, question_.choices, of, step, batch));
        if (!scenario) return std::unexpected(scenario.error());
        serving::Deployed result(*scenario, serving::Price::expected);
        result.max_sequences = batch;
        result.max_step_tokens = step * of.deployment.groups;
        return result;
    }

    serving::Mix mix() const {
        if (question_.mix) return *question_.mix;
        serving::Mix result;
        result.prompt = serving::Lengths::fixed(prompt_);
        result.output = serving::Lengths::fixed(output_);
        return result;
    }

    serving::Policy policy_of(std::size_t layout) const {
        serving::Policy policy;
        if (layouts_[layout].layout.speculates) policy.speculation = question_.choices.speculation;
        return policy;
    }

    Result<Served> serve_together(const Pick& pick) const {
        const PricedLayout& priced = layouts_[pick.main];
        const auto replica = deployed(pick.main, priced.steps[pick.step].tokens, priced.batches[pick.batch].batch);
        if (!replica) return std::unexpected(replica.error());
        const serving::Policy policy = policy_of(pick.main);
        const auto full = serving::steady(*replica, policy, mix(), serving::Load::saturated());
        if (!full) return std::unexpected(full.error());
        Served served{full->capacity * pick.replicas, full->ttft, full->tpot, 0.0, full->running, false};
        if (!question_.targets.requests) return served;
        const auto loaded =
            serving::steady(*replica, policy, mix(), serving::Load::rate(*question_.targets.requests / pick.replicas));
        if (!loaded) return std::unexpected(loaded.error());
        served.ttft = loaded->ttft;
        served.tpot = loaded->tpot;
        served.wait = loaded->wait;
        served.running = loaded->running;
        served.overloaded = loaded->overloaded;
        return served;
    }

    Result<Served> serve_apart(const Pick& pick) const {
        const PricedLayout& priced = layouts_[pick.main];
        const StepSize& size = layouts_[pick.prefill].steps[pick.prefill_step];
        const auto first = deployed(pick.prefill, size.tokens, size.largest_batch);
        if (!first) return std::unexpected(first.error());
        const auto second = deployed(pick.main, priced.steps[pick.step].tokens, priced.batches[pick.batch].batch);
        if (!second) return std::unexpected(second.error());
        serving::Pools pools;
        pools.prefill = {&*first, {}, pick.prefill_replicas};
        pools.decode = {&*second, policy_of(pick.main), pick.replicas};
        pools.link_bytes_per_second = second->sequence_bytes(prompt_) / pick.performance.transfer;
        const auto full = serving::disaggregate(pools, mix(), serving::Load::saturated());
        if (!full) return std::unexpected(full.error());
        Served served{full->capacity, full->ttft, full->tpot, 0.0, full->decode.running, false};
        if (!question_.targets.requests) return served;
        const auto loaded = serving::disaggregate(pools, mix(), serving::Load::rate(*question_.targets.requests));
        if (!loaded) return std::unexpected(loaded.error());
        served.ttft = loaded->ttft;
        served.tpot = loaded->tpot;
        served.wait = loaded->prefill.wait;
        served.running = loaded->decode.running;
        served.overloaded = loaded->overloaded;
        return served;
    }

    Result<Served> serve(const Pick& pick) {
        counts_.served += 1.0;
        return pick.prefill == none ? serve_together(pick) : serve_apart(pick);
    }

    bool holds(const Served& served) const {
        const Targets& targets = question_.targets;
        return !served.overloaded && (!targets.ttft || served.ttft <= *targets.ttft) &&
               (!targets.tpot || served.tpot <= *targets.tpot);
    }

    /// The best that holds when asked again, and the best of those that are cut or placed in another way.
    std::vector<Deploy> finalists() {
        std::vector<std::uint32_t> order(meeting_.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
        const auto later = [&](std::uint32_t a, std::uint32_t b) {
            if (before(meeting_[b], meeting_[a])) return true;
            return !before(meeting_[a], meeting_[b]) && b < a;
        };
        std::make_heap(order.begin(), order.end(), later);
        std::map<std::array<double, 4>, int> tried;
        std::vector<Deploy> found;
        const Pick* best = nullptr;
        for (int left = tries; left > 0 && !order.empty() && found.size() < 2;) {
            std::pop_heap(order.begin(), order.end(), later);
            const Pick& pick = meeting_[order.back()];
            order.pop_back();
            if (best != nullptr && same_layouts(*best, pick)) continue;
            int& times = tried[{static_cast<double>(pick.main), static_cast<double>(pick.prefill), pick.replicas,
                                pick.prefill_replicas}];
            if (times >= tries_of_a_deployment) continue;
            ++times;
            --left;
            const auto served = serve(pick);
            if (!served) continue;
            if (!holds(*served)) {
                if (!nearly_) nearly_ = in_full(pick, *served);
                continue;
            }
            found.push_back(in_full(pick, *served));
            if (best == nullptr) best = &pick;
        }
        return found;
    }

    Fleet fleet(std::size_t layout, double replicas, double batch, double step) const {
        const PricedLayout& priced = layouts_[layout];
        return {priced.layout, priced.weight_types, priced.kv_type, replicas, batch, step};
    }

    Obstacle obstacle_of(const Pick& pick) const {
        const PricedLayout& priced = layouts_[pick.main];
        const Performance& performance = pick.performance;
        if (pick.prefill != none) {
            const double prompts = prompt_pool(pick.prefill, pick.prefill_step).capacity * pick.prefill_replicas;
            if (performance.capacity == prompts) return Obstacle::prefill_pool;
            if (performance.capacity == pick.prefill_replicas / performance.transfer) return Obstacle::link;
        }
        const double room = priced.steps[pick.step].largest_batch;
        for (std::size_t next = pick.batch + 1; next < priced.batches.size(); ++next) {
            if (priced.batches[next].batch > room) return Obstacle::kv_capacity;
            if (pick.prefill != none) {
                const BatchPrice& larger = priced.batches[next];
                const double tpot =
                    (larger.rounds(output_) * larger.decode.expected + performance.transfer) / (output_ - 1.0);
                return question_.targets.tpot && tpot > *question_.targets.tpot ? Obstacle::tpot_target
                                                                                : Obstacle::decode_pool;
            }
            if (priced.batches[next].mixed[pick.step].prompt_tokens <= 0.0) return Obstacle::sequences;
            const Performance larger = together(priced.batches[next], pick.step, prompt_, output_);
            if (question_.targets.tpot && larger.tpot > *question_.targets.tpot) return Obstacle::tpot_target;
            if (question_.targets.ttft && larger.ttft > *question_.targets.ttft) return Obstacle::ttft_target;
            return Obstacle::aim;
        }
        return priced.batch_held_by_memory ? Obstacle::kv_capacity : Obstacle::sequences;
    }

    /// With what `serving` says in place of the closed form.
    Deploy in_full(const Pick& pick, const Served& served) const {
        Deploy deploy = in_full(pick);
        deploy.served = served;
        const Targets& targets = question_.targets;
        const double sold = targets.requests ? std::min(*targets.requests, served.capacity) : served.capacity;
        deploy.merits = {served.capacity * output_ / pick.devices, 1.0 / served.tpot,
                         pick.cost_per_hour / (3600.0 * sold * output_) * 1e6};
        return deploy;
    }

    Deploy in_full(const Pick& pick) const {
        const PricedLayout& priced = layouts_[pick.main];
        const BatchPrice& price = priced.batches[pick.batch];
        Deploy deploy;
        deploy.main = fleet(pick.main, pick.replicas, price.batch, priced.steps[pick.step].tokens);
        deploy.performance = pick.performance;
        deploy.devices = pick.devices;
        deploy.cost_per_hour = pick.cost_per_hour;
        deploy.merits = pick.merits;
        deploy.decode_bound = price.decode.bound;
        if (pick.prefill != none) {
            const StepSize& size = layouts_[pick.prefill].steps[pick.prefill_step];
            deploy.prefill = fleet(pick.prefill, pick.prefill_replicas, 0.0, size.tokens);
            deploy.prefill_bound = size.prompts.bound;
        } else {
            const Mixed& mixed = price.mixed[pick.step];
            deploy.prefill_bound = mixed.round.bound;
            const double with_prompt = prompt_ / mixed.prompt_tokens;
            deploy.prefill_share =
                std::min(1.0, with_prompt * mixed.round.expected * pick.performance.capacity / pick.replicas);
        }
        deploy.obstacle = obstacle_of(pick);
        return deploy;
    }

    /// Which target fails and by how much: alone, or only beside the others.
    void explain_misses(Plan& plan) {
        if (nearly_)
            plan.closest = nearly_;
        else if (closest_) {
            const auto served = serve(*closest_);
            plan.closest = served ? in_full(*closest_, *served) : in_full(*closest_);
        }
        if (!plan.closest) return;
        const Targets& targets = question_.targets;
        const auto add = [&](Target target, const std::optional<double>& asked, double best, double closest,
                             bool more_is_better) {
            if (!asked) return;
            const auto missed = [&](double value) { return more_is_better ? value < *asked : value > *asked; };
            if (missed(best))
                plan.misses.push_back({target, *asked, best, true});
            else if (missed(closest))
                plan.misses.push_back({target, *asked, closest, false});
        };
        const Deploy& near = *plan.closest;
        const Performance& performance = near.performance;
        add(Target::ttft, targets.ttft, extremes_.ttft, near.served ? near.served->ttft : performance.ttft, false);
        add(Target::tpot, targets.tpot, extremes_.tpot, near.served ? near.served->tpot : performance.tpot, false);
        add(Target::requests, targets.requests, extremes_.requests,
            near.served ? near.served->capacity : performance.capacity, true);
        add(Target::cost, targets.cost_per_hour, extremes_.cost, near.cost_per_hour, false);
    }

    /// The front of the closed form asked again: what does not hold then is left out, and so is what is beaten then.
    std::vector<Deploy> front() {
        Front<Deploy> result;
        for (const auto& entry : (meeting_.empty() ? front_ : meeting_front_).entries()) {
            const auto served = serve(entry.item);
            if (!served || (!meeting_.empty() && !holds(*served)) || served->overloaded) continue;
            const Deploy deploy = in_full(entry.item, *served);
            result.offer(deploy.merits, deploy);
        }
        std::vector<Deploy> all;
        for (const auto& entry : result.entries()) all.push_back(entry.item);
        return all;
    }

    Plan answer() {
        Plan plan;
        plan.model_name = question_.model.model_name;
        plan.model_title = question_.model.model_title;
        plan.notes = question_.model.notes;
        for (const Offer& offer : question_.choices.offers) plan.priced_in_money |= offer.price.has_value();
        plan.best = finalists();
        if (plan.best.empty()) explain_misses(plan);
        plan.front = front();
        std::stable_sort(plan.front.begin(), plan.front.end(), [](const Deploy& a, const Deploy& b) {
            return std::array{-a.merits.per_user, -a.merits.per_device, a.merits.cost} <
                   std::array{-b.merits.per_user, -b.merits.per_device, b.merits.cost};
        });
        plan.requests_limit = requests_limit_;
        counts_.beaten_early = counts_.candidates - counts_.impossible - counts_.not_fitting - counts_.priced;
        plan.counts = counts_;
        add_notes(plan);
        return plan;
    }

    void add_notes(Plan& plan) const {
        const double longest = question_.model.architecture ? question_.model.architecture->longest_context : 0.0;
        if (longest > 0.0 && prompt_ + output_ > longest) {
            plan.notes.push_back(
                fmt::format("requests of {:.0f} tokens are longer than the {:.0f} the model was made for",
                            prompt_ + output_, longest));
        }
        bool network = false;
        bool narrowed = false;
        for (const Deploy& deploy : plan.best) {
            const Offer& offer = question_.choices.offers[deploy.main.layout.offer];
            const bool mixed = deploy.prefill && deploy.prefill->layout.offer != deploy.main.layout.offer;
            network |= (mixed || deploy.devices > node_size(offer.device)) &&
                       offer.device.bandwidth(Level::network) == nullptr &&
                       (deploy.prefill || deploy.main.layout.deployment.node > 0.0);
            narrowed |= !(question_.choices.types[deploy.main.layout.types] == predict::TypeChoice{});
        }
        if (network) plan.notes.emplace_back("the network between nodes is assumed: 50 GB/s per device and direction");
        if (narrowed)
            plan.notes.emplace_back(
                "types other than the checkpoint's: what they do to the answers is not judged here");
        if (question_.choices.speculation.tokens > 0.0)
            plan.notes.emplace_back(
                "guessing ahead was tried beside not guessing, as --speculate says; the memory of what guesses is not "
                "counted");
        if (!plan.priced_in_money) plan.notes.emplace_back("no --price: cost is in device-hours");
    }

    const PlanQuestion& question_;
    double prompt_;
    double output_;
    std::vector<PricedLayout> layouts_;
    std::vector<Kind> kinds_;
    mutable std::vector<PromptPool> all_pools_;
    Counts counts_;
    Extremes extremes_;
    double requests_limit_ = 0.0;
    Front<Pick> front_;
    Front<Pick> meeting_front_;
    std::vector<Pick> meeting_;
    std::optional<Deploy> nearly_;  // met the targets by P3 to P6, but not when asked again
    std::optional<Pick> closest_;
};

}  // namespace

std::string_view name(Target target) {
    switch (target) {
        case Target::ttft:
            return "time to first token";
        case Target::tpot:
            return "time per token";
        case Target::requests:
            return "requests per second";
        case Target::cost:
            return "cost per hour";
    }
    return "";
}

std::string_view name(Obstacle obstacle) {
    switch (obstacle) {
        case Obstacle::kv_capacity:
            return "KV capacity";
        case Obstacle::sequences:
            return "sequences";
        case Obstacle::ttft_target:
            return "TTFT target";
        case Obstacle::tpot_target:
            return "TPOT target";
        case Obstacle::prefill_pool:
            return "prefill pool";
        case Obstacle::decode_pool:
            return "decode pool";
        case Obstacle::link:
            return "link";
        case Obstacle::aim:
            return "aim";
    }
    return "";
}

Performance together(const BatchPrice& price, std::size_t step, double prompt, double output) {
    const Mixed& mixed = price.mixed[step];
    const double with_prompt = prompt / mixed.prompt_tokens;   // rounds of a request's share that carry prompts
    const double rounds = price.rounds(output) / price.batch;  // rounds of a request's share that decode
    const double without = std::max(0.0, rounds - with_prompt);
    const auto share = [&](double mixed_time, double decode_time) {
        return with_prompt * mixed_time + without * decode_time;
    };
    Performance result;
    const double seconds = share(mixed.round.expected, price.decode.expected);
    result.capacity = 1.0 / seconds;
    result.capacity_limit = 1.0 / share(mixed.round.limit, price.decode.limit);
    result.tpot = seconds / (with_prompt + without) * price.rounds(output) / (output - 1.0);
    result.ttft = price.decode.expected / 2.0 + mixed.passes * mixed.own;
    return result;
}

Result<Plan> plan(const PlanQuestion& question) {
    if (question.model.workload.generate < 2.0) return fail("a plan needs outputs of at least 2 tokens");
    if (question.choices.offers.empty()) return fail("a plan needs devices to choose from");
    return Search(question).run();
}

std::string describe(const Deploy& deploy, const PlanQuestion& question) {
    const auto pool = [](const Fleet& fleet) {
        return fmt::format("{:.0f} x {}", fleet.replicas, describe(fleet.layout.deployment));
    };
    const auto device = [&](const Fleet& fleet) { return question.choices.offers[fleet.layout.offer].device.name; };
    if (!deploy.prefill) return fmt::format("{} on {}", pool(deploy.main), device(deploy.main));
    if (deploy.prefill->layout.offer == deploy.main.layout.offer)
        return fmt::format("prefill {}, decode {} on {}", pool(*deploy.prefill), pool(deploy.main),
                           device(deploy.main));
    return fmt::format("prefill {} on {}, decode {} on {}", pool(*deploy.prefill), device(*deploy.prefill),
                       pool(deploy.main), device(deploy.main));
}

}  // namespace roofline::decide
