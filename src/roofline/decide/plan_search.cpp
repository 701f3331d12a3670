#include "roofline/decide/plan_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "roofline/core/patience.hpp"
#include "roofline/decide/prompt_pool.hpp"

namespace roofline::decide {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class Search {
  public:
    explicit Search(const PlanQuestion& question)
        : question_(question), prompt_(question.model.workload.prompt), output_(question.model.workload.generate) {}

    Found run() {
        const predict::Setup& model = question_.model;
        const Cuttable what{.layers = model.architecture ? static_cast<double>(model.architecture->layers.size()) : 1.0,
                            .experts = has_experts(model),
                            .tokens = model.workload.cached + prompt_ + output_};
        const Choices& choices = question_.choices;
        for (std::size_t offer = 0; offer < choices.offers.size(); ++offer) {
            const auto ways = ways_to_cut(choices.offers[offer].device, choices.offers[offer].count, what);
            for (std::size_t types = 0; types < choices.types.size(); ++types) {
                const std::size_t first = found_.layouts.size();
                for (const model::Deployment& way : ways) {
                    try_layout({offer, types, way});
                    if (choices.speculation.tokens > 0.0) try_layout({offer, types, way, true});
                }
                for (std::size_t layout = first; layout < found_.layouts.size(); ++layout) colocated(layout);
                if (found_.layouts.size() > first) kinds_.push_back({offer, types, first, found_.layouts.size()});
            }
        }
        if (question_.may_disaggregate) {
            for (const Kind& prompts : kinds_) {
                const PromptPools pools = prompt_pools(found_.layouts, prompts.first, prompts.end, prompt_);
                for (const Kind& outputs : kinds_) {
                    // Keys and values travel as they are: both pools keep them in one format.
                    if (outputs.types == prompts.types) disaggregated(prompts, pools, outputs);
                }
            }
        }
        Counts& counts = found_.counts;
        counts.beaten_early = counts.candidates - counts.impossible - counts.not_fitting - counts.priced;
        return std::move(found_);
    }

  private:
    /// Layouts on one offer in one choice of types, beside each other in the list of all.
    struct Kind {
        std::size_t offer = 0;
        std::size_t types = 0;
        std::size_t first = 0;
        std::size_t end = 0;
    };

    const Offer& offer_of(std::size_t layout) const {
        return question_.choices.offers[found_.layouts[layout].layout.offer];
    }

    void try_layout(const Layout& layout) {
        if (out_of_patience()) return;
        Passed passed;
        auto priced = price(question_.model, question_.choices, layout, passed);
        // Copies of what was passed over are passed over too.
        const double copies = std::floor(question_.choices.offers[layout.offer].count / layout.devices());
        found_.counts.impossible += copies * passed.impossible;
        found_.counts.not_fitting += copies * passed.not_fitting;
        found_.counts.candidates += copies * (passed.impossible + passed.not_fitting);
        if (!priced) return;
        found_.counts.layouts += 1.0;
        found_.layouts.push_back(std::move(*priced));
    }

    void colocated(std::size_t layout) {
        if (out_of_patience()) return;
        const PricedLayout& priced = found_.layouts[layout];
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
                    found_.counts.candidates += 1.0;
                    consider(pick, one.capacity, priced.layout.devices(), priced.layout.devices() * price_of(layout));
                }
            }
        }
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

    void disaggregated(const Kind& prompts, const PromptPools& pools, const Kind& outputs) {
        const double first_count = question_.choices.offers[prompts.offer].count;
        const double second_count = question_.choices.offers[outputs.offer].count;
        const bool one_kind = prompts.offer == outputs.offer;
        const Supply supply{first_count, second_count, one_kind ? first_count : infinity};
        for (std::size_t layout = outputs.first; layout < outputs.end; ++layout) {
            const PricedLayout& priced = found_.layouts[layout];
            const double devices = priced.layout.devices();
            double batches = 0.0;
            for (std::size_t batch = 0; batch < priced.batches.size() && !out_of_patience(); ++batch) {
                const auto step = decode_step_size(priced, priced.batches[batch].batch);
                if (!step) continue;
                batches += 1.0;
                for (const PromptPool& pool : pools.kept) split(pool, layout, batch, *step, supply);
            }
            for (const PromptPool& pool : pools.all) {
                const double ways = one_kind
                                        ? splits(first_count, pool.devices, devices)
                                        : std::floor(first_count / pool.devices) * std::floor(second_count / devices);
                found_.counts.candidates += batches * ways;
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
        const PricedLayout& priced = found_.layouts[layout];
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
                performance.transfer =
                    transfer_seconds(question_.choices, found_.layouts[pool.layout], priced, pick.devices);
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
        found_.counts.priced += 1.0;
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

        found_.extremes.ttft = std::min(found_.extremes.ttft, performance.ttft);
        found_.extremes.tpot = std::min(found_.extremes.tpot, performance.tpot);
        found_.extremes.requests = std::max(found_.extremes.requests, performance.capacity);
        found_.extremes.cost = std::min(found_.extremes.cost, pick.cost_per_hour);
        found_.requests_limit = std::max(found_.requests_limit, performance.capacity_limit);
        if (pick.worst <= 1.0) {
            found_.counts.meeting += 1.0;
            found_.meeting_front.offer(pick.merits, pick);
            found_.meeting.push_back(pick);
        } else if (found_.counts.meeting == 0.0) {
            found_.front.offer(pick.merits, pick);
            if (!found_.closest || pick.worst < found_.closest->worst) found_.closest = pick;
        }
    }

    const PlanQuestion& question_;
    double prompt_;
    double output_;
    std::vector<Kind> kinds_;
    Found found_;
};

}  // namespace

Found search(const PlanQuestion& question) {
    return Search(question).run();
}

}  // namespace roofline::decide
