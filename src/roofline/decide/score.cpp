#include "roofline/decide/score.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "roofline/core/patience.hpp"
#include "roofline/decide/transfer.hpp"
#include "roofline/predict/stage_times.hpp"

namespace roofline::decide {
namespace {

using predict::Pace;
using predict::Replica;
using predict::StageKind;
using predict::StageTime;
using predict::times_of;
using predict::Workload;

/// a x + b y, for each of the five times.
Times blend(double a, const Times& x, double b, const Times& y) {
    return {.limit = a * x.limit + b * y.limit,
            .attainable = a * x.attainable + b * y.attainable,
            .expected = a * x.expected + b * y.expected,
            .expected_low = a * x.expected_low + b * y.expected_low,
            .expected_high = a * x.expected_high + b * y.expected_high,
            .measured = std::nullopt};
}

Times scaled(double factor, const Times& times) {
    return blend(factor, times, 0.0, times);
}

/// A decode step's own time where a context was named, else the mean over the tokens written.
Times plain_tpot(const predict::Scenario& scenario, const predict::Report& report) {
    const Workload& workload = scenario.workload;
    if (workload.context == 0.0 && workload.generate > 1.0) return report.metrics.tpot;
    return report.stages.back().times;
}

/// Up to so many contexts stand for all that a request passes through: a step's time is nearly linear in its context.
constexpr double most_contexts = 32.0;

/// D2: every step checks all guesses at once, like a short prompt, after they were guessed one by one: each by a step
/// of the draft, or at a share of a step of the model itself.
Times speculative_tpot(const Replica& replica, const Replica* draft, const Workload& workload,
                       const Speculation& speculation, const Times& tpot) {
    std::vector<predict::OperatorTime> times(replica.whole().size());
    std::vector<predict::OperatorTime> draft_times(draft != nullptr ? draft->whole().size() : 0);
    const bool fixed = workload.context > 0.0 || workload.generate <= 1.0;
    const double steps = fixed ? 1.0 : workload.generate - 1.0;
    const double contexts = std::min(steps, most_contexts);
    const double checked = speculation.draft_tokens + 1.0;
    StageTime sum;
    StageTime guesses;
    for (std::size_t i = 0; i < static_cast<std::size_t>(contexts); ++i) {
        const double written = std::floor((static_cast<double>(i) + 0.5) * steps / contexts);
        const double past = fixed ? workload.decode_context() - 1.0 : workload.prompt + workload.cached + written;
        const std::array<model::Sequences, 1> step = {{{model::Phase::decode, workload.batch, checked, past, checked}}};
        sum += replica.evaluate(step, times, Pace::steady);
        if (draft == nullptr) continue;
        // S2: the first guess takes in what was checked, the others follow one by one.
        for (std::size_t guess = 0; guess < static_cast<std::size_t>(speculation.draft_tokens); ++guess) {
            const double taken = guess == 0 ? checked : 1.0;
            const std::array<model::Sequences, 1> pass = {{{model::Phase::decode, workload.batch, taken, past, 1.0}}};
            guesses += draft->evaluate(pass, draft_times, Pace::steady);
        }
    }
    const Times drafting = draft != nullptr ? scaled(1.0 / contexts, times_of(guesses))
                                            : scaled(speculation.draft_tokens * speculation.draft_cost, tpot);
    return scaled(1.0 / speculation.tokens_per_step(), blend(1.0 / contexts, times_of(sum), 1.0, drafting));
}

/// Chunks of prompts with nothing beside them, `abreast` at a time, on average.
Times chunks_alone(const Replica& replica, const Workload& workload, double chunks, double abreast) {
    std::vector<predict::OperatorTime> times(replica.whole().size());
    StageTime sum;
    for (std::size_t i = 0; i < static_cast<std::size_t>(chunks); ++i) {
        const double done = static_cast<double>(i) * workload.chunk;
        const double tokens = std::min(workload.chunk, workload.prompt - done);
        sum += replica.evaluate(model::prefill_step(abreast, tokens, workload.cached + done), times, Pace::steady);
    }
    return scaled(1.0 / chunks, times_of(sum));
}

/// The prompt read by a draft: whole, or chunk after chunk.
Times drafted_prompt(const Replica& draft, const Workload& workload, double chunks) {
    if (chunks > 1.0) return scaled(chunks, chunks_alone(draft, workload, chunks, 1.0));
    std::vector<predict::OperatorTime> times(draft.whole().size());
    return times_of(draft.evaluate(predict::step_of(workload, StageKind::prefill), times, Pace::steady));
}

}  // namespace

double Speculation::tokens_per_step() const {
    double tokens = 1.0;
    double all_right = 1.0;
    for (std::size_t guess = 0; guess < static_cast<std::size_t>(draft_tokens); ++guess) {
        all_right *= acceptance;
        tokens += all_right;
    }
    return tokens;
}

std::string_view name(Goal goal) {
    static constexpr std::array<std::string_view, 4> names = {"tpot", "ttft", "throughput", "cost"};
    return names[static_cast<std::size_t>(goal)];
}

const Times& Score::of(Goal goal) const {
    if (goal == Goal::tpot) return tpot;
    return goal == Goal::ttft ? ttft : device_time;
}

Bound Score::bound(Goal goal) const {
    const bool decode = goal == Goal::tpot || (goal != Goal::ttft && mostly_decode);
    return decode ? decode_bound : prefill_bound;
}

Result<Score> score(const Candidate& candidate) {
    if (out_of_patience()) return fail("there is no time left for it");
    auto realised = predict::realise(candidate.setup);
    if (!realised) return std::unexpected(realised.error());
    predict::Scenario& scenario = *realised;
    const model::Deployment& spread = scenario.deployment;
    const bool chunked = scenario.workload.chunk > 0.0 && !candidate.prompts_elsewhere;
    scenario.workload.stages = {chunked ? StageKind::mixed : StageKind::prefill, StageKind::decode};
    const predict::Report report = predict::predict(scenario);

    Score result;
    result.fit = report.fit;
    result.batch = scenario.workload.batch;
    result.devices = spread.devices();
    result.ttft = report.metrics.ttft;
    result.tpot = plain_tpot(scenario, report);
    result.prefill_bound = report.stages.front().totals.bound;
    result.decode_bound = report.stages.back().totals.bound;

    // One replica: all share the work, and devices are counted at the end.
    const Workload workload = predict::of_one_replica(scenario);
    const double steps = workload.generate - 1.0;
    const Replica replica(scenario);
    std::vector<predict::OperatorTime> times(replica.whole().size());
    const auto price = [&](const model::Step& step, Pace pace) { return replica.evaluate(step, times, pace); };
    Times prompts = result.ttft;
    if (candidate.prompts_elsewhere) {
        // Prompt after prompt, each whole, one for every attention group.
        const model::Step step = model::prefill_step(spread.groups, workload.prompt, workload.cached);
        result.ttft = times_of(price(step, Pace::alone));
        prompts = scaled(workload.batch / spread.groups, times_of(price(step, Pace::steady)));
    } else if (spread.pipeline > 1.0 && !chunked) {
        // One request waits until a pipeline has filled; of many that follow each other, only the first does.
        prompts = times_of(price(predict::step_of(workload, StageKind::prefill), Pace::steady));
    }
    const double chunks = chunked ? std::ceil(workload.prompt / workload.chunk) : 1.0;
    if (candidate.speculation) {
        std::optional<Replica> draft;
        if (candidate.setup.draft) {
            const auto drafting = predict::realise(predict::draft_of(candidate.setup));
            if (!drafting) return std::unexpected(drafting.error());
            draft.emplace(*drafting);
            // S2: a draft reads the prompt too, before or beside the model's own pass. Where prompts are computed
            // elsewhere, it does so there.
            if (!candidate.prompts_elsewhere) {
                const Times read = drafted_prompt(*draft, workload, chunks);
                result.ttft = blend(1.0, result.ttft, 1.0, read);
                prompts = blend(1.0, prompts, 1.0, read);
            }
        }
        result.tpot =
            speculative_tpot(replica, draft ? &*draft : nullptr, workload, *candidate.speculation, result.tpot);
    }
    Times decoding = scaled(steps, result.tpot);
    // Between the first token and the second stands the way of the prompt's keys and values. No device is busy with it.
    if (candidate.prompts_elsewhere && steps > 0.0 && workload.context == 0.0) {
        const Seconds each = (1.0 / steps) * transfer_of(scenario).seconds;
        for (Seconds Times::* time :
             {&Times::limit, &Times::attainable, &Times::expected, &Times::expected_low, &Times::expected_high})
            result.tpot.*time += each;
    }
    if (chunked) {
        // D3: until all sequences have been replaced once, so many steps carry chunks of prompts: one for each
        // attention group, micro-batch and half of two that overlap.
        const double parts = spread.groups * replica.micro_batches(predict::step_of(workload, StageKind::mixed));
        const bool halves = spread.two_batches && workload.batch >= 2.0 * parts;
        const double abreast = halves ? 2.0 * parts : parts;
        const double wanted = std::ceil(workload.batch * chunks / abreast);
        const double beside = std::min(wanted, steps);
        const Times mixed = scaled(1.0 / chunks, result.ttft);
        const Times undisturbed = result.tpot;
        decoding = scaled(steps - beside, undisturbed);
        prompts = scaled(beside, mixed);
        if (wanted > beside)
            prompts = blend(1.0, prompts, wanted - beside, chunks_alone(replica, workload, chunks, abreast));
        if (steps > 0.0) {
            const double share = beside / steps;
            result.tpot = blend(1.0 - share, undisturbed, share, mixed);
            if (2.0 * share > 1.0) result.decode_bound = result.prefill_bound;
        }
    }
    const double written = workload.batch * spread.replicas * workload.generate;
    result.device_time = scaled(result.devices / written, blend(1.0, prompts, 1.0, decoding));
    result.mostly_decode = decoding.expected >= prompts.expected;
    return result;
}

}  // namespace roofline::decide
