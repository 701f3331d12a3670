#include "roofline/cli/bench_run.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "roofline/ask/sweep/ranges.hpp"
#include "roofline/bench/cuda_backend.hpp"
#include "roofline/bench/kernel_plugin.hpp"
#include "roofline/cli/files.hpp"
#include "roofline/cli/form.hpp"
#include "roofline/cli/interrupted.hpp"
#include "roofline/cli/load.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/seconds.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/names.hpp"
#include "roofline/measure/cpu_device.hpp"
#include "roofline/measure/cuda/loader.hpp"
#include "roofline/measure/machine.hpp"

namespace roofline::cli {
namespace {

using bench::Backend;
using bench::Outcome;
using bench::Run;
using bench::StageRun;
using bench::StepWork;
using bench::Task;

/// What is run now. On a terminal one line that changes; elsewhere a line where it takes long, so that nobody has to
/// wonder whether the program still lives.
class Progress {
  public:
    Progress(bool terminal, bool roofs_known) : terminal_(terminal), roofs_known_(roofs_known) {}
    ~Progress() {
        if (terminal_ && begun_) fmt::print(stderr, "\r\x1b[K");
    }
    /// `limit`: no call takes less under the roofs, where they are known. Zero: nothing is called yet.
    void say(std::string text, double limit = 0.0) {
        constexpr double long_time = 10.0;
        const bool slow = roofs_known_ && limit >= long_time;
        if (slow) {
            const bool minutes = limit >= 120.0;
            text += fmt::format(": a call takes {:.0f} {} at the least", minutes ? limit / 60.0 : limit,
                                minutes ? "minutes" : "s");
        }
        if (terminal_) {
            begun_ = true;
            fmt::print(stderr, "\r\x1b[K{}", text.substr(0, 78));
            std::fflush(stderr);
        } else if (const double now = bench::steady_seconds(); slow || now - said_ >= long_time) {
            fmt::print(stderr, "roofline: {}\n", text);
            said_ = now;
        }
    }

  private:
    bool terminal_;
    bool roofs_known_;
    bool begun_ = false;
    double said_ = bench::steady_seconds();
};

std::unexpected<Problem> not_here_problem(std::string text) {
    return std::unexpected(Problem{std::move(text), true});
}

/// Where things run: the processors with their backends, or a CUDA device behind its plugin.
struct Place {
    bool cuda = false;
    bench::CudaCall call;
    bench::CudaPlace cuda_place;
    bool device_busy = false;  // before anything was run
    std::string title;         // of the device, as it calls itself
    std::vector<std::unique_ptr<Backend>> backends;
    std::unique_ptr<bench::Threads> threads;
    bench::Pace pace;
};

/// A plugin's name is a column of its own: of two alike nobody could tell which is which.
Result<void> not_taken(const std::string& path, const std::string& name, const std::vector<std::string>& names) {
    if (std::find(names.begin(), names.end(), name) == names.end()) return {};
    return fail(fmt::format("{}: calls its kernel \"{}\", as another one here is called already", path, name));
}

Result<void> open_cpu(const BenchOptions& options, Place& place, Run& run) {
    std::vector<std::string> wanted;
    if (!options.backends.empty()) {
        auto list = ask::parse_list("--backend", options.backends);
        if (!list) return std::unexpected(list.error());
        wanted = std::move(*list);
    }
    auto known = bench::cpu_backends();
    std::vector<std::string> names;
    for (const auto& backend : known) names.push_back(backend->name());
    for (const std::string& path : options.plugins) {
        auto plugin = bench::load_kernel_plugin(path);
        if (!plugin) return std::unexpected(plugin.error());
        if (auto fine = not_taken(path, (*plugin)->name(), names); !fine) return fine;
        known.push_back(std::move(*plugin));
        names.push_back(known.back()->name());
        if (!wanted.empty()) wanted.push_back(names.back());
    }
    for (const std::string& name : wanted) {
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            return fail(fmt::format("--backend: found \"{}\", expected one of {}{}", name, fmt::join(names, ", "),
                                    io::suggestion(name, names)));
        }
    }
    for (auto& backend : known) {
        const bool asked = std::find(wanted.begin(), wanted.end(), backend->name()) != wanted.end();
        if (!wanted.empty() && !asked) continue;
        if (const auto here = backend->available(); !here) {
            if (asked) return not_here_problem(fmt::format("{}: {}", backend->name(), here.error().text));
            run.account.notes.push_back(fmt::format("without {}: {}", backend->name(), here.error().text));
            continue;
        }
        run.backends.push_back(backend->name());
        run.descriptions.push_back(backend->describe());
        place.backends.push_back(std::move(backend));
    }
    int count = options.threads > 0 ? options.threads : bench::usable_processors();
    auto threads = bench::Threads::start(count);
    // A number that was asked for is kept or refused; one of our own choosing gives way to a limit of the system.
    while (!threads && options.threads == 0 && count > 1) threads = bench::Threads::start(--count);
    if (!threads) return std::unexpected(threads.error());
    if (options.threads == 0 && count < bench::usable_processors()) {
        run.account.notes.push_back(
            fmt::format("{} of {} threads: the system allows no more", count, bench::usable_processors()));
    }
    place.threads = std::move(*threads);
    place.title = processor_name();
    run.threads = place.threads->count();
    return {};
}

/// Leaves out types whose weights none of the backends multiplies, though some multiply others; on CUDA those that our
/// own kernels do not. Where none is left, what was asked for is not here. (Plugins say it of every shape.)
Result<void> leave_out_unread(const BenchOptions& options, std::vector<std::string>& types, const Place& place,
                              Run& run) {
    if (!options.plugins.empty()) return {};
    const auto reads = [&](bench::WeightFormat type) {
        if (place.cuda)
            return type != bench::WeightFormat::fp32 && type != bench::WeightFormat::fp16 && !is_of_gguf(type);
        Task product;
        product.kind = bench::TaskKind::product;
        product.m = 1;
        product.n = product.k = 1024;
        product.weights = type;
        product.activations = parse_dtype(name(type)).value_or(DType::bf16);
        if (type == bench::WeightFormat::int4) product.activations = DType::int8;
        return std::any_of(place.backends.begin(), place.backends.end(),
                           [&](const auto& backend) { return !backend->refuses(product); });
    };
    std::vector<std::string_view> read;
    for (const auto& one : bench::weight_formats) {
        if (reads(one.format)) read.push_back(one.name);
    }
    std::string missing;
    std::erase_if(types, [&](const std::string& asked) {
        const Format* format = find_format(asked);
        const auto type = format != nullptr ? bench::weight_format(*format) : std::nullopt;
        if (format == nullptr || (type && (read.empty() || reads(*type)))) return false;
        missing = asked;
        run.account.notes.push_back(fmt::format("without {}: no kernel here reads such weights", asked));
        return true;
    });
    if (!types.empty()) return {};
    const std::string others = read.empty() ? "" : fmt::format("; there are some for {}", fmt::join(read, ", "));
    return not_here_problem(fmt::format("--dtype: no kernel here reads weights in {}{}", missing, others));
}

Result<void> open_cuda(const BenchOptions& options, Place& place, Run& run) {
    place.cuda = true;
    if (!options.backends.empty()) {
        auto list = ask::parse_list("--backend", options.backends);
        if (!list) return std::unexpected(list.error());
        place.cuda_place.backends = std::move(*list);
    }
    place.cuda_place.seconds = place.pace.budget.seconds;
    place.cuda_place.stopped = interrupted;
    const auto index = measure::cuda_index(options.device);
    if (!index) return std::unexpected(index.error());
    if (!*index) return fail(fmt::format("--device: found \"{}\", expected cpu or cuda:0", options.device));
    place.cuda_place.device = **index;
    const auto backend = measure::CudaBackend::load();
    if (!backend) return std::unexpected(backend.error());
    place.call = [backend = *backend](const io::Json& request) { return backend.call(request); };
    const auto described = place.call({{"do", "describe"}});
    if (!described) return std::unexpected(described.error());
    const io::Json* device = nullptr;
    if (const auto devices = described->find("devices"); devices != described->end() && devices->is_array()) {
        for (const io::Json& one : *devices) {
            if (one.is_object() && one.value("index", -1) == place.cuda_place.device) device = &one;
        }
    }
    if (device == nullptr) return not_here_problem(fmt::format("{} is not on this machine", options.device));
    place.title = device->value("name", "CUDA device");
    place.device_busy = device->value("busy", false);
    run.backends = place.cuda_place.backends;
    for (const std::string& name : run.backends) run.descriptions.push_back(name == "own" ? "own CUDA kernels" : name);
    place.cuda_place.plugins = options.plugins;
    const auto plugins = bench::load_cuda_plugins(place.call, place.cuda_place);
    if (!plugins) return std::unexpected(plugins.error());
    for (std::size_t i = 0; i < plugins->size(); ++i) {
        const bench::CudaPlugin& plugin = (*plugins)[i];
        if (auto fine = not_taken(options.plugins[i], plugin.name, run.backends); !fine) return fine;
        place.cuda_place.plugin_names.push_back(plugin.name);
        run.backends.push_back(plugin.name);
        run.descriptions.push_back(plugin.description);
    }
    return {};
}

/// A KV cache that nobody named a type for is kept in bf16 where no kernel for processors keeps it in the one that
/// `--dtype` or the checkpoint asks for. What is counted changes with it: a limit is that of what is run. Returns the
/// type that was asked for; empty where it stays.
std::string_view keep_cache_in_bf16(predict::Setup& setup) {
    if (!setup.architecture) return {};
    const Format asked = predict::plan_types(setup).kv;
    if (const auto type = bench::cache_type(asked); type && bench::kept_by_processors(*type)) return {};
    setup.types.kv = &plain_format(DType::bf16);
    return asked.name;
}

/// Models of states alone have no KV cache.
bool has_kv_cache(const predict::Scenario& scenario) {
    return std::ranges::any_of(scenario.lowered.operators,
                               [](const model::Operator& op) { return op.kind == Kind::attention; });
}

/// What was run already, under whatever name: norms of a layer are alike, and small operators in every number type.
class DoneBefore {
  public:
    bool give(const Task& task, std::vector<Outcome>& outcomes) const {
        const auto known = std::find_if(all_.begin(), all_.end(),
                                        [&](const auto& entry) { return bench::same_work(entry.first, task); });
        if (known == all_.end()) return false;
        outcomes = known->second;
        for (Outcome& outcome : outcomes) outcome.task = task.name;
        return true;
    }
    void keep(const Task& task, const std::vector<Outcome>& outcomes) { all_.emplace_back(task, outcomes); }

  private:
    std::vector<std::pair<Task, std::vector<Outcome>>> all_;
};

double limit_of_one(const StageRun& stage, std::size_t record) {
    return stage.stage.records[record].times.limit.value / stage.stage.records[record].count;
}

void run_cpu_tasks(Place& place, StageRun& stage, Progress& progress, DoneBefore& done_before) {
    for (std::size_t i = 0; i < stage.planned.size(); ++i) {
        if (!stage.planned[i].task) continue;
        const Task& task = *stage.planned[i].task;
        if (done_before.give(task, stage.outcomes[i])) continue;
        const bool anybody = std::any_of(place.backends.begin(), place.backends.end(),
                                         [&](const auto& backend) { return !backend->refuses(task); });
        const auto fail_all = [&](const std::string& why) {
            for (const auto& backend : place.backends) {
                Outcome outcome;
                outcome.task = task.name;
                outcome.backend = backend->name();
                const auto reason = backend->refuses(task);
                outcome.problem = reason.value_or(why);
                outcome.declined = reason.has_value();
                stage.outcomes[i].push_back(std::move(outcome));
            }
        };
        if (!anybody) {
            fail_all("");
            continue;
        }
        const std::string what = fmt::format("{}, batch {}: {}", stage.stage.name, stage.stage.batch, task.name);
        progress.say(what);
        auto operands = bench::make_operands(task, place.pace.rotate_past, *place.threads);
        if (!operands) {
            fail_all(operands.error().text);
            continue;
        }
        progress.say(what, limit_of_one(stage, i));
        for (const auto& backend : place.backends)
            stage.outcomes[i].push_back(bench::run_task(*backend, *operands, *place.threads, place.pace));
        done_before.keep(task, stage.outcomes[i]);
    }
}

Result<void> run_cuda_tasks(Place& place, StageRun& stage, Progress& progress, DoneBefore& done_before) {
    for (std::size_t i = 0; i < stage.planned.size() && !interrupted(); ++i) {
        if (!stage.planned[i].task) continue;
        const Task& task = *stage.planned[i].task;
        if (done_before.give(task, stage.outcomes[i])) continue;
        progress.say(fmt::format("{}, batch {}: {}", stage.stage.name, stage.stage.batch, task.name),
                     limit_of_one(stage, i));
        auto outcomes = bench::run_cuda_tasks(place.call, place.cuda_place, {task});
        if (!outcomes) return std::unexpected(outcomes.error());
        stage.outcomes[i] = std::move(outcomes->front());
        if (!interrupted()) done_before.keep(task, stage.outcomes[i]);
    }
    return {};
}

/// Why a stage has no step though its model's layers are known: an operator that is run otherwise, or not at all, would
/// make it another model's.
std::string operator_without_kernel(const StageRun& stage) {
    for (std::size_t i = 0; i < stage.planned.size(); ++i) {
        const bench::Planned& one = stage.planned[i];
        if (!one.task && !one.idle) return fmt::format("{}: {}", stage.stage.records[i].name, one.reason);
    }
    return "";
}

void run_whole_step(Place& place, StageRun& stage, const predict::Scenario& scenario, Progress& progress) {
    const auto shape = bench::stack_shape(scenario);
    stage.no_step = shape ? operator_without_kernel(stage) : shape.error().text;
    if (!stage.no_step.empty()) return;
    const AccountStage& asked = stage.stage;
    const bool prefill = asked.name == "prefill";
    const StepWork work{.prefill = prefill,
                        .batch = static_cast<std::int64_t>(asked.batch),
                        .tokens = static_cast<std::int64_t>(asked.tokens / asked.batch),
                        .context = static_cast<std::int64_t>(prefill ? asked.tokens / asked.batch : asked.context),
                        .expanded = std::none_of(stage.planned.begin(), stage.planned.end(), [](const auto& one) {
                            return one.task && one.task->kind == bench::TaskKind::absorption;
                        })};
    const std::string what = fmt::format("{}, batch {}: whole step", asked.name, asked.batch);
    progress.say(what, place.cuda ? asked.times.limit.value : 0.0);
    if (place.cuda) {
        auto steps = bench::run_cuda_step(place.call, place.cuda_place, *shape, work);
        if (steps)
            stage.steps = std::move(*steps);
        else
            stage.no_step = steps.error().text;
        return;
    }
    // A tenth stays free: what others on the machine need next should not come out of swap.
    auto model = bench::CpuModel::make(*shape, work, bench::free_memory() / 10 * 9, *place.threads);
    if (!model) {
        stage.no_step = model.error().text;
        return;
    }
    bench::Pace pace = place.pace;
    pace.budget.least = 3;
    pace.budget.seconds *= 4.0;
    progress.say(what, asked.times.limit.value);
    stage.steps.push_back(bench::run_step(**model, work, pace));
}

/// Why there is no time of anything, where that is so: the first reason against a step and against an operator. That
/// one library does not do an operator says nothing where another failed at it.
std::optional<std::string> nothing_ran(const std::vector<StageRun>& stages) {
    std::string step_failed;
    const Outcome* failed = nullptr;
    for (const StageRun& stage : stages) {
        if (step_failed.empty()) step_failed = stage.no_step;
        for (const auto& step : stage.steps) {
            if (step.problem.empty()) return {};
            if (step_failed.empty()) step_failed = step.problem;
        }
        for (const auto& outcomes : stage.outcomes) {
            for (const Outcome& outcome : outcomes) {
                if (outcome.problem.empty()) return {};
                if (failed == nullptr || (failed->declined && !outcome.declined)) failed = &outcome;
            }
        }
    }
    std::vector<std::string> reasons;
    if (!step_failed.empty()) reasons.push_back("whole step: " + step_failed);
    if (failed != nullptr) reasons.push_back(failed->task + ": " + failed->problem);
    if (reasons.empty()) return {};
    return fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace

std::string processor_name() {
    const std::string cpu = measure::this_machine().cpu;
    return cpu.empty() ? "this machine's processor" : cpu;
}

Result<predict::Setup> setup_on(ask::ScenarioOptions asked, const Device& device, std::optional<double> layers) {
    asked.device = io::builtin_device_names().front();  // any: it is replaced
    auto setup = asked.setup(this_machine());
    if (!setup) return setup;
    auto execution = this_machine().execution(asked.profile, asked.calibration, device);
    if (!execution) return std::unexpected(execution.error());
    setup->device = device;
    setup->execution = std::move(*execution);
    // Cut here and not in the config, where every family has a name of its own for it.
    if (layers && setup->architecture) {
        const std::size_t whole = setup->architecture->layers.size();
        if (*layers > static_cast<double>(whole))
            return fail(fmt::format("--layers: found \"{:g}\", expected at most the {} of {}", *layers, whole,
                                    setup->model_name));
        auto cut = std::make_shared<model::Architecture>(*setup->architecture);
        cut->layers.resize(static_cast<std::size_t>(*layers));
        setup->architecture = std::move(cut);
    }
    return setup;
}

Result<Run> run_bench(const BenchOptions& options) {
    Run run;
    Place place;
    place.pace.budget.seconds = options.quick ? 0.05 : 0.3;
    if (!options.seconds.empty()) {
        const auto seconds = parse_seconds("--seconds", options.seconds, 0.001, 60.0);
        if (!seconds) return std::unexpected(seconds.error());
        place.pace.budget.seconds = *seconds;
    }
    const bool cuda = options.device.starts_with("cuda");
    // On the processors a run has nothing to tidy up, so Ctrl-C may end the program within a call that takes minutes.
    std::optional<Interruptible> watching;
    std::optional<EndsAtOnce> ends_at_once;
    cuda ? void(watching.emplace()) : void(ends_at_once.emplace());
    if (!cuda && options.device != "cpu")
        return fail(fmt::format("--device: found \"{}\", expected cpu or cuda:0", options.device));

    const auto batches = ask::parse_ranges("--batch", options.batch);
    if (!batches) return std::unexpected(batches.error());
    std::vector<std::string> types = {""};
    if (!options.dtype.empty()) {
        auto list = ask::parse_list("--dtype", options.dtype);
        if (!list) return std::unexpected(list.error());
        types = std::move(*list);
    }
    ask::ScenarioOptions asked;
    asked.model = options.model;
    asked.prompt = options.prompt;
    asked.context = options.context;
    asked.kv_dtype = options.kv_dtype;
    asked.stage = options.stage;
    std::optional<double> layers;
    if (!options.layers.empty()) {
        const auto number = parse_whole("--layers", options.layers, 1.0, 1e4);
        if (!number) return std::unexpected(number.error());
        layers = *number;
    }
    const std::string cut = layers ? fmt::format(", {:g} layer{},", *layers, *layers > 1.0 ? "s" : "") : "";
    std::string checkpoint;  // what its weights are
    const auto ask_for = [&](const std::string& type, const std::string& batch) {
        asked.dtype = type;
        asked.batch = batch;
        const bool rounded = bench::rounds_activations(type.empty() ? checkpoint : type);
        asked.activation_dtype = !cuda && rounded ? "int8" : "";
    };
    // Everything that was typed is read before anything is run.
    bool fp16_weights = false;
    bool fp16_cache = false;
    for (const std::string& type : types) {
        for (const std::string& batch : *batches) {
            ask_for(type, batch);
            const auto fine = setup_on(asked, Device{}, layers);
            if (!fine) return std::unexpected(fine.error());
            checkpoint = fine->checkpoint_summary;
            fp16_weights |= type.empty() && checkpoint == "fp16";
            fp16_cache |= asked.kv_dtype.empty() && predict::plan_types(*fine).kv.name == "fp16";
        }
    }
    // Nobody asked for fp16, the checkpoint has it: our kernels read as many bytes in bf16.
    if (options.plugins.empty() && (fp16_weights || fp16_cache)) {
        if (fp16_weights) types = {"bf16"};
        if (fp16_cache) asked.kv_dtype = "bf16";
        run.account.notes.push_back(fmt::format("{} in fp16 are run in bf16, as many bytes: no kernel here reads fp16",
                                                fp16_weights ? "weights" : "keys and values"));
    }
    if (auto opened = cuda ? open_cuda(options, place, run) : open_cpu(options, place, run); !opened)
        return std::unexpected(opened.error());
    if (auto some = leave_out_unread(options, types, place, run); !some) return std::unexpected(some.error());
    const auto roofs = choose_roofs(options, cuda, place.title, run);
    if (!roofs) return std::unexpected(roofs.error());
    if (!cuda) {
        // Rotating past the last-level cache needs its size; where it is unknown, a large one is assumed. The system
        // may claim more than reading shows, because a virtual machine shares it; some of that is there at times.
        double cache = measure::this_machine().last_cache_bytes;
        if (const Figure* seen = roofs->capacity(Level::cache)) cache = std::max(cache, seen->value);
        place.pace.rotate_past = std::max<std::int64_t>(place.pace.rotate_past, static_cast<std::int64_t>(3.0 * cache));
    }
    Progress progress(::isatty(STDERR_FILENO) != 0, run.roofs_known);
    progress.say("reading memory");
    const auto read_before = memory_read_now(*roofs, run.threads);
    const measure::Watch watch(measure::this_machine().processors);
    DoneBefore done_before;
    for (const std::string& type : types) {
        for (const std::string& batch : *batches) {
            ask_for(type, batch);
            auto setup = setup_on(asked, *roofs, layers);
            if (!setup) return std::unexpected(setup.error());
            const std::string_view unkept =
                cuda || !asked.kv_dtype.empty() ? std::string_view() : keep_cache_in_bf16(*setup);
            const auto scenario = predict::realise(*setup);
            if (!scenario) return std::unexpected(scenario.error());
            if (!unkept.empty() && has_kv_cache(*scenario)) {
                run.account.notes.push_back(
                    fmt::format("the KV cache{} is kept in bf16: no kernel for processors keeps one in {}; limits are "
                                "those of bf16 too",
                                type.empty() ? "" : fmt::format(" beside weights in {}", type), unkept));
            }
            const predict::Report report = predict::predict(*scenario);
            for (const predict::StageReport& predicted : report.stages) {
                StageRun stage = bench::start_stage(*scenario, predicted, type);
                if (options.only != "steps") {
                    if (!cuda) {
                        run_cpu_tasks(place, stage, progress, done_before);
                    } else if (auto ran = run_cuda_tasks(place, stage, progress, done_before); !ran) {
                        return std::unexpected(ran.error());
                    }
                }
                if (options.only != "operators" && !interrupted()) run_whole_step(place, stage, *scenario, progress);
                if (interrupted()) return run;  // whoever asked sees the flag
                run.stages.push_back(std::move(stage));
            }
            run.account.model = scenario->model_name;
            run.account.title = fmt::format("{}{} on {}", scenario->model_name, cut, place.title);
        }
    }
    if (const auto why = nothing_ran(run.stages)) {
        return not_here_problem(
            fmt::format("{}: nothing of what was asked for could be run ({})", run.account.title, *why));
    }
    run.account.device = *roofs;
    bool unsteady = false;
    for (const StageRun& stage : run.stages) {
        for (const bench::StepOutcome& step : stage.steps) {
            if (step.problem.empty() && step.layers_distinct < step.layers) {
                run.account.notes.push_back(fmt::format(
                    "whole step in {}: memory is short, so {} distinct layers stand for {}",
                    stage.dtype.empty() ? "the checkpoint's types" : stage.dtype, step.layers_distinct, step.layers));
            }
            if (step.problem.empty() && step.timing.high > 1.25 * step.timing.low) unsteady = true;
        }
    }
    // A GPU is disturbed by whoever else uses it, which the plugin sees before the first task; its host hardly matters.
    if (const auto seen = watch.so_far(); seen && !cuda) run.busy_because = measure::disturbances(*seen, {});
    if (read_before) {
        progress.say("reading memory");
        if (const auto read_after = memory_read_now(*roofs, run.threads)) run.memory_read = {*read_before, *read_after};
    }
    if (place.device_busy) run.busy_because.emplace_back("the GPU was in use before the run began");
    if (unsteady) run.busy_because.emplace_back("times of the same step differ by more than a quarter");
    std::sort(run.account.notes.begin(), run.account.notes.end());
    run.account.notes.erase(std::unique(run.account.notes.begin(), run.account.notes.end()), run.account.notes.end());
    bench::settle(run);
    return run;
}

}  // namespace roofline::cli
