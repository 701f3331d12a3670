#include "roofline/analyze/run.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "roofline/analyze/borrow.hpp"
#include "roofline/analyze/busy.hpp"
#include "roofline/analyze/diagnose.hpp"
#include "roofline/analyze/expect.hpp"
#include "roofline/analyze/gather.hpp"
#include "roofline/analyze/items.hpp"
#include "roofline/analyze/slow_steps.hpp"
#include "roofline/analyze/steps.hpp"
#include "roofline/io/catalog.hpp"

namespace roofline::analyze {
namespace {

Seconds seconds(std::int64_t nanoseconds) {
    return Seconds(static_cast<double>(nanoseconds) * 1e-9);
}

/// The device that ran most, by the name the file gives it, among those we know.
void choose_device(const Timeline& timeline, const Options& options, Analysis& analysis) {
    Account& account = analysis.account;
    if (options.device) {
        account.device = *options.device;
        analysis.device_known = true;
        return;
    }
    if (timeline.host_runs_operators) {
        // A device that the file names did not run them.
        account.device.name = account.device.title = "the processor that recorded it";
        account.notes.emplace_back(
            "the file does not name the processor that ran it: percentages of a roof need --device (of this machine: "
            "--device this, once `roofline measure` has run)");
        return;
    }
    std::map<std::int64_t, std::int64_t> busy;
    for (const DeviceEvent& event : timeline.ran) busy[timeline.streams[event.stream].device] += event.duration;
    std::int64_t most = -1;
    std::string name;
    for (const auto& [device, time] : busy) {
        const auto named = timeline.devices.find(device);
        if (time > most && named != timeline.devices.end()) {
            most = time;
            name = named->second;
        }
    }
    if (name.empty() && !timeline.devices.empty()) name = timeline.devices.begin()->second;
    if (!name.empty()) {
        if (auto device = io::builtin_device(name)) {
            account.device = std::move(*device);
            analysis.device_known = true;
            return;
        }
    }
    account.device.name = account.device.title = name.empty() ? "unknown device" : name;
    account.notes.push_back(name.empty()
                                ? "the file names no device: percentages of a roof need --device"
                                : fmt::format("the file was made on \"{}\", which is not among the devices known "
                                              "here: percentages of a roof need --device",
                                              name));
}

bool lists_without_shapes(const Signature& signature) {
    bool any = false;
    for (const Argument& argument : signature.arguments) {
        if (!argument.tensors.empty() && !argument.tensors[0].dims.empty()) return false;
        any = any || argument.type == "TensorList";
    }
    return any;
}

void count_explained(const Timeline& timeline, const Items& items, Analysis& analysis) {
    std::int64_t all = 0;
    std::int64_t explained = 0;
    struct Left {
        const Item* one = nullptr;
        double count = 0.0;
        std::int64_t time = 0;
    };
    std::map<std::pair<std::uint32_t, bool>, Left> left;  // by operator or kernel: millions may share a name
    for (const Item& item : items.all) {
        if (item.ran != Ran::kernel) continue;
        all += item.time;
        if (item.effort != none) {
            explained += item.time;
            continue;
        }
        const bool called = item.signature != none && !item.in_graph;
        const std::uint32_t kernel = item.last == none ? none : timeline.ran[items.first_event(item)].name;
        Left& sum = left[{called ? item.signature : kernel, called}];
        sum.one = &item;
        sum.count += 1.0;
        sum.time += item.time;
    }
    std::map<std::string, Unexplained> rest;
    for (const auto& [key, sum] : left) {
        const Item& item = *sum.one;
        std::string name = item_name(timeline, items, item, false);
        std::string why = "no operator started it";
        if (item.in_graph) {
            why = "inside a CUDA graph, which carries no shapes";
            name = short_kernel_name(name);
        } else if (item.signature != none) {
            const Signature& signature = timeline.signatures[item.signature];
            why = !signature.has_shapes             ? "the file holds no shapes"
                  : lists_without_shapes(signature) ? "its lists of tensors carry no shapes"
                  : sort_of_operator(signature.name) == Piece::Sort::attention
                      ? "how long sequences are is not in its shapes"
                      : "no formula for this operator";
        } else {
            name = short_kernel_name(name);
        }
        Unexplained& entry = rest[name];
        entry.name = name;
        entry.count += sum.count;
        entry.time += seconds(sum.time);
        entry.why = why;
    }
    analysis.kernel_time = seconds(all);
    analysis.explained_time = seconds(explained);
    for (auto& [name, entry] : rest) analysis.unattributed.push_back(std::move(entry));
    std::stable_sort(analysis.unattributed.begin(), analysis.unattributed.end(),
                     [](const Unexplained& a, const Unexplained& b) { return a.time > b.time; });
}

/// Operators without a formula that were given what their tensors leave likely, the longest first.
void tell_likely(const Timeline& timeline, const Items& items, Analysis& analysis) {
    std::map<std::string, std::int64_t> times;
    std::int64_t all = 0;
    std::map<std::uint32_t, std::int64_t> by_signature;
    for (const Item& item : items.all) {
        if (!item.likely) continue;
        by_signature[item.signature] += item.time;
        all += item.time;
    }
    if (all == 0) return;
    for (const auto& [signature, time] : by_signature) times[timeline.signatures[signature].name] += time;
    std::vector<std::pair<std::string, std::int64_t>> sorted(times.begin(), times.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    constexpr std::size_t most = 4;
    std::string names;
    for (std::size_t i = 0; i < std::min(most, sorted.size()); ++i) names += (i == 0 ? "" : ", ") + sorted[i].first;
    if (sorted.size() > most) names += fmt::format(" and {} more", sorted.size() - most);
    analysis.account.notes.push_back(
        fmt::format("{:.1f}% of kernel time is in operators without a formula of their own ({}): taken to read their "
                    "tensors once and to write one as large as the largest",
                    100.0 * (seconds(all) / analysis.kernel_time), names));
}

/// F1 over a whole step, as if everything overlapped: the largest of all resources.
Seconds limit_of(const AccountStage& stage, const Device& device) {
    const Roofs roofs = limit_roofs(device);
    double compute = 0.0;
    std::array<double, level_count> bytes{};
    for (const Record& record : stage.records) {
        compute += record.work.flops.value * roofs.flop_cost(record.work.engine, record.work.type);
        for (const Level level : all_levels)
            bytes[index(level)] += record.work.at(level).value * roofs.seconds_per_byte[index(level)];
    }
    return Seconds(std::max(compute, *std::max_element(bytes.begin(), bytes.end())));
}

void finish_stage(AccountStage& stage, const WhereTimeWent& went, const Device& device, bool with_idle) {
    sum_records(stage);
    stage.times.limit = std::min(stage.times.attainable, limit_of(stage, device));
    stage.times.measured = went.wall;
    if (!with_idle || went.idle.value <= 0.0) return;
    Record idle;
    idle.name = "idle";
    idle.kind = Kind::idle;
    idle.origin = Origin::traced;
    idle.times.measured = went.idle;
    stage.records.push_back(std::move(idle));
}

WhereTimeWent divided(const WhereTimeWent& sum, double count) {
    WhereTimeWent one = sum;
    for (Seconds* part : {&one.wall, &one.computing, &one.copying, &one.communicating, &one.idle, &one.idle_launch,
                          &one.idle_host, &one.hidden_communication})
        *part = *part / count;
    return one;
}

/// Where time went in every stage, and in all: outside the steps is what is left over.
void measure_time(const Timeline& timeline, const Items& items, const Steps& steps, Span whole, Analysis& analysis) {
    const std::size_t groups = steps.stages.size() + 1;
    std::vector<Part> parts;
    std::int64_t at = whole.begin;
    for (const Step& step : steps.all) {
        if (step.begin > at) parts.push_back({{at, step.begin}, steps.stages.size()});
        const std::int64_t begin = std::max(at, step.begin);
        if (step.end > begin) parts.push_back({{begin, step.end}, step.stage});
        at = std::max(at, step.end);
    }
    if (whole.end > at) parts.push_back({{at, whole.end}, steps.stages.size()});
    const auto went = where_time_went(timeline, items, parts, groups);
    analysis.whole = where_time_went(timeline, items, {{whole, 0}}, 1).front();
    for (std::size_t i = 0; i < analysis.account.stages.size(); ++i) {
        const bool outside = i >= steps.stages.size();
        analysis.time_went.push_back(divided(went[outside ? steps.stages.size() : i],
                                             outside ? 1.0 : static_cast<double>(steps.stages[i].steps.size())));
    }
}

void list_steps(const Timeline& timeline, const Items& items, const Steps& steps, Span whole, Analysis& analysis) {
    for (const Step& step : steps.all) {
        StepTime time;
        time.stage = step.stage < steps.stages.size() ? steps.stages[step.stage].name : "outside steps";
        time.name = step.name;
        time.begin_s = static_cast<double>(step.begin - whole.begin) * 1e-9;
        time.wall = seconds(step.wall());
        std::int64_t busy = 0;
        for (const std::uint32_t i : step.items) {
            spool_room::breathe(i);
            busy += items.all[i].time;
            const double count = timeline.host_runs_operators ? 1.0 : static_cast<double>(items.all[i].count);
            time.kernels += items.all[i].ran == Ran::kernel ? count : 0.0;
        }
        for (const std::uint32_t i : step.items) {
            if (items.all[i].in_graph) time.graph_kernels += static_cast<double>(items.all[i].count);
        }
        time.busy = seconds(busy);
        time.batch = step.batch;
        time.tokens = step.tokens;
        time.context = step.context;
        time.layers = step.layers;
        analysis.steps.push_back(std::move(time));
    }
    analysis.layers = steps.layers;
}

/// The last step of each stage: the first ones are often those that warm up.
void keep_timelines(const Timeline& timeline, const Items& items, const Steps& steps, Analysis& analysis) {
    for (const Stage& stage : steps.stages) {
        if (stage.steps.empty()) continue;
        const Step& step = steps.all[stage.steps.back()];
        StepEvents& shown = analysis.timelines.emplace_back();
        shown.stage = stage.name;
        shown.step = step.name;
        std::map<std::uint32_t, std::size_t> lanes;
        for (const std::uint32_t i : step.items) {
            const Item& item = items.all[i];
            const bool known = item.role != none;
            for (const std::uint32_t number : items.events(item)) {
                const DeviceEvent& event = timeline.ran[number];
                const auto [lane, is_new] = lanes.try_emplace(event.stream, lanes.size());
                if (is_new) shown.streams.push_back(stream_name(timeline, event.stream));
                shown.events.push_back({known ? steps.roles[item.role] : item_name(timeline, items, item, false),
                                        known ? group_of(steps.roles[item.role]) : Group::other,
                                        static_cast<double>(event.begin - step.begin) * 1e-9,
                                        static_cast<double>(event.end() - step.begin) * 1e-9, lane->second});
            }
        }
    }
}

/// What would explain the rest, where most of the time is not explained.
void tell_missing_shapes(const Timeline& timeline, const Items& items, Analysis& analysis) {
    std::int64_t left = 0;
    std::int64_t in_graphs = 0;
    for (const Item& item : items.all) {
        if (item.ran != Ran::kernel || item.effort != none) continue;
        left += item.time;
        if (item.in_graph) in_graphs += item.time;
    }
    if (analysis.explained_time / analysis.kernel_time < 0.5 && in_graphs * 2 > left) {
        analysis.account.notes.emplace_back(
            "most kernels ran inside CUDA graphs, which carry no shapes: name what ran with --model to have them "
            "explained (docs/tracing.md)");
    } else if (!timeline.any_shapes) {
        analysis.account.notes.emplace_back(
            "the file holds no shapes, so FLOPs and bytes are unknown: name what ran with --model, or record with "
            "PyTorch's profiler and record_shapes=True (docs/tracing.md)");
    }
}

/// A model as PyTorch's modules run it, held against an engine that fuses: every difference is the same one.
void tell_profile(const predict::Setup& model, Analysis& analysis) {
    constexpr double fused = 20.0;  // kernels a layer: more than any engine launches
    const predict::Profile& profile = model.execution.profile;
    if (profile.step == "eager_step") return;
    for (const StepTime& step : analysis.steps) {
        if (step.graph_kernels > 0.0 || step.layers <= 0.0 || step.kernels < fused * step.layers) continue;
        analysis.account.notes.push_back(
            fmt::format("{} started {:.0f} kernels a layer, one by one; what is expected is that of profile {}, which "
                        "fuses them: --profile eager expects kernels like these",
                        step.name, step.kernels / step.layers, profile.name));
        return;
    }
}

}  // namespace

Result<Analysis> analyze_timeline(Timeline timeline, const Options& options, const std::string& name) {
    Analysis analysis;
    analysis.account.verb = "analyze";
    analysis.account.title = name;
    if (timeline.rank >= 0) {
        analysis.rank.emplace();
        analysis.rank->number = static_cast<double>(timeline.rank);
        analysis.rank->of = static_cast<double>(timeline.ranks);
    }
    connect(timeline);
    Items items = collect_items(timeline);
    Steps steps = find_steps(timeline, items);
    choose_device(timeline, options, analysis);
    const Device& device = analysis.account.device;
    const Span whole = span_of(timeline, items);
    std::vector<Expected> expected;
    bool same_model = false;
    if (options.model) {
        const std::string why = analysis.device_known ? other_model(*options.model, steps)
                                                      : "a prediction to hold it against needs --device";
        same_model = why.empty();
        if (!same_model) analysis.account.notes.push_back(why);
    }
    if (same_model) {
        analysis.account.model = options.model->model_name;
        auto predicted = expect(*options.model, device, steps.stages, rows_of_heads(items, steps));
        if (!predicted) return std::unexpected(predicted.error());
        expected = std::move(*predicted);
        rename_roles(expected, steps);
        analysis.inferred_time = lend_work(timeline, expected, steps, items);
    } else {
        analysis.inferred_time = borrow_from_prompts(timeline, items, steps);
    }
    const auto slow = set_slow_steps_apart(items, steps);
    analysis.account.notes.insert(analysis.account.notes.end(), slow.begin(), slow.end());

    analysis.account.stages = gather(timeline, items, steps, device, analysis.device_known, By::role);
    analysis.by_operator = gather(timeline, items, steps, device, analysis.device_known, By::operation);
    analysis.by_kernel = gather(timeline, items, steps, device, analysis.device_known, By::kernel);
    measure_time(timeline, items, steps, whole, analysis);
    for (std::size_t i = 0; i < analysis.account.stages.size(); ++i) {
        finish_stage(analysis.account.stages[i], analysis.time_went[i], device, true);
        finish_stage(analysis.by_operator[i], analysis.time_went[i], device, false);
        finish_stage(analysis.by_kernel[i], analysis.time_went[i], device, false);
    }
    list_steps(timeline, items, steps, whole, analysis);
    keep_timelines(timeline, items, steps, analysis);
    analysis.streams = stream_times(timeline, items, whole);
    count_explained(timeline, items, analysis);
    if (same_model) {
        join(expected, analysis);
        tell_profile(*options.model, analysis);
    }
    analysis.diagnoses = diagnose(analysis);
    for (const std::string& note : timeline.notes) analysis.account.notes.push_back(note);
    tell_likely(timeline, items, analysis);
    if (analysis.inferred_time.value > 0.0) {
        analysis.account.notes.push_back(
            fmt::format("{:.1f}% of kernel time carries no shapes in the file; its FLOPs and bytes are inferred from "
                        "{} by the order and "
                        "the names of kernels",
                        100.0 * (analysis.inferred_time / analysis.kernel_time),
                        same_model ? analysis.account.model : "the steps before it in the same file"));
        std::vector<bool> seen(steps.roles.size(), false);
        for (const Item& item : items.all) {
            if (!item.inferred || item.role == none || seen[item.role]) continue;
            seen[item.role] = true;
            analysis.inferred.push_back(steps.roles[item.role]);
        }
    }
    if (!options.model && !timeline.ran.empty()) tell_missing_shapes(timeline, items, analysis);
    return analysis;
}

}  // namespace roofline::analyze
