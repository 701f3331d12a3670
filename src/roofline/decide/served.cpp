#include "roofline/decide/served.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "roofline/serving/deployed.hpp"
#include "roofline/serving/disaggregation.hpp"
#include "roofline/serving/simulation.hpp"
#include "roofline/serving/traffic.hpp"

namespace roofline::decide {
namespace {

class Serving {
  public:
    Serving(const PlanQuestion& question, const std::vector<PricedLayout>& layouts, double seconds)
        : question_(question), layouts_(layouts), seconds_(seconds) {}

    Result<Served> together(const Pick& pick) const {
        const PricedLayout& priced = layouts_[pick.main];
        const double step = priced.steps[pick.step].tokens;
        const double batch = priced.batches[pick.batch].batch;
        const auto replica = deployed(pick.main, step, batch);
        if (!replica) return std::unexpected(replica.error());
        const auto rule = rule_of(pick.main, step, batch);
        if (!rule) return std::unexpected(rule.error());
        const serving::Policy& policy = rule->policy;
        const auto full = serving::steady(*replica, policy, mix(), serving::Load::saturated());
        if (!full) return std::unexpected(full.error());
        Served served{full->capacity * pick.replicas, full->ttft, full->tpot, 0.0, full->running, false, 0.0};
        if (!question_.targets.requests) return served;
        const serving::Load load = serving::Load::rate(*question_.targets.requests / pick.replicas);
        const auto loaded = serving::steady(*replica, policy, mix(), load);
        if (!loaded) return std::unexpected(loaded.error());
        served.ttft = loaded->ttft;
        served.tpot = loaded->tpot;
        served.wait = loaded->wait;
        served.running = loaded->running;
        served.overloaded = loaded->overloaded;
        const double requests = serving::worth_simulating(*loaded, load.value, seconds_);
        if (requests > 0.0) {
            const auto outcome = serving::simulate(*replica, policy, mix(), load, {.requests = requests});
            if (outcome) take(served, *outcome, requests);
        }
        return served;
    }

    Result<Served> apart(const Pick& pick) const {
        const PricedLayout& priced = layouts_[pick.main];
        const StepSize& size = layouts_[pick.prefill].steps[pick.prefill_step];
        const auto first = deployed(pick.prefill, size.tokens, size.largest_batch);
        if (!first) return std::unexpected(first.error());
        const double step = priced.steps[pick.step].tokens;
        const double batch = priced.batches[pick.batch].batch;
        const auto second = deployed(pick.main, step, batch);
        if (!second) return std::unexpected(second.error());
        const auto rule = rule_of(pick.main, step, batch);
        if (!rule) return std::unexpected(rule.error());
        serving::Pools pools;
        pools.prefill = {&*first, {}, pick.prefill_replicas};
        pools.decode = {&*second, rule->policy, pick.replicas};
        pools.link_bytes_per_second =
            second->sequence_bytes(question_.model.workload.prompt) / pick.performance.transfer;
        const auto full = serving::disaggregate(pools, mix(), serving::Load::saturated());
        if (!full) return std::unexpected(full.error());
        Served served{full->capacity, full->ttft, full->tpot, 0.0, full->decode.running, false, 0.0};
        if (!question_.targets.requests) return served;
        const serving::Load load = serving::Load::rate(*question_.targets.requests);
        const auto loaded = serving::disaggregate(pools, mix(), load);
        if (!loaded) return std::unexpected(loaded.error());
        served.ttft = loaded->ttft;
        served.tpot = loaded->tpot;
        served.wait = loaded->prefill.wait;
        served.running = loaded->decode.running;
        served.overloaded = loaded->overloaded;
        // The two pools take turns on one core.
        const double rate = load.value;
        const double requests =
            std::max(serving::worth_simulating(loaded->prefill, rate / pools.prefill.replicas, seconds_ / 2.0),
                     serving::worth_simulating(loaded->decode, rate / pools.decode.replicas, seconds_ / 2.0));
        if (requests > 0.0) {
            const auto outcome = serving::simulate(pools, mix(), load, {.requests = requests});
            if (outcome) take(served, *outcome, requests);
        }
        return served;
    }

  private:
    /// So few requests have not met the longest queues: of two times to the first token the longer one counts.
    template <class Simulated>
    static void take(Served& served, const Simulated& outcome, double requests) {
        served.simulated = requests;
        served.overloaded = outcome.overloaded;
        if (outcome.overloaded) {
            served.ttft = served.wait = std::numeric_limits<double>::infinity();
            return;
        }
        if (outcome.ttft && outcome.ttft->mean > served.ttft) {
            served.wait += outcome.ttft->mean - served.ttft;
            served.ttft = outcome.ttft->mean;
        }
        if (outcome.tpot) served.tpot = outcome.tpot->mean;
    }

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
        result.prompt = serving::Lengths::fixed(question_.model.workload.prompt);
        result.output = serving::Lengths::fixed(question_.model.workload.generate);
        return result;
    }

    /// How a layout is run, and the model that guesses for it where that is priced by itself.
    struct Rule {
        serving::Policy policy;
        std::unique_ptr<const serving::Deployed> draft;
    };

    Result<Rule> rule_of(std::size_t layout, double step, double batch) const {
        Rule rule;
        const Layout& of = layouts_[layout].layout;
        if (!of.speculates) return rule;
        rule.policy.speculation = question_.choices.speculation;
        if (!question_.model.draft || rule.policy.speculation.draft_fraction > 0.0) return rule;
        const predict::Setup setup = setup_of(question_.model, question_.choices, of, step, batch);
        const auto scenario = predict::realise(predict::draft_of(setup));
        if (!scenario) return std::unexpected(scenario.error());
        rule.draft = std::make_unique<const serving::Deployed>(*scenario, serving::Price::expected);
        rule.policy.speculation.draft = rule.draft.get();
        return rule;
    }
    const PlanQuestion& question_;
    const std::vector<PricedLayout>& layouts_;
    double seconds_;
};

}  // namespace

Result<Served> serve(const PlanQuestion& question, const std::vector<PricedLayout>& layouts, const Pick& pick,
                     double seconds) {
    const Serving serving(question, layouts, seconds);
    return pick.apart() ? serving.apart(pick) : serving.together(pick);
}

bool holds(const Targets& targets, const Served& served) {
    return !served.overloaded && (!targets.ttft || served.ttft <= *targets.ttft) &&
           (!targets.tpot || served.tpot <= *targets.tpot);
}

}  // namespace roofline::decide
