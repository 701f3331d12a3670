#include "roofline/decide/plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "roofline/core/collective.hpp"
#include "roofline/core/patience.hpp"
#include "roofline/core/sort.hpp"
#include "roofline/decide/plan_search.hpp"
#include "roofline/decide/prompt_pool.hpp"
#include "roofline/decide/served.hpp"

namespace roofline::decide {
namespace {

// Finalists are asked again in order until two hold; of one deployment no more than this, as its batches are much
// alike.
constexpr int tries_of_a_deployment = 12;
constexpr int tries = 600;

// Near capacity a finalist is simulated: so many at most, each for so long on a usual core.
constexpr std::size_t most_simulations = 6;
constexpr double seconds_of_a_simulation = 0.12;

/// What the search found, made into an answer: finalists asked again, what limits each, what no candidate meets.
class Answer {
  public:
    explicit Answer(const PlanQuestion& question)
        : question_(question),
          prompt_(question.model.workload.prompt),
          output_(question.model.workload.generate),
          found_(search(question)) {}

    Plan plan() {
        Plan plan;
        plan.model_name = question_.model.model_name;
        plan.model_title = question_.model.model_title;
        plan.notes = question_.model.notes;
        for (const Offer& offer : question_.choices.offers) plan.priced_in_money |= offer.price.has_value();
        plan.best = finalists();
        if (out_of_patience()) return plan;  // nobody will look at it
        if (plan.best.empty()) explain_misses(plan);
        plan.front = front();
        sort_stably(plan.front, [](const Deploy& a, const Deploy& b) {
            return std::array{-a.merits.per_user, -a.merits.per_device, a.merits.cost} <
                   std::array{-b.merits.per_user, -b.merits.per_device, b.merits.cost};
        });
        plan.requests_limit = found_.requests_limit;
        plan.counts = found_.counts;
        add_notes(plan);
        return plan;
    }

  private:
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

    Result<Served> serve_again(const Pick& pick) {
        if (const auto known = simulated_.find(key(pick)); known != simulated_.end()) return known->second;
        found_.counts.served += 1.0;
        return serve(question_, found_.layouts, pick, 0.0);
    }

    static std::array<double, 7> key(const Pick& pick) {
        return {static_cast<double>(pick.main),
                static_cast<double>(pick.prefill),
                pick.replicas,
                pick.prefill_replicas,
                static_cast<double>(pick.batch),
                static_cast<double>(pick.step),
                static_cast<double>(pick.prefill_step)};
    }

    /// P7: a finalist that holds is followed request by request where it is near capacity.
    Served look_closer(const Pick& pick, const Served& served) {
        if (!question_.has_time || simulated_.size() >= most_simulations) return served;
        const auto closer = serve(question_, found_.layouts, pick, seconds_of_a_simulation);
        if (!closer || !(closer->simulated > 0.0)) return served;
        simulated_.emplace(key(pick), *closer);
        return *closer;
    }

    /// The best that holds when asked again, and the best of those that are cut or placed in another way.
    std::vector<Deploy> finalists() {
        std::vector<std::uint32_t> order(found_.meeting.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
        const auto later = [&](std::uint32_t a, std::uint32_t b) {
            if (before(found_.meeting[b], found_.meeting[a])) return true;
            return !before(found_.meeting[a], found_.meeting[b]) && b < a;
        };
        std::make_heap(order.begin(), order.end(), later);
        std::map<std::array<double, 4>, int> tried;
        std::vector<Deploy> found;
        const Pick* best = nullptr;
        for (int left = tries; left > 0 && !order.empty() && found.size() < 2 && !out_of_patience();) {
            std::pop_heap(order.begin(), order.end(), later);
            const Pick& pick = found_.meeting[order.back()];
            order.pop_back();
            if (best != nullptr && same_layouts(*best, pick)) continue;
            int& times = tried[{static_cast<double>(pick.main), static_cast<double>(pick.prefill), pick.replicas,
                                pick.prefill_replicas}];
            if (times >= tries_of_a_deployment) continue;
            ++times;
            --left;
            auto served = serve_again(pick);
            if (!served) continue;
            if (holds(question_.targets, *served)) served = look_closer(pick, *served);
            if (!holds(question_.targets, *served)) {
                if (!nearly_) nearly_ = in_full(pick, *served);
                continue;
            }
            found.push_back(in_full(pick, *served));
            if (best == nullptr) best = &pick;
        }
        return found;
    }

    Fleet fleet(std::size_t layout, double replicas, double batch, double step) const {
        const PricedLayout& priced = found_.layouts[layout];
        return {priced.layout, priced.weight_types, priced.kv_type, replicas, batch, step};
    }

    Obstacle obstacle_of(const Pick& pick) const {
        const PricedLayout& priced = found_.layouts[pick.main];
        const Performance& performance = pick.performance;
        if (pick.apart()) {
            const double prompts =
                prompt_pool(found_.layouts, pick.prefill, pick.prefill_step, prompt_).capacity * pick.prefill_replicas;
            if (performance.capacity == prompts) return Obstacle::prefill_pool;
            if (performance.capacity == pick.prefill_replicas / performance.transfer) return Obstacle::link;
        }
        const double room = priced.steps[pick.step].largest_batch;
        for (std::size_t next = pick.batch + 1; next < priced.batches.size(); ++next) {
            if (priced.batches[next].batch > room) return Obstacle::kv_capacity;
            if (pick.apart()) {
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
        const PricedLayout& priced = found_.layouts[pick.main];
        const BatchPrice& price = priced.batches[pick.batch];
        Deploy deploy;
        deploy.main = fleet(pick.main, pick.replicas, price.batch, priced.steps[pick.step].tokens);
        deploy.performance = pick.performance;
        deploy.devices = pick.devices;
        deploy.cost_per_hour = pick.cost_per_hour;
        deploy.merits = pick.merits;
        deploy.decode_bound = price.decode.bound;
        if (pick.apart()) {
            const StepSize& size = found_.layouts[pick.prefill].steps[pick.prefill_step];
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
        else if (found_.closest) {
            const auto served = serve_again(*found_.closest);
            plan.closest = served ? in_full(*found_.closest, *served) : in_full(*found_.closest);
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
        add(Target::ttft, targets.ttft, found_.extremes.ttft, near.served ? near.served->ttft : performance.ttft,
            false);
        add(Target::tpot, targets.tpot, found_.extremes.tpot, near.served ? near.served->tpot : performance.tpot,
            false);
        add(Target::requests, targets.requests, found_.extremes.requests,
            near.served ? near.served->capacity : performance.capacity, true);
        add(Target::cost, targets.cost_per_hour, found_.extremes.cost, near.cost_per_hour, false);
    }

    /// The front of the closed form asked again: what does not hold then is left out, and so is what is beaten then.
    std::vector<Deploy> front() {
        Front<Deploy> result;
        for (const auto& entry : (found_.meeting.empty() ? found_.front : found_.meeting_front).entries()) {
            if (out_of_patience()) break;
            const auto served = serve_again(entry.item);
            if (!served || (!found_.meeting.empty() && !holds(question_.targets, *served)) || served->overloaded)
                continue;
            const Deploy deploy = in_full(entry.item, *served);
            result.offer(deploy.merits, deploy);
        }
        std::vector<Deploy> all;
        for (const auto& entry : result.entries()) all.push_back(entry.item);
        return all;
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
        if (question_.choices.speculation.tokens > 0.0) {
            std::string text = "guessing ahead was tried beside not guessing, as --speculate says; ";
            if (!question_.model.draft) {
                text += "the memory of what guesses is not counted";
            } else if (question_.choices.speculation.draft_fraction > 0.0) {
                text += fmt::format("the memory of {} is counted", question_.model.draft->model_name);
            } else {
                text += fmt::format("the time and the memory of {} are counted", question_.model.draft->model_name);
            }
            plan.notes.push_back(std::move(text));
        }
        if (!simulated_.empty())
            plan.notes.push_back(
                fmt::format("near capacity the closed form is a rough mean: finalists that were simulated: {}, and met "
                            "the targets: {}",
                            simulated_.size(), std::count_if(simulated_.begin(), simulated_.end(), [&](const auto& of) {
                                return holds(question_.targets, of.second);
                            })));
        if (!plan.priced_in_money) plan.notes.emplace_back("no --price: cost is in device-hours");
    }

    const PlanQuestion& question_;
    double prompt_;
    double output_;
    Found found_;
    std::map<std::array<double, 7>, Served> simulated_;
    std::optional<Deploy> nearly_;  // met the targets by P3 to P6, but not when asked again
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
    return Answer(question).plan();
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
