#include "roofline/analyze/expect.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "roofline/io/calibration_file.hpp"

namespace roofline::analyze {

std::string without_layer_group(const std::string& name) {
    const std::size_t open = name.find('[');
    const std::size_t close = name.find(']', open == std::string::npos ? 0 : open);
    if (open == std::string::npos || close == std::string::npos) return name;
    return name.substr(0, open) + name.substr(close + 1);
}

namespace {

void add(Record& sum, const Record& record) {
    sum.count += record.count;
    sum.work.flops += record.work.flops;
    for (const Level level : all_levels) sum.work.at(level) += record.work.at(level);
    sum.weights += record.weights;
    sum.kv += record.kv;
    sum.times.limit += record.times.limit;
    sum.times.attainable += record.times.attainable;
    sum.times.expected += record.times.expected;
    sum.times.expected_low += record.times.expected_low;
    sum.times.expected_high += record.times.expected_high;
}

/// The role under which a trace shows an operator of the model.
std::string as_traced(const std::string& name) {
    const std::string attention = "layers.attention.";
    const std::string shared = "layers.ffn.shared.";
    if (name.starts_with(shared)) return "layers.ffn.experts." + name.substr(shared.size());
    if (!name.starts_with(attention)) return name;
    const std::string part = name.substr(attention.size());
    for (const char* projection : {"q_down", "q_up", "kv_down", "kv_up", "q", "kv", "in"})
        if (part == projection) return attention + "qkv";
    for (const char* norm : {"q_norm", "kv_norm", "qk_norm"})
        if (part == norm) return attention + "rotary";
    for (const char* mixer : {"core_chunked", "core_recurrent", "convolution", "gated_norm"})
        if (part == mixer) return attention + "mixer";
    return part.starts_with("core_") ? attention + "core" : name;
}

predict::Workload workload_of(const Stage& stage, const predict::Workload& asked) {
    predict::Workload workload = asked;
    using predict::StageKind;
    if (stage.batch > 0.0) workload.batch = stage.batch;
    if (stage.kind == "mixed") {
        workload.stages = {StageKind::mixed};
        workload.chunk = stage.chunk;
        if (stage.context > 0.0) workload.context = std::round(stage.context);
    } else if (stage.kind == "prefill") {
        workload.stages = {StageKind::prefill};
        if (stage.tokens > 0.0) workload.prompt = std::max(1.0, stage.tokens / workload.batch);
        if (stage.context > workload.prompt) workload.cached = stage.context - workload.prompt;
    } else {
        workload.stages = {StageKind::decode};
        if (stage.context > 0.0) workload.context = std::round(stage.context);
    }
    return workload;
}

/// `predict` counts logits of one position a sequence. What a head of more rows takes is what it takes in a step that
/// writes as many tokens.
Result<void> widen_head(predict::Setup asked, double rows, Expected& expected) {
    asked.workload.stages = {predict::StageKind::decode};
    asked.workload.batch = rows;
    asked.workload.context = 1.0;
    const auto scenario = predict::realise(asked);
    if (!scenario) return std::unexpected(scenario.error());
    const predict::Report report = predict::predict(*scenario);
    const auto head = expected.records.find("head");
    if (report.stages.empty() || head == expected.records.end()) return {};
    const predict::StageReport& step = report.stages.front();
    const double kernels = step.totals.kernel_seconds > 0.0 && step.totals.expected > step.totals.kernel_seconds
                               ? step.totals.kernel_seconds / step.totals.expected
                               : 1.0;
    for (std::size_t i = 0; i < step.records.size(); ++i) {
        Record record = step.records[i];
        if (record.name != "head") continue;
        if (i < step.details.size()) record.weights = Bytes(step.details[i].weight_bytes);
        // Both hold their share of what a step adds between its kernels; of this one it is not wanted.
        for (Seconds* time : {&record.times.expected, &record.times.expected_low, &record.times.expected_high})
            *time = *time * (kernels / expected.kernels);
        const Times before = std::exchange(head->second, record).times;
        expected.times.limit += record.times.limit - before.limit;
        expected.times.attainable += record.times.attainable - before.attainable;
        // A device that waits for its host can do more in the same time.
        const Seconds more = (record.times.expected - before.expected) * expected.kernels;
        const Seconds hidden = std::min(more, expected.idle);
        expected.idle = expected.idle - hidden;
        for (Seconds* time : {&expected.times.expected, &expected.times.expected_low, &expected.times.expected_high})
            *time += more - hidden;
    }
    return {};
}

}  // namespace

std::vector<double> rows_of_heads(const Items& items, const Steps& steps) {
    std::vector<double> rows(steps.stages.size(), 0.0);
    for (const Step& step : steps.all) {
        for (const std::uint32_t i : step.items) {
            spool_room::breathe(i);
            const Item& item = items.all[i];
            if (item.role == none || steps.roles[item.role] != "head") continue;
            const Effort* effort = items.effort(item);
            if (effort != nullptr && effort->product) rows[step.stage] = effort->product->rows;
        }
    }
    return rows;
}

Result<std::vector<Expected>> expect(const predict::Setup& setup, const Device& device,
                                     const std::vector<Stage>& stages, const std::vector<double>& head_rows) {
    predict::Setup asked = setup;
    if (asked.device.name != device.name) {
        asked.device = device;
        auto constants = io::builtin_calibration(device);
        if (!constants) return std::unexpected(constants.error());
        asked.execution.calibration = std::make_shared<const predict::Calibration>(std::move(*constants));
    }
    std::vector<Expected> result;
    for (const Stage& stage : stages) {
        Expected& expected = result.emplace_back();
        if (stage.kind == "train" || stage.kind == "encode") continue;  // nothing that is predicted
        if (stage.kind == "mixed" && stage.chunk <= 0.0) continue;  // how many of its tokens write is not in the file
        asked.workload = workload_of(stage, setup.workload);
        const auto scenario = predict::realise(asked);
        if (!scenario) return std::unexpected(scenario.error());
        const predict::Report report = predict::predict(*scenario);
        if (report.stages.empty()) continue;
        expected.known = true;
        const predict::StageReport& step = report.stages.front();
        expected.times = step.times;
        // What a step adds to its kernels (a host that launches them one by one) is spread over its operators; kernels
        // of a trace are held against kernels.
        if (step.totals.kernel_seconds > 0.0 && step.totals.expected > step.totals.kernel_seconds)
            expected.kernels = step.totals.kernel_seconds / step.totals.expected;
        expected.idle = expected.times.expected * (1.0 - expected.kernels);
        for (std::size_t i = 0; i < step.records.size(); ++i) {
            Record record = step.records[i];
            if (i < step.details.size()) {
                record.weights = Bytes(step.details[i].weight_bytes);
                record.kv = Bytes(step.details[i].kv_bytes);
            }
            const std::string name = as_traced(without_layer_group(record.name));
            const auto [place, fresh] = expected.records.try_emplace(name, record);
            if (!fresh) add(place->second, record);
            place->second.name = name;
        }
        const double rows = result.size() <= head_rows.size() ? head_rows[result.size() - 1] : 0.0;
        if (stage.kind != "prefill" || rows <= asked.workload.batch) continue;
        if (auto done = widen_head(asked, rows, expected); !done) return std::unexpected(done.error());
    }
    return result;
}

std::string other_model(const predict::Setup& setup, const Steps& steps) {
    if (!setup.architecture) return {};
    const auto layers = static_cast<double>(setup.architecture->layers.size());
    for (const Step& step : steps.all) {
        // A step may be cut short by the profiler, and mixers other than attention are not seen; more layers than there
        // are is another model for sure, and so is a third of them.
        if (step.layers > layers ||
            (step.layers > 0.0 && step.layers < layers / 3.0 && setup.deployment().pipeline <= 1)) {
            return fmt::format(
                "a layer repeats {:.0f} times in {}, but {} has {:.0f} layers: it is not what ran, and is left "
                "out of the picture",
                step.layers, step.name, setup.model_name, layers);
        }
    }
    return {};
}

void rename_roles(const std::vector<Expected>& expected, Steps& steps) {
    const auto has = [&](const std::string& role) {
        return std::any_of(expected.begin(), expected.end(),
                           [&](const Expected& stage) { return stage.records.contains(role); });
    };
    // Whether the first product of a feed-forward block holds a gate is seen in its width only.
    for (std::string& role : steps.roles) {
        for (const auto& [guess, other] :
             {std::pair{"layers.ffn.gate_up", "layers.ffn.up"}, std::pair{"layers.ffn.up", "layers.ffn.gate_up"}}) {
            if (role == guess && !has(guess) && has(other)) {
                role = other;
                break;
            }
        }
    }
}

Seconds lend_work(const Timeline& timeline, const std::vector<Expected>& expected, const Steps& steps, Items& items) {
    std::int64_t lent = 0;
    for (const Step& step : steps.all) {
        if (step.stage >= expected.size() || !expected[step.stage].known) continue;
        std::map<std::uint32_t, std::vector<std::uint32_t>> by_role;
        std::set<std::uint32_t> counted;  // roles of which some items have shapes: lending would count twice
        for (const std::uint32_t i : step.items) {
            spool_room::breathe(i);
            const Item& item = items.all[i];
            if (item.ran != Ran::kernel || item.role == none) continue;
            if (item.effort != none) {
                counted.insert(item.role);
            } else {
                by_role[item.role].push_back(i);
            }
        }
        for (const auto& [role, members] : by_role) {
            const auto found = expected[step.stage].records.find(steps.roles[role]);
            if (counted.contains(role) || found == expected[step.stage].records.end()) continue;
            const Record& record = found->second;
            // Products do the work of their role; what is started beside them (a reduction, a copy) takes part of its
            // time.
            std::vector<std::uint32_t> carriers;
            for (const std::uint32_t i : members) {
                const auto sort = piece_of(timeline, items, items.all[i]).sort;
                const bool works = sort == Piece::Sort::product || sort == Piece::Sort::grouped ||
                                   sort == Piece::Sort::attention || sort == Piece::Sort::batched;
                if (works) carriers.push_back(i);
            }
            if (carriers.empty() || (record.kind != Kind::gemm && record.kind != Kind::attention)) carriers = members;
            const auto share = static_cast<double>(carriers.size());
            Effort effort;
            effort.kind = record.kind;
            effort.engine = record.work.engine;
            effort.type = record.work.type;
            effort.flops = record.work.flops.value / share;
            effort.weights = record.weights.value / share;
            effort.kv = record.kv.value / share;
            effort.link = (record.work.at(Level::peer) + record.work.at(Level::network)).value / share;
            const double rest = record.work.at(Level::memory).value + record.work.at(Level::cache).value -
                                record.weights.value - record.kv.value;
            effort.activations = std::max(0.0, rest) / share;
            effort.estimated = true;
            const auto with_work = static_cast<std::uint32_t>(items.efforts.size());
            items.efforts.push_back(effort);
            Effort nothing;
            nothing.kind = record.kind;
            nothing.estimated = true;
            items.efforts.push_back(nothing);
            for (const std::uint32_t i : members) {
                const bool carries = std::find(carriers.begin(), carriers.end(), i) != carriers.end();
                items.all[i].effort = carries ? with_work : with_work + 1;
                items.all[i].inferred = true;
                lent += items.all[i].time;
            }
        }
    }
    return Seconds(static_cast<double>(lent) * 1e-9);
}

void join(const std::vector<Expected>& expected, Analysis& analysis) {
    for (std::size_t i = 0; i < std::min(expected.size(), analysis.account.stages.size()); ++i) {
        if (!expected[i].known) continue;
        AccountStage& stage = analysis.account.stages[i];
        analysis.joined.push_back({stage.name, "whole step", expected[i].times.limit, expected[i].times.expected,
                                   stage.times.measured.value_or(Seconds{})});
        std::set<std::string> seen;
        for (Record& record : stage.records) {
            const auto found = expected[i].records.find(record.name);
            Joined row{stage.name, record.name, {}, {}, record.times.measured.value_or(Seconds{})};
            const double kernels = expected[i].kernels;
            if (record.kind == Kind::idle) row.expected = expected[i].idle;
            if (found != expected[i].records.end()) {
                seen.insert(record.name);
                row.limit = found->second.times.limit;
                const Times& times = found->second.times;
                row.expected = times.expected * kernels;
                record.times.expected = std::max(record.times.attainable, times.expected * kernels);
                record.times.expected_low = std::max(record.times.attainable, times.expected_low * kernels);
                record.times.expected_high = std::max(record.times.expected, times.expected_high * kernels);
            }
            analysis.joined.push_back(row);
        }
        for (const auto& [name, record] : expected[i].records) {
            if (!seen.contains(name))
                analysis.joined.push_back(
                    {stage.name, name, record.times.limit, record.times.expected * expected[i].kernels, {}});
        }
        stage.times.expected = std::max(stage.times.attainable, expected[i].times.expected);
        stage.times.expected_low = std::max(stage.times.attainable, expected[i].times.expected_low);
        stage.times.expected_high = std::max(stage.times.expected, expected[i].times.expected_high);
    }
    const auto difference = [](const Joined& row) { return std::abs(row.measured.value - row.expected.value); };
    std::stable_sort(analysis.joined.begin(), analysis.joined.end(), [&](const Joined& a, const Joined& b) {
        if (a.stage != b.stage) return false;  // stages stay in their order
        return difference(a) > difference(b);
    });
}

}  // namespace roofline::analyze
