#include "roofline/decide/sensitivity.hpp"

#include <algorithm>
#include <array>

#include "roofline/core/sort.hpp"

namespace roofline::decide {
namespace {

constexpr double small_change = 1.01;

double improvement(const Score& before, const Score& after, Goal goal) {
    const double now = after.of(goal).expected.value;
    return now > 0.0 ? before.of(goal).expected.value / now : 1.0;
}

std::optional<Score> scaled_score(const Candidate& asked, const Resource& resource, double factor) {
    Candidate changed = asked;
    scale(changed, resource, factor);
    const auto result = score(changed);
    return result ? std::optional(*result) : std::nullopt;
}

/// At the largest batch that fits; empty: nothing fits, or nothing limits it.
std::optional<Score> score_when_full(Candidate candidate) {
    constexpr double most_sequences = 65536.0;
    const auto scenario = predict::realise(candidate.setup);
    if (!scenario) return std::nullopt;
    const auto largest = predict::fit_deployment(*scenario).largest_batch;
    if (!largest || *largest < 1.0) return std::nullopt;
    candidate.setup.workload.batch = std::min(*largest, most_sequences);
    const auto result = score(candidate);
    return result ? std::optional(*result) : std::nullopt;
}

Sensitivity memory_capacity(const Candidate& asked, const Resource& resource, Goal goal) {
    Sensitivity result{resource, 1.0, std::nullopt, ""};
    if (goal == Goal::tpot || goal == Goal::ttft) {
        result.note = "holds more sequences, makes none faster";
        return result;
    }
    Candidate twice = asked;
    scale(twice, resource, 2.0);
    const auto before = score_when_full(asked);
    const auto after = score_when_full(twice);
    if (!after) {
        result.note = "does not fit even in twice as much";
    } else if (!before) {
        result.note = "makes it fit";
    } else {
        result.doubled = improvement(*before, *after, goal);
        result.note = "at the largest batches: " + std::to_string(static_cast<long long>(before->batch)) + " and " +
                      std::to_string(static_cast<long long>(after->batch));
    }
    return result;
}

}  // namespace

std::vector<DType> working_types(const Candidate& asked, const Score& score, Goal goal) {
    auto scenario = predict::realise(asked.setup);
    if (!scenario) return {DType::bf16};
    const bool decode = goal == Goal::tpot || (goal != Goal::ttft && score.mostly_decode);
    const predict::Replica replica(*scenario);
    std::vector<predict::OperatorTime> times(replica.whole().size());
    const predict::StageKind stage = decode ? predict::StageKind::decode : predict::StageKind::prefill;
    replica.evaluate(predict::step_of(scenario->workload, stage), times, predict::Pace::steady);
    std::array<double, dtype_count> seconds{};
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (replica.whole().engine(i) != Engine::matrix) continue;
        const DType type = replica.whole().type(i);
        seconds[index(type)] += times[i].flops * replica.whole().limit().flop_cost(Engine::matrix, type);
    }
    std::vector<DType> types;
    for (std::size_t i = 0; i < dtype_count; ++i) {
        if (seconds[i] > 0.0) types.push_back(static_cast<DType>(i));
    }
    sort_stably(types, [&](DType a, DType b) { return seconds[index(a)] > seconds[index(b)]; });
    return types.empty() ? std::vector{DType::bf16} : types;
}

std::vector<Sensitivity> sensitivities(const Candidate& asked, const Score& score, Goal goal) {
    std::vector<Sensitivity> result;
    for (const Resource& resource : resources_of(asked, working_types(asked, score, goal))) {
        if (resource.kind == ResourceKind::capacity && resource.level == Level::memory) {
            result.push_back(memory_capacity(asked, resource, goal));
            continue;
        }
        const auto doubled = scaled_score(asked, resource, 2.0);
        const auto nudged = scaled_score(asked, resource, small_change);
        if (!doubled || !nudged) continue;
        Sensitivity row{resource, improvement(score, *doubled, goal), std::nullopt, ""};
        // A cache holds something or does not: there is no slope.
        if (resource.kind != ResourceKind::capacity)
            row.elasticity = (improvement(score, *nudged, goal) - 1.0) / (small_change - 1.0);
        result.push_back(row);
    }
    sort_stably(result, [](const Sensitivity& a, const Sensitivity& b) { return a.doubled > b.doubled; });
    return result;
}

}  // namespace roofline::decide
