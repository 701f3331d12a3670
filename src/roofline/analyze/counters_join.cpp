#include "roofline/analyze/counters_join.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "roofline/analyze/expect.hpp"
#include "roofline/analyze/structure.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::analyze {
namespace {

/// The launches of one step under the roles they have in a model.
AccountStage by_role(std::span<const Counters> launches, const LaunchSpan& span, double& layers) {
    std::vector<Piece> pieces;
    for (std::size_t i = span.begin; i < span.end; ++i) pieces.push_back({.sort = sort_of_kernel(launches[i].kernel)});
    std::set<MixerProducts> mixers;
    const Found found = find_roles(pieces, mixers);
    layers = found.layers;
    AccountStage stage;
    stage.name = span.name;
    std::map<std::string, std::size_t> places;
    for (std::size_t i = span.begin; i < span.end; ++i) {
        const std::string& role = found.roles[i - span.begin].name;
        if (role.empty()) continue;
        const auto [place, fresh] = places.try_emplace(role, stage.records.size());
        if (fresh) {
            Record& record = stage.records.emplace_back();
            record.name = role;
            record.count = 0.0;
            record.times.measured = Seconds{};
        }
        Record& record = stage.records[place->second];
        record.count += 1.0;
        *record.times.measured += launches[i].duration;
        record.work.at(Level::memory) += Bytes(launches[i].dram.value_or(0.0));
    }
    return stage;
}

/// What really crossed memory beside what the model's operators need, for those that take long.
void compare_bytes(const AccountStage& stage, const Expected& expected, Analysis& analysis) {
    Seconds wall{};
    for (const Record& record : stage.records) wall += *record.times.measured;
    for (const Record& record : stage.records) {
        const auto found = expected.records.find(record.name);
        if (found == expected.records.end() || *record.times.measured < wall * 0.05) continue;
        // Counting runs every launch by itself: what an operator hands on to the next goes through memory too.
        const Bytes needed = found->second.work.at(Level::memory) + found->second.work.at(Level::cache);
        const Bytes moved = record.work.at(Level::memory);
        const bool products = found->second.kind == Kind::gemm || found->second.kind == Kind::attention;
        if (!products || needed.value <= 0.0 || moved.value <= 0.0) continue;
        analysis.memory_notes.push_back(fmt::format("{}: {} moved {} of memory, {:.2f} times the {} that it needs",
                                                    stage.name, record.name, render::bytes(moved), moved / needed,
                                                    render::bytes(needed)));
    }
}

}  // namespace

Result<void> join_counters(std::span<const Counters> launches, std::span<const LaunchSpan> steps,
                           const Options& options, Analysis& analysis) {
    if (!options.model) return {};
    if (!analysis.device_known) {
        analysis.account.notes.emplace_back("a prediction to hold it against needs --device");
        return {};
    }
    Analysis roles;
    Steps found;
    for (const LaunchSpan& span : steps) {
        Step& step = found.all.emplace_back();
        step.name = span.name;
        roles.account.stages.push_back(by_role(launches, span, step.layers));
        Stage stage;
        stage.name = span.name;
        stage.kind = span.name.starts_with("prefill") ? "prefill" : "decode";
        found.stages.push_back(std::move(stage));
    }
    if (const std::string why = other_model(*options.model, found); !why.empty()) {
        analysis.account.notes.push_back(why);
        return {};
    }
    const auto expected = expect(*options.model, analysis.account.device, found.stages, {});
    if (!expected) return std::unexpected(expected.error());
    for (AccountStage& stage : roles.account.stages) {
        stage.times.measured = Seconds{};
        for (const Record& record : stage.records) *stage.times.measured += *record.times.measured;
    }
    join(*expected, roles);
    // Launches were counted one at a time: there is no step to hold against a step, only kernels against kernels.
    std::erase_if(roles.joined, [](const Joined& row) { return row.name == "whole step"; });
    analysis.joined = std::move(roles.joined);
    analysis.account.model = options.model->model_name;
    for (std::size_t i = 0; i < expected->size(); ++i) {
        if ((*expected)[i].known) compare_bytes(roles.account.stages[i], (*expected)[i], analysis);
    }
    analysis.account.notes.push_back(
        fmt::format("launches were matched to the operators of {} by their order and names; batch and lengths are not "
                    "in the file, but those of --batch, --prompt and --context",
                    analysis.account.model));
    return {};
}

}  // namespace roofline::analyze
