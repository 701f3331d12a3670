#include "roofline/decide/candidates.hpp"

#include <algorithm>
#include <cmath>

namespace roofline::decide {
namespace {

// Accelerators are sold eight to a node, unless their link says otherwise.
constexpr double most_stages = 16.0;
// P1: a device that shares a sequence has at least so many tokens of it. With fewer, its products have too few rows to
// gain, and its part of the cache is small beside what every device holds of the weights.
constexpr double least_shared_tokens = 4096.0;

/// 1, 2, 3, 4, 6, 8, 12 ...: what heads and layers are usually divided by.
std::vector<double> degrees(double most) {
    std::vector<double> result;
    for (double power = 1.0; power <= most; power *= 2.0) {
        result.push_back(power);
        if (power >= 2.0 && power * 1.5 <= most) result.push_back(power * 1.5);
    }
    return result;
}

/// Asked before anything is lowered: most that cannot be done is refused by a block.
bool can_be_cut(const model::Architecture& model, const model::Deployment& deployment) {
    if (deployment.pipeline > static_cast<double>(model.layers.size())) return false;
    for (const model::LayerKind& kind : model.kinds) {
        for (const model::BlockPtr& block : {kind.mixer, kind.ffn}) {
            if (block && !block->on_rank(deployment)) return false;
        }
    }
    return true;
}

Round round_of(const predict::Replica& replica, std::span<const model::Sequences> step,
               std::span<predict::OperatorTime> times) {
    const predict::StageTime time = replica.evaluate(step, times, predict::Pace::steady);
    return {time.expected, time.limit, time.bound};
}

/// P2: prompts of a scheduler that fill `tokens` of a step. However a prompt is cut into chunks, the mean token of it
/// has half a prompt before it; so chunks of equal length at the mean place stand for all.
model::Sequences chunk_of(double tokens, double prompt, double schedulers) {
    const double prompts = std::ceil(tokens / prompt);
    const double length = tokens / prompts;
    return {model::Phase::prefill, prompts * schedulers, length, (prompt - length) / 2.0, length / prompt};
}

/// S2: what guessing adds to a round: a share of it, or so many decode steps of the model that guesses, which computes
/// prompts too.
class Drafting {
  public:
    Drafting(const predict::Setup& setup, const serving::Speculation& speculation) : speculation_(speculation) {
        if (!setup.draft || speculation.tokens <= 0.0 || speculation.draft_fraction > 0.0) return;
        const auto scenario = predict::realise(predict::draft_of(setup));
        if (!scenario) return;  // refused before, with the model it drafts for
        replica_.emplace(*scenario);
        times_.resize(replica_->whole().size());
    }

    void add_to(Round& round, const model::Sequences& decode, const std::optional<model::Sequences>& prompts) const {
        double expected = speculation_.draft_fraction * round.expected;
        double limit = speculation_.draft_fraction * round.limit;
        if (replica_) {
            const auto pass = [&](const model::Sequences& step, double times) {
                const Round guess = round_of(*replica_, std::span(&step, 1), times_);
                expected += times * guess.expected;
                limit += times * guess.limit;
            };
            pass({decode.phase, decode.count, speculation_.tokens + 1.0, decode.past, 1.0}, 1.0);
            pass({decode.phase, decode.count, 1.0, decode.past, 1.0}, speculation_.tokens - 1.0);
            if (prompts) pass(*prompts, 1.0);
        }
        round.expected += expected;
        round.limit += limit;
    }

  private:
    serving::Speculation speculation_;
    std::optional<predict::Replica> replica_;
    mutable std::vector<predict::OperatorTime> times_;
};

}  // namespace

double BatchPrice::rounds(double output) const {
    const double overshoot = (tokens.square - tokens.mean) / (2.0 * tokens.mean);
    return (output - 1.0 + overshoot) / tokens.mean;
}

std::vector<double> batch_grid(double most) {
    std::vector<double> grid;
    for (double step = 1.0, from = 1.0; from <= most; from *= 2.0) {
        if (from >= 8.0) step = from / 4.0;
        for (double batch = from; batch < 2.0 * from && batch <= most; batch += step) grid.push_back(batch);
    }
    return grid;
}

bool has_experts(const predict::Setup& setup) {
    return setup.architecture && model::has_experts(*setup.architecture);
}

std::vector<model::Deployment> ways_to_cut(const Device& device, double count, const Cuttable& what) {
    const double node = node_size(device);
    std::vector<model::Deployment> ways;
    const auto add = [&](model::Deployment way) {
        if (way.replica_devices() > node) way.node = node;
        ways.push_back(way);
    };
    for (const double pipeline : degrees(std::min({count, what.layers, most_stages}))) {
        for (const double tensor : degrees(std::floor(count / pipeline))) {
            add({.tensor = tensor, .pipeline = pipeline});
            const double left = std::floor(count / pipeline / tensor);
            if (what.experts) {
                for (const double groups : degrees(left)) {
                    if (tensor * groups == 1.0) continue;
                    model::Deployment way{
                        .tensor = tensor, .groups = groups, .experts = tensor * groups, .pipeline = pipeline};
                    if (!way.exchanges_tokens()) {
                        add(way);
                        continue;
                    }
                    for (const auto exchange : {model::ExpertExchange::gather, model::ExpertExchange::all_to_all}) {
                        way.exchange = exchange;
                        add(way);
                    }
                }
            }
            for (const double context : degrees(std::min(left, std::floor(what.tokens / least_shared_tokens)))) {
                if (context == 1.0) continue;
                add({.tensor = tensor, .context = context, .pipeline = pipeline});
                if (what.experts && tensor > 1.0)
                    add({.tensor = tensor, .context = context, .experts = tensor, .pipeline = pipeline});
            }
        }
    }
    return ways;
}

predict::Setup setup_of(const predict::Setup& setup, const Choices& choices, const Layout& layout, double step_tokens,
                        double sequences) {
    const Offer& offer = choices.offers[layout.offer];
    predict::Setup result = setup;
    result.device = offer.device;
    result.execution = offer.execution;
    result.types = choices.types[layout.types];
    result.lowering.deployment = layout.deployment;
    if (!layout.speculates) result.draft.reset();
    result.workload.batch = 1.0;
    result.workload.context = 0.0;
    result.workload.chunk = step_tokens;
    if (result.memory) {
        result.memory->step_tokens = step_tokens;
        result.memory->sequences = std::ceil(sequences / layout.deployment.groups);
        result.memory->longest =
            std::max(choices.longest, result.workload.cached + result.workload.prompt + result.workload.generate);
        return result;
    }
    // What the engine keeps its hands off is not there.
    if (auto& memory = result.device.levels[index(Level::memory)]; memory && memory->capacity)
        memory->capacity->value *= choices.utilisation;
    return result;
}

std::optional<PricedLayout> price(const predict::Setup& setup, const Choices& choices, const Layout& layout,
                                  Passed& passed) {
    const double steps = static_cast<double>(choices.steps.size());
    const double groups = layout.deployment.groups;
    const std::vector<double> grid = batch_grid(choices.most_sequences);
    const double candidates = steps * static_cast<double>(grid.size());
    if (setup.architecture && !can_be_cut(*setup.architecture, layout.deployment)) {
        passed.impossible += candidates;
        return std::nullopt;
    }
    const predict::Setup asked =
        setup_of(setup, choices, layout, choices.steps.front(), choices.most_sequences * groups);
    auto scenario = predict::realise(asked);
    if (!scenario) {
        passed.impossible += candidates;
        return std::nullopt;
    }

    PricedLayout result;
    result.layout = layout;
    result.weight_types = scenario->weight_types;
    result.kv_type = scenario->kv_type;
    for (const double tokens : choices.steps) {
        scenario->workload.chunk = tokens;
        if (scenario->memory) scenario->memory->step_tokens = tokens;
        const predict::Fit fit = predict::fit_deployment(*scenario, predict::Advice::left_out);
        const double room = fit.largest_batch.value_or(choices.most_sequences * groups);
        result.steps.push_back({.tokens = tokens,
                                .largest_batch = std::floor(room / groups) * groups,
                                .prompt_tokens = 0.0,
                                .prompts = {},
                                .alone = {}});
        result.weights_on_device = fit.weights.value;
    }
    const double most_that_fit =
        std::max_element(result.steps.begin(), result.steps.end(), [](const StepSize& a, const StepSize& b) {
            return a.largest_batch < b.largest_batch;
        })->largest_batch;
    if (most_that_fit < groups) {
        passed.not_fitting += candidates;
        return std::nullopt;
    }

    const predict::Replica replica(*scenario);
    std::vector<predict::OperatorTime> times(replica.whole().size());
    const predict::Workload& workload = asked.workload;
    const double prompt = workload.prompt;
    // In the mean a sequence has written half of its output.
    const double context = prompt + workload.cached + (workload.generate + 1.0) / 2.0;
    const double stages = layout.deployment.pipeline;
    result.prompt_bytes_on_device = model::cache_bytes(scenario->lowered, prompt + workload.cached) / stages;

    for (StepSize& step : result.steps) {
        if (step.largest_batch < groups) continue;
        const double schedulers = groups * stages;
        const model::Sequences chunk = chunk_of(std::min(step.tokens, prompt * step.largest_batch), prompt, schedulers);
        step.prompt_tokens = chunk.count * chunk.new_tokens;
        step.prompts = round_of(replica, std::span(&chunk, 1), times);
        const model::Sequences own = chunk_of(std::min(step.tokens, prompt), prompt, 1.0);
        step.alone = round_of(replica, std::span(&own, 1), times);
    }
    const serving::Speculation speculation = layout.speculates ? choices.speculation : serving::Speculation{};
    const serving::TokensPerStep tokens_of_a_round = serving::tokens_per_step(speculation);
    const double checked = speculation.tokens + 1.0;
    const Drafting drafting(asked, speculation);
    const double most = std::min(choices.most_sequences * groups, most_that_fit);
    result.batch_held_by_memory = most_that_fit < choices.most_sequences * groups;
    std::vector<double> batches;
    for (const double batch : grid) {
        if (batch * groups <= most)
            batches.push_back(batch * groups);
        else
            passed.not_fitting += steps;
    }
    if (batches.back() < most) batches.push_back(most);
    for (const double batch : batches) {
        BatchPrice price;
        price.batch = batch;
        const double parts = std::min(stages, std::ceil(batch / groups));
        const double schedulers = groups * parts;
        price.tokens = tokens_of_a_round;
        const model::Sequences decode{model::Phase::decode, batch, checked, context - 1.0, checked};
        price.decode = round_of(replica, std::span(&decode, 1), times);
        drafting.add_to(price.decode, decode, std::nullopt);
        for (const StepSize& step : result.steps) {
            Mixed mixed;
            const double room = step.tokens - checked * std::ceil(batch / schedulers);
            if (batch > step.largest_batch) {
                passed.not_fitting += 1.0;
            } else if (room < 1.0) {
                passed.impossible += 1.0;
            } else {
                // No more prompts at once than there are sequences to follow.
                const double tokens = std::min(room, prompt * std::ceil(batch / schedulers));
                const model::Step both = {chunk_of(tokens, prompt, schedulers), decode};
                mixed.prompt_tokens = both.front().count * both.front().new_tokens;
                mixed.passes = std::ceil(prompt / room);
                mixed.round = round_of(replica, both, times);
                drafting.add_to(mixed.round, decode, both.front());
                // Beside a prompt a token is never written sooner.
                mixed.round.expected = std::max(mixed.round.expected, price.decode.expected);
                mixed.round.limit = std::max(mixed.round.limit, price.decode.limit);
                mixed.own = price.decode.expected +
                            (mixed.round.expected - price.decode.expected) * std::min(room, prompt) / tokens;
            }
            price.mixed.push_back(mixed);
        }
        result.batches.push_back(std::move(price));
    }
    return result;
}

}  // namespace roofline::decide
