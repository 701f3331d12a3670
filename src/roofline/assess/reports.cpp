#include "roofline/assess/reports.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "roofline/io/account_json.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/device_file.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/predict/kernel_type.hpp"
#include "roofline/predict/one_type.hpp"
#include "roofline/predict/prepared.hpp"

namespace roofline::assess {
namespace {

/// A time of the report, whoever took it.
struct Timed {
    std::string name = {};  // of the operator; empty: the whole step
    std::string backend = {};
    std::string launch = {};  // "graph", "eager"; empty: not said
    double seconds = 0.0;
    const Times* times = nullptr;  // what the report expected, for as many as `count`
    double count = 1.0;
};

struct Stage {
    const AccountStage* told = nullptr;
    std::string phase;  // prefill or decode
    std::string dtype;  // empty: the checkpoint's
    std::vector<Timed> timed;
    int not_run = 0;  // by a backend that cannot
};

/// Those of `key` that have a time: no backend does every operator.
void read_timed(io::Fields& bench, std::string_view key, Stage& into) {
    for (io::Fields& fields : bench.children(key)) {
        if (fields.has("problem")) {
            ++into.not_run;
            continue;
        }
        into.timed.push_back({.name = fields.text_or("name", ""),
                              .backend = fields.text_or("backend", ""),
                              .launch = fields.text_or("launch", ""),
                              .seconds = fields.positive("time_s")});
    }
}

/// What each backend took, or where the report says no more, its records and stages themselves.
Stage read_stage(const AccountStage& told, std::optional<io::Fields> bench) {
    Stage stage;
    stage.told = &told;
    const std::size_t blank = told.name.find(' ');
    stage.phase = told.name.substr(0, blank);
    const std::string rest = blank == std::string::npos ? "" : told.name.substr(blank + 1);
    if (find_format(rest) != nullptr) stage.dtype = rest;
    if (!bench) {
        if (told.times.measured) stage.timed.push_back({.seconds = told.times.measured->value, .times = &told.times});
        for (const Record& record : told.records) {
            if (!record.times.measured) continue;
            stage.timed.push_back({.name = record.name,
                                   .seconds = record.times.measured->value / std::max(record.count, 1.0),
                                   .times = &record.times,
                                   .count = record.count});
        }
        return stage;
    }
    stage.dtype = bench->text_or("dtype", stage.dtype);
    read_timed(*bench, "steps", stage);
    read_timed(*bench, "results", stage);
    for (Timed& timed : stage.timed) {
        if (timed.name.empty()) timed.times = &told.times;
        for (const Record& record : told.records) {
            if (timed.name.empty() || record.name != timed.name) continue;
            timed.times = &record.times;
            timed.count = record.count;
        }
    }
    return stage;
}

/// Whose constants a backend's kernels have. Libraries were timed under PyTorch.
std::string stack_of(const std::string& backend, std::string_view class_name, std::string_view type) {
    if (backend == "cublaslt" && class_name == "gemm") return type == "bf16" ? "" : "pytorch";
    if (backend == "cudnn" && class_name.starts_with("attention")) return "cudnn_attention";
    return backend;
}

/// As the tables call their rows.
std::string kind_of(const predict::KernelClass& known, const model::Operator& op) {
    if (known.name == "elementwise") return "elementwise:" + op.name.substr(op.name.rfind('.') + 1);
    return std::string(known.instead_of.empty() ? known.name : known.instead_of);
}

std::string family_of(const predict::Kernel& kernel, const std::string& model, const std::string& name) {
    if (kernel.pattern == Pattern::product && kernel.copies <= 1.0)
        return whole(kernel.cols) + "x" + whole(kernel.inner);
    if (kernel.pattern == Pattern::attention)
        return whole(kernel.heads) + "/" + whole(kernel.kv_heads) + "x" + whole(kernel.key_dim);
    return model + " " + name;
}

/// One instance of an operator as a launch of its own; the step has one group of sequences.
Call call_of_operator(const model::Operator& op, std::size_t place, const model::Step& step,
                      const predict::Prepared& prepared) {
    const model::FeatureValues values = prepared.features(step);
    const model::Sequences& group = step.front();
    Call call;
    call.kernel_class = prepared.manner(place).choice(group.phase).kernel_class;
    call.machine = prepared.manner(place).machine;
    call.kernel = predict::kernel_of(op.extent, op.flops(values), op.weight_bytes(values), op.cache_bytes(values),
                                     op.activation_bytes(values), values, group, group.count * group.new_tokens);
    call.engine = prepared.engine(place);
    call.type = prepared.type(place);
    return call;
}

/// Reads one report.
class Reader {
  public:
    Reader(const Account& account, const std::string& file, Measurements& into)
        : account_(account), file_(file), into_(into), device_(device_of(account)) {
        if (account.model.empty()) return;
        if (auto known = io::builtin_model(account.model)) model_ = std::move(*known);
    }

    void read(const Stage& stage) {
        const bool decode = stage.phase == "decode";
        if (device_->bandwidth(Level::memory) == nullptr) {
            for (const Timed& timed : stage.timed) refuse(stage, timed, "nothing is known about the device");
            return;
        }
        if (!decode && stage.phase != "prefill" && model_) {
            for (const Timed& timed : stage.timed) refuse(stage, timed, "neither prefill nor decode");
            return;
        }
        const auto lowered = lower(stage.dtype);
        if (!lowered) {
            for (const Timed& timed : stage.timed) take_as_told(stage, timed);
            return;
        }
        const AccountStage& told = *stage.told;
        const double each = told.batch > 0.0 ? told.tokens / told.batch : 0.0;
        if (told.batch < 1.0 || each < 1.0 || told.context < each) {
            for (const Timed& timed : stage.timed) refuse(stage, timed, "no stage with a batch, tokens and a context");
            return;
        }
        const model::Step step = decode ? model::decode_step(told.batch, told.context)
                                        : model::prefill_step(told.batch, each, told.context - each);
        const predict::Prepared prepared(*lowered, *device_);
        std::vector<predict::OperatorTime> times(prepared.size());
        const predict::StageTime priced = prepared.evaluate(step, times);
        for (const Timed& timed : stage.timed) {
            if (timed.name.empty())
                take_step(stage, timed, lowered, step, priced);
            else
                take_operator(stage, timed, *lowered, step, prepared, times);
        }
    }

  private:
    /// As the report has it, figures and all; by its name where it has none.
    static std::shared_ptr<const Device> device_of(const Account& account) {
        if (account.device.bandwidth(Level::memory) == nullptr) {
            if (auto known = io::builtin_device(account.device.name))
                return std::make_shared<const Device>(std::move(*known));
        }
        return std::make_shared<const Device>(account.device);
    }

    std::shared_ptr<const model::Lowered> lower(const std::string& dtype) {
        if (!model_) return nullptr;
        predict::Setup setup;
        setup.checkpoint = std::make_shared<const model::TypePlan>(model_->types);
        if (!dtype.empty()) {
            const Format* format = find_format(dtype);
            if (format == nullptr) return nullptr;
            setup.types = predict::in_one_type(*format);
        }
        return std::make_shared<const model::Lowered>(model::lower(model_->architecture, predict::plan_types(setup)));
    }

    std::string words_of(const Stage& stage) const {
        const AccountStage& told = *stage.told;
        return fmt::format("batch {:g}, {}", told.batch,
                           stage.phase == "decode" ? fmt::format("context {:g}", told.context)
                                                   : fmt::format("{:g} tokens", told.tokens));
    }

    void refuse(const Stage& stage, const Timed& timed, std::string reason) {
        into_.refused.push_back({.file = file_,
                                 .line = ++line_,
                                 .device = device_->name,
                                 .kind = timed.name.empty() ? "step" : timed.name,
                                 .type = stage.dtype,
                                 .stage = stage.phase,
                                 .reason = std::move(reason)});
    }

    Measurement start(const Stage& stage, const Timed& timed) {
        Measurement row;
        row.file = file_;
        row.line = ++line_;
        row.device = device_;
        row.type = stage.dtype.empty() ? "bf16" : stage.dtype;
        row.seconds = timed.seconds;
        row.stack = timed.backend;
        row.label = (timed.name.empty() ? account_.model : timed.name) +
                    (timed.backend.empty() ? "" : ", " + timed.backend) + ", " + words_of(stage);
        return row;
    }

    void keep(Measurement row) {
        if (row.seconds >= row.limit) {
            into_.rows.push_back(std::move(row));
            return;
        }
        into_.refused.push_back(
            {row.file, row.line, row.device->name, row.kind, row.type, row.stage, "faster than the limit"});
    }

    /// `bench --layers` runs a part of the model: its operators are those of the whole, its step is not.
    bool was_cut(const Stage& stage, const model::Lowered& lowered) const {
        if (account_.verb != "bench") return false;
        return std::ranges::any_of(stage.told->records, [&](const Record& record) {
            const auto same = std::ranges::find(lowered.operators, record.name, &model::Operator::name);
            return same != lowered.operators.end() && record.count < same->count;
        });
    }

    void take_step(const Stage& stage, const Timed& timed, const std::shared_ptr<const model::Lowered>& lowered,
                   const model::Step& step, const predict::StageTime& priced) {
        if (was_cut(stage, *lowered)) {
            refuse(stage, timed, "a step of fewer layers than the model has");
            return;
        }
        Measurement row = start(stage, timed);
        row.kind = timed.launch == "eager" ? "step_eager" : "step";
        row.stage = stage.phase;
        row.family = account_.model;
        row.limit = priced.limit;
        row.attainable = priced.attainable;
        // `bench` runs each operator as one kernel, and without a graph launches them ahead of the device too. Of a
        // trace nobody knows; an engine is the best guess.
        const std::string profile = account_.verb == "bench" ? "bench" : "engine";
        std::vector<std::string> stacks;
        if (timed.backend == "cudnn") stacks.emplace_back("cudnn_attention");
        if (!timed.backend.empty() && timed.backend != "cublaslt") stacks.push_back(timed.backend);
        row.step = std::make_shared<const Step>(Step{lowered, step, profile, std::move(stacks)});
        keep(std::move(row));
    }

    void take_operator(const Stage& stage, const Timed& timed, const model::Lowered& lowered, const model::Step& step,
                       const predict::Prepared& prepared, const std::vector<predict::OperatorTime>& times) {
        std::optional<std::size_t> place;
        for (std::size_t i = 0; i < lowered.operators.size(); ++i) {
            if (lowered.operators[i].name != timed.name || times[i].does_nothing()) continue;
            if (place) {
                refuse(stage, timed, "several operators of the model have this name");
                return;
            }
            place = i;
        }
        if (!place) {
            refuse(stage, timed, "no such operator in the model");
            return;
        }
        const model::Operator& op = lowered.operators[*place];
        const Call call = call_of_operator(op, *place, step, prepared);
        Measurement row = start(stage, timed);
        row.kind = kind_of(*call.kernel_class, op);
        row.fit_type = predict::kernel_type(op, step.front().phase, *device_);
        if (op.extent.pattern != Pattern::stream) row.type = row.fit_type;
        row.stack = stack_of(timed.backend, call.kernel_class->name, row.fit_type);
        row.instead = {"pytorch", "cudnn_attention"};
        row.family = family_of(call.kernel, account_.model, timed.name);
        row.calls = {call};
        row.limit = times[*place].limit / op.count;
        row.attainable = times[*place].attainable / op.count;
        keep(std::move(row));
    }

    /// The model is not known here: nothing can be predicted anew.
    void take_as_told(const Stage& stage, const Timed& timed) {
        if (timed.times == nullptr || timed.times->expected.value <= 0.0) {
            refuse(stage, timed, "the report expects nothing of it");
            return;
        }
        Measurement row = start(stage, timed);
        const double count = timed.name.empty() ? 1.0 : std::max(timed.count, 1.0);
        const auto each = [&](Seconds time) { return time.value / count; };
        row.kind = timed.name.empty() ? (timed.launch == "eager" ? "step_eager" : "step") : "operator";
        row.stage = stage.phase;
        row.family = account_.model + " " + timed.name;
        row.limit = each(timed.times->limit);
        row.attainable = std::max(row.limit, each(timed.times->attainable));
        row.told = std::make_shared<const Told>(Told{std::max(row.attainable, each(timed.times->expected)),
                                                     each(timed.times->expected_low), each(timed.times->expected_high),
                                                     "as the report expected it"});
        keep(std::move(row));
    }

    const Account& account_;
    const std::string& file_;
    Measurements& into_;
    std::shared_ptr<const Device> device_;
    std::optional<io::ModelFile> model_;
    int line_ = 0;  // there are none: times are counted
};

/// The datasheet's figure that a ceiling "matrix.bf16" or "memory.bandwidth" is measured against.
const Figure* figure_of(const Device& device, std::string_view path) {
    for (const Engine engine : {Engine::matrix, Engine::vector}) {
        for (const DType type : all_dtypes) {
            const auto& rate = device.rate(engine, type);
            if (rate && path == fmt::format("{}.{}", name(engine), name(type))) return &*rate;
        }
    }
    for (const Level level : all_levels) {
        if (path == fmt::format("{}.bandwidth", name(level))) return device.bandwidth(level);
    }
    return nullptr;
}

}  // namespace

Result<void> read_report(std::string_view text, const io::Json& json, const std::string& file, Measurements& into) {
    const auto account = io::read_account(text, file);
    if (!account) return std::unexpected(account.error());
    std::optional<Problem> problem;
    io::Fields fields(json, file, "", problem);
    std::vector<io::Fields> runs;
    if (fields.has("bench")) runs = fields.child("bench").children("stages");
    if (!runs.empty() && runs.size() != account->stages.size()) {
        return fail(fmt::format("{}: bench.stages: found {}, expected {}, one for each stage of the report", file,
                                runs.size(), account->stages.size()));
    }
    std::vector<Stage> stages;
    for (std::size_t i = 0; i < account->stages.size(); ++i) {
        stages.push_back(read_stage(account->stages[i], runs.empty() ? std::nullopt : std::optional(runs[i])));
    }
    if (problem) return std::unexpected(*problem);
    const bool any = std::ranges::any_of(stages, [](const Stage& stage) { return !stage.timed.empty(); });
    if (!any) return fail(file + ": found a report without measured times, expected one of bench or analyze");
    int not_run = 0;
    for (const Stage& stage : stages) not_run += stage.not_run;
    if (not_run > 0) {
        into.notes.push_back(
            fmt::format("{}: {} entries have no time, as no backend runs every operator", file, not_run));
    }
    Reader reader(*account, file, into);
    for (const Stage& stage : stages) reader.read(stage);
    return {};
}

Result<void> read_ceilings(std::string_view text, const std::string& file, Measurements& into) {
    const auto device = io::read_device(text, file);
    if (!device) return std::unexpected(device.error());
    if (device->ceilings.empty())
        return fail(file + ": found a device without ceilings, expected one that `roofline measure` wrote");
    const auto known = io::builtin_device(device->name);
    const auto shared = std::make_shared<const Device>(known ? *known : *device);
    into.notes.push_back(file +
                         ": ceilings are held against the built-in ones, and no constant is fitted to them; "
                         "predict takes the file as its device");
    int line = 0;
    for (const auto& [path, ceiling] : device->ceilings) {
        Refusal refusal{.file = file,
                        .line = ++line,
                        .device = device->name,
                        .kind = "ceiling:" + path,
                        .type = {},
                        .stage = {},
                        .reason = {}};
        const Figure* datasheet = known ? figure_of(*known, path) : nullptr;
        const auto carried = known ? known->ceilings.find(path) : device->ceilings.end();
        const bool measured_before = known && carried != known->ceilings.end();
        if ((datasheet == nullptr && !measured_before) || ceiling.value <= 0.0) {
            refusal.reason = known ? "the built-in device has no such figure" : "unknown device";
            into.refused.push_back(std::move(refusal));
            continue;
        }
        Measurement row;
        row.file = file;
        row.line = line;
        row.device = shared;
        row.kind = "ceiling:" + path;
        row.family = row.label = path;
        row.seconds = 1.0 / ceiling.value;
        row.limit = datasheet != nullptr ? 1.0 / datasheet->value : 0.0;
        row.attainable = measured_before ? std::max(row.limit, 1.0 / carried->second.value) : row.limit;
        row.told = std::make_shared<const Told>(Told{row.attainable, row.attainable, row.attainable,
                                                     measured_before ? "the built-in ceiling" : "the datasheet"});
        if (row.seconds < row.limit) {
            refusal.reason = "faster than the limit";
            into.refused.push_back(std::move(refusal));
            continue;
        }
        into.rows.push_back(std::move(row));
    }
    return {};
}

}  // namespace roofline::assess
