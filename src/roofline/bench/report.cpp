#include "roofline/bench/report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/io/account_json.hpp"

namespace roofline::bench {
namespace {

using io::OrderedJson;

OrderedJson timing_json(const Timing& timing) {
    return {{"time_s", timing.median}, {"low_s", timing.low}, {"high_s", timing.high}};
}

void add_faster(OrderedJson& json, const std::optional<FasterThanLimit>& faster) {
    if (faster) json["faster_than_limit"] = {{"ratio", faster->ratio}, {"because", faster->because}};
}

OrderedJson outcome_json(const Outcome& outcome, const Planned& planned) {
    OrderedJson json = {{"name", outcome.task}, {"backend", outcome.backend}};
    if (planned.task) json["shape"] = describe(*planned.task);
    if (!outcome.measured()) {
        json["problem"] = outcome.problem;
        return json;
    }
    json.update(timing_json(outcome.timing));
    json["flops"] = outcome.flops;
    json["bytes"] = outcome.bytes;
    json["error"] = outcome.error;
    json["tolerance"] = outcome.tolerance;
    json["repetitions"] = outcome.timing.calls;
    json["buffers"] = outcome.buffers;
    return json;
}

OrderedJson step_json(const StepOutcome& step, double produced) {
    OrderedJson json = {{"backend", step.backend}};
    if (!step.launch.empty()) json["launch"] = step.launch;
    if (!step.problem.empty()) {
        json["problem"] = step.problem;
        return json;
    }
    json.update(timing_json(step.timing));
    json["attention_s"] = step.attention;
    json["ffn_s"] = step.ffn;
    json["other_s"] = step.other;
    json["tokens_per_s"] = produced / step.timing.median;
    json["layers_distinct"] = step.layers_distinct;
    json["repetitions"] = step.timing.calls;
    return json;
}

}  // namespace

namespace {

/// A ratio that no rounding makes.
constexpr double clearly = 1.005;

std::string ceiling_too_low(const Run& run, const char* what) {
    return fmt::format("the {} that {} gives is lower than what was reached here: `roofline measure` finds it anew",
                       what, run.account.device.name);
}

/// Each reason once, with those it holds for.
class Reasons {
  public:
    void add(const std::string& reason, const std::string& whom) {
        auto known = std::find_if(all_.begin(), all_.end(), [&](const auto& entry) { return entry.first == reason; });
        if (known == all_.end()) known = all_.insert(all_.end(), {reason, {}});
        if (std::find(known->second.begin(), known->second.end(), whom) == known->second.end())
            known->second.push_back(whom);
    }
    void write(std::vector<std::string>& notes) const {
        for (const auto& [reason, whom] : all_)
            notes.push_back(fmt::format("faster than the limit: {} ({})", fmt::join(whom, ", "), reason));
    }

  private:
    std::vector<std::pair<std::string, std::vector<std::string>>> all_;
};

}  // namespace

std::optional<FasterThanLimit> faster_than_limit(const Run& run, const StageRun& stage, std::size_t record,
                                                 const Outcome& outcome) {
    if (!run.roofs_known || !outcome.measured()) return std::nullopt;
    const Record& held = stage.stage.records[record];
    const double limit = held.times.limit.value / held.count;
    const double ratio = limit / outcome.timing.median;
    if (!(ratio > clearly)) return std::nullopt;
    const bool memory = judge(held.work, limit_roofs(run.account.device)).bound != Bound::compute;
    if (!memory) return FasterThanLimit{ratio, ceiling_too_low(run, "peak rate")};
    // Only what a step finds cold is rotated past the caches; the rest stays where the call before left it.
    const auto& task = stage.planned[record].task;
    const bool cold = task && task->rotated > 0.5 * task->bytes && outcome.buffers > 1;
    if (!cold) return FasterThanLimit{ratio, "its bytes stayed in a cache, and the limit counts them through memory"};
    // A state is written back: there are processors whose memory takes more in both directions than in one.
    if (keeps_state(*task))
        return FasterThanLimit{ratio, "half of its bytes are written, and the limit is that of reading"};
    return FasterThanLimit{ratio, ceiling_too_low(run, "memory bandwidth")};
}

std::optional<FasterThanLimit> faster_than_limit(const Run& run, const StageRun& stage, const StepOutcome& step) {
    if (!run.roofs_known || !step.problem.empty()) return std::nullopt;
    const double ratio = stage.stage.times.limit.value / step.timing.median;
    if (!(ratio > clearly)) return std::nullopt;
    if (stage.bound == Bound::compute) return FasterThanLimit{ratio, ceiling_too_low(run, "peak rate")};
    double weights = 0.0;
    for (const Record& record : stage.stage.records) weights += record.weights.value;
    const Figure* cache = run.account.device.capacity(Level::cache);
    if (cache != nullptr && weights < 3.0 * cache->value)
        return FasterThanLimit{ratio, "the whole model is small enough to stay in a cache"};
    return FasterThanLimit{ratio, ceiling_too_low(run, "memory bandwidth")};
}

namespace {

/// Routed experts are run in whole ones, where `predict` counts those that are touched on the mean: what is run is held
/// against the time of its own bytes, where it waits for them.
void hold_to(Record& record, const Task& task, const Device& device) {
    if (task.kind != TaskKind::product || task.experts == 1) return;
    const Work before = record.work;
    Bytes& memory = record.work.at(Level::memory);
    memory = Bytes(task.bytes * record.count);
    record.weights = Bytes(record.weights.value + memory.value - before.at(Level::memory).value);
    const auto longer_under = [&](const Roofs& roofs) {
        const double time = time_under(before, roofs).time.value;
        return time > 0.0 ? time_under(record.work, roofs).time.value / time : 1.0;
    };
    Times& times = record.times;
    times.limit = Seconds(times.limit.value * longer_under(limit_roofs(device)));
    const double longer = longer_under(attainable_roofs(device));
    for (Seconds* time : {&times.attainable, &times.expected, &times.expected_low, &times.expected_high})
        *time = Seconds(time->value * longer);
}

/// Every share of a ceiling rests on memory being as fast as it was when the ceiling was found. What a short look finds
/// of a quiet machine lies within a few percent of it.
void judge_memory(Run& run) {
    constexpr double much_slower = 0.85;
    constexpr double much_faster = 1.1;
    const Figure* ceiling = run.account.device.bandwidth(Level::memory);
    if (!run.memory_read || ceiling == nullptr) return;
    const auto [slower, faster] = std::minmax(run.memory_read->before, run.memory_read->after);
    const std::string seen = fmt::format(
        "memory was read at {:.1f} GB/s before the run and {:.1f} after it, at {:.1f} when its ceiling was measured",
        run.memory_read->before / 1e9, run.memory_read->after / 1e9, ceiling->value / 1e9);
    if (slower < much_slower * ceiling->value) {
        run.busy_because.push_back(seen);
    } else if (faster > much_faster * ceiling->value) {
        run.account.notes.push_back(seen + ": `roofline measure` finds it anew");
    }
}

}  // namespace

StageRun start_stage(const predict::Scenario& scenario, const predict::StageReport& stage, std::string dtype) {
    StageRun run;
    run.dtype = std::move(dtype);
    run.stage.name = name(stage.kind);
    run.stage.batch = stage.batch;
    run.stage.tokens = stage.tokens;
    run.stage.context = stage.context;
    run.stage.produced = stage.produced();
    run.stage.times = stage.times;
    run.stage.records = stage.records;
    for (std::size_t i = 0; i < stage.records.size(); ++i) {
        run.stage.records[i].weights = Bytes(stage.details[i].weight_bytes);
        run.stage.records[i].kv = Bytes(stage.details[i].kv_bytes);
    }
    run.bound = stage.totals.bound;
    run.planned = plan_tasks(scenario, stage);
    for (std::size_t i = 0; i < run.planned.size(); ++i) {
        if (run.planned[i].task) hold_to(run.stage.records[i], *run.planned[i].task, scenario.device);
    }
    // Of a device without roofs a prediction knows how long kernels take to start, and no more.
    if (scenario.device.bandwidth(Level::memory) == nullptr) {
        run.stage.times = {};
        for (Record& record : run.stage.records) record.times = {};
    }
    run.outcomes.resize(run.planned.size());
    return run;
}

const Outcome* winner(const std::vector<Outcome>& outcomes) {
    const Outcome* best = nullptr;
    for (const Outcome& outcome : outcomes) {
        if (outcome.measured() && (best == nullptr || outcome.timing.median < best->timing.median)) best = &outcome;
    }
    return best;
}

const StepOutcome* winner(const std::vector<StepOutcome>& steps) {
    const StepOutcome* best = nullptr;
    for (const StepOutcome& step : steps) {
        if (step.problem.empty() && (best == nullptr || step.timing.median < best->timing.median)) best = &step;
    }
    return best;
}

void settle(Run& run) {
    const bool several_types = std::any_of(run.stages.begin(), run.stages.end(), [&](const StageRun& stage) {
        return stage.dtype != run.stages.front().dtype;
    });
    run.account.verb = "bench";
    run.account.stages.clear();
    Reasons reasons;
    for (StageRun& stage : run.stages) {
        for (std::size_t i = 0; i < stage.outcomes.size(); ++i) {
            Record& record = stage.stage.records[i];
            const Outcome* best = winner(stage.outcomes[i]);
            if (best == nullptr) continue;
            record.times.measured = Seconds(best->timing.median * record.count);
            record.origin = Origin::measured;
        }
        if (const StepOutcome* step = winner(stage.steps)) {
            stage.stage.times.measured = Seconds(step->timing.median);
            stage.stage.repetitions = static_cast<double>(step->timing.calls);
        }
        for (const StepOutcome& step : stage.steps) {
            if (const auto faster = faster_than_limit(run, stage, step)) reasons.add(faster->because, "whole step");
        }
        for (std::size_t i = 0; i < stage.outcomes.size(); ++i) {
            for (const Outcome& outcome : stage.outcomes[i]) {
                if (const auto faster = faster_than_limit(run, stage, i, outcome))
                    reasons.add(faster->because, stage.stage.records[i].name);
            }
        }
        AccountStage& kept = run.account.stages.emplace_back(stage.stage);
        if (several_types && !stage.dtype.empty()) kept.name += " " + stage.dtype;
    }
    reasons.write(run.account.notes);
    judge_memory(run);
    for (const std::string& reason : run.busy_because) run.account.notes.push_back("the machine was busy: " + reason);
}

OrderedJson run_json(const Run& run, const io::RunInfo& info) {
    OrderedJson json = io::account_json(run.account, info);
    OrderedJson bench = {{"threads", run.threads},
                         {"roofs_known", run.roofs_known},
                         {"busy", !run.busy_because.empty()},
                         {"busy_because", run.busy_because},
                         {"backends", OrderedJson::array()}};
    if (run.memory_read)
        bench["memory_read"] = {{"before", run.memory_read->before}, {"after", run.memory_read->after}};
    for (std::size_t i = 0; i < run.backends.size(); ++i)
        bench["backends"].push_back({{"name", run.backends[i]}, {"description", run.descriptions[i]}});
    bench["stages"] = OrderedJson::array();
    for (const StageRun& stage : run.stages) {
        OrderedJson one = {{"stage", stage.stage.name},      {"dtype", stage.dtype},
                           {"batch", stage.stage.batch},     {"tokens", stage.stage.tokens},
                           {"context", stage.stage.context}, {"bound", name(stage.bound)}};
        one["steps"] = OrderedJson::array();
        for (const StepOutcome& step : stage.steps) {
            one["steps"].push_back(step_json(step, stage.stage.produced));
            add_faster(one["steps"].back(), faster_than_limit(run, stage, step));
        }
        if (!stage.no_step.empty()) one["no_step"] = stage.no_step;
        one["results"] = OrderedJson::array();
        for (std::size_t i = 0; i < stage.planned.size(); ++i) {
            for (const Outcome& outcome : stage.outcomes[i]) {
                one["results"].push_back(outcome_json(outcome, stage.planned[i]));
                add_faster(one["results"].back(), faster_than_limit(run, stage, i, outcome));
            }
            if (!stage.planned[i].task) {
                one["results"].push_back(
                    {{"name", stage.stage.records[i].name}, {"backend", "none"}, {"problem", stage.planned[i].reason}});
            }
        }
        bench["stages"].push_back(std::move(one));
    }
    json["bench"] = std::move(bench);
    return json;
}

}  // namespace roofline::bench
