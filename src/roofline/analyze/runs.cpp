#include "roofline/analyze/runs.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "roofline/io/calibration_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/predict/account.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::analyze {
namespace {

predict::Workload workload_of(const Run& run) {
    predict::Workload workload;
    workload.batch = std::max(1.0, run.batch);
    switch (run.kind) {
        case Run::Kind::prefill:
            workload.prompt = std::max(1.0, run.prompt);
            workload.cached = run.context;
            workload.stages = {predict::StageKind::prefill};
            break;
        case Run::Kind::decode:
            workload.context = std::max(1.0, run.context);
            workload.prompt = workload.context;
            workload.stages = {predict::StageKind::decode};
            break;
        case Run::Kind::request:
            workload.prompt = std::max(1.0, run.prompt);
            workload.cached = run.context;
            workload.generate = std::max(1.0, run.generate);
            break;
    }
    return workload;
}

double pieces(const Run& run) {
    return run.chunk > 0.0 ? std::max(1.0, std::ceil(run.prompt / run.chunk)) : 1.0;
}

/// All that a size alone can tell: every step reads the weights once, and multiplies and adds each for every token.
Record weights_alone(const RunsOf& file, const Run& run) {
    Record record;
    record.name = "weights";
    record.kind = Kind::gemm;
    record.origin = Origin::measured;
    const double steps = run.kind == Run::Kind::decode    ? 1.0
                         : run.kind == Run::Kind::prefill ? pieces(run)
                                                          : pieces(run) + std::max(0.0, run.generate - 1.0);
    const double tokens =
        run.kind == Run::Kind::decode ? run.batch : run.batch * (run.prompt + std::max(0.0, run.generate - 1.0));
    record.work.type = DType::bf16;
    record.work.flops = Flops(2.0 * file.parameters * tokens);
    record.work.at(Level::memory) = Bytes(file.weight_bytes * steps);
    record.weights = Bytes(file.weight_bytes * steps);
    record.times.measured = run.measured;
    return record;
}

/// The prediction of a run in its stage, whose own time stays what was measured.
Result<void> predict_run(const Run& run, const Options& options, const Device& device, const std::string& profile,
                         AccountStage& stage, Analysis& analysis) {
    const auto setup = setup_for(options, device, workload_of(run), profile);
    if (!setup) return std::unexpected(setup.error());
    const auto scenario = predict::realise(*setup);
    if (!scenario) return std::unexpected(scenario.error());
    const predict::Report report = predict::predict(*scenario);
    const Account account = predict::account_of(*scenario, report);
    if (!report.fit.fits)
        analysis.account.notes.push_back(
            fmt::format("{}: by our count this does not fit in the memory of {}", run.name, device.name));
    if (run.kind == Run::Kind::request) {
        stage.times = report.metrics.request;
    } else if (!account.stages.empty()) {
        stage.records = account.stages.front().records;
        stage.times = account.stages.front().times;
    }
    stage.times.measured = run.measured;
    analysis.account.model = scenario->model_name;
    analysis.joined.push_back({.stage = run.name,
                               .name = "",
                               .limit = stage.times.limit,
                               .expected = stage.times.expected,
                               .measured = run.measured});
    return {};
}

}  // namespace

std::optional<Device> device_meant(const std::string& named, const Options& options, std::vector<std::string>& notes) {
    if (options.device) return options.device;
    if (!named.empty()) {
        if (auto found = io::builtin_device(named)) return std::move(*found);
    }
    notes.push_back(
        named.empty()
            ? std::string("the file does not name the device; --device NAME gives limits to hold it against")
            : fmt::format("the file names \"{}\", which is not among the known devices; --device takes a name "
                          "or a file",
                          named));
    return std::nullopt;
}

Result<predict::Setup> setup_for(const Options& options, const Device& device, const predict::Workload& workload,
                                 const std::string& profile) {
    predict::Setup setup = *options.model;
    setup.workload = workload;
    const bool other = setup.device.name != device.name;
    setup.device = device;
    if (other) {
        auto constants = io::builtin_calibration(device);
        if (!constants) return std::unexpected(constants.error());
        setup.execution.calibration = std::make_shared<const predict::Calibration>(std::move(*constants));
    }
    constexpr std::string_view unless_chosen = "engine";  // the profile of every verb that names none
    const std::string& own = setup.execution.profile.name;
    const std::string wanted = own == unless_chosen && !profile.empty() ? profile : own;
    if (other || wanted != own) {
        // A profile from a file has no built-in one to take its place, and stays.
        if (auto found = io::builtin_profile(wanted, device)) setup.execution.profile = std::move(*found);
    }
    return setup;
}

Result<Analysis> analysis_of(const RunsOf& file, const Options& options) {
    Analysis analysis;
    Account& account = analysis.account;
    account.verb = "analyze";
    account.title = file.title;
    account.model = file.model;
    account.notes = file.notes;
    const std::optional<Device> device = device_meant(file.device, options, account.notes);
    analysis.device_known = device.has_value();
    if (device)
        account.device = *device;
    else
        account.device.name = file.device.empty() ? "unknown" : file.device;
    for (const Run& run : file.runs) {
        AccountStage stage;
        stage.name = run.name;
        stage.batch = run.batch;
        stage.tokens = run.kind == Run::Kind::decode ? run.batch : run.batch * run.prompt;
        stage.context = run.context;
        stage.produced = run.kind == Run::Kind::prefill   ? run.batch * run.prompt
                         : run.kind == Run::Kind::request ? run.batch * run.generate
                                                          : run.batch;
        stage.repetitions = run.repetitions;
        if (options.model && device) {
            if (auto done = predict_run(run, options, *device, file.profile, stage, analysis); !done)
                return std::unexpected(done.error());
        } else if (file.weight_bytes > 0.0) {
            Record record = weights_alone(file, run);
            if (device) hold_against(*device, record);
            stage.records.push_back(std::move(record));
            sum_records(stage);
        }
        stage.times.measured = run.measured;
        StepTime step;
        step.stage = step.name = run.name;
        step.wall = step.busy = run.measured;
        step.batch = run.batch;
        step.tokens = stage.tokens;
        step.context = run.context;
        analysis.steps.push_back(std::move(step));
        account.stages.push_back(std::move(stage));
    }
    if (!options.model && file.weight_bytes > 0.0)
        account.notes.emplace_back(
            "limits are of the weights alone, FLOPs as for bf16; --model counts attention and the cache too and says "
            "what to "
            "expect");
    else if (!options.model)
        account.notes.emplace_back("--model NAME says what to expect");
    analysis.events = static_cast<double>(file.runs.size());
    return analysis;
}

}  // namespace roofline::analyze
