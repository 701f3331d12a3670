// Rates and times of whole models as llama.cpp's benchmarks print them. A row becomes the step or steps that it timed,
// and those become launches by the same code that predicts: one row, one sum.
#include <algorithm>
#include <cmath>
#include <map>

#include "roofline/assess/served.hpp"
#include "roofline/assess/steps.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/predict/prepared.hpp"

namespace roofline::assess {
namespace {

constexpr std::string_view engine = "llama.cpp";
constexpr double micro_batch = 2048.0;  // tokens that a step works on at most (-ub in these benchmarks)

/// One thing that was timed may be printed in several ways. The first of them that a table has counts: it has more
/// digits than the ones after it.
struct Metric {
    std::string_view name;
    std::string_view stage;
    int rank = 0;
    double (*seconds)(double value, double batch, double prompt);
};
constexpr auto metrics = std::to_array<Metric>({
    {"decode_step_ms", "decode", 0, [](double value, double, double) { return value * 1e-3; }},
    {"decode_tok_s_total", "decode", 1, [](double value, double batch, double) { return batch / value; }},
    {"decode_tok_s", "decode", 2, [](double value, double, double) { return 1.0 / value; }},
    {"prefill_tok_s", "prefill", 0, [](double value, double batch, double prompt) { return batch * prompt / value; }},
    {"prefill_time_s", "prefill", 1, [](double value, double, double) { return value; }},
});

const Metric* metric_of(std::string_view name) {
    const auto found = std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == name; });
    return found != metrics.end() ? &*found : nullptr;
}

/// What a row says about its steps.
struct Run {
    const Metric* metric = nullptr;
    double value = 0.0;
    double batch = 0.0;
    double prompt = 0.0;
    double generated = 0.0;
    double depth = 0.0;  // tokens in the cache before any of these

    double seconds() const { return metric->seconds(value, batch, prompt); }
    bool decodes() const { return metric->stage == "decode"; }
    /// In the middle of what is generated; each step attends to its own token too.
    double context() const { return depth + prompt + generated / 2.0; }
};

std::optional<Run> run_of(const CsvTable& table, const CsvTable::Row& row) {
    const auto size = [&](std::string_view column) { return table.number(row, column).value_or(0.0); };
    Run run{.metric = metric_of(table.text(row, "metric")),
            .value = size("value"),
            .batch = size("concurrency"),
            .prompt = size("input_len"),
            .generated = size("output_len"),
            .depth = size("context_depth")};
    if (run.metric == nullptr || run.value <= 0.0 || run.batch < 1.0) return std::nullopt;
    if (run.depth < 0.0 || (run.decodes() ? run.context() : run.prompt) < 1.0) return std::nullopt;
    return run;
}

struct TimedStep {
    model::Step step;
    double times = 1.0;
};

/// Prompts are cut or gathered into steps of at most a micro-batch; each prompt has a cache of its own.
std::vector<TimedStep> steps_of(const Run& run) {
    if (run.decodes()) return {{model::decode_step(run.batch, run.context()), 1.0}};
    std::vector<TimedStep> steps;
    if (run.prompt <= micro_batch) {
        const double together = std::min(std::floor(micro_batch / run.prompt), run.batch);
        const double full = std::floor(run.batch / together);
        const double rest = run.batch - full * together;
        steps.push_back({model::prefill_step(together, run.prompt, run.depth), full});
        if (rest > 0.0) steps.push_back({model::prefill_step(rest, run.prompt, run.depth), 1.0});
        return steps;
    }
    for (double done = 0.0; done < run.prompt; done += micro_batch) {
        steps.push_back(
            {model::prefill_step(1.0, std::min(micro_batch, run.prompt - done), run.depth + done), run.batch});
    }
    return steps;
}

/// Rows that timed the same thing have the same key.
std::string key_of(const CsvTable& table, const CsvTable::Row& row, const Run& run, double batch) {
    std::string key(run.metric->stage);
    for (const char* column : {"gpu", "model", "weight_dtype", "kv_dtype", "framework", "context_depth"})
        key += "|" + std::string(table.text(row, column));
    return key + "|" + whole(run.prompt) + "|" + whole(run.generated) + "|" + whole(batch);
}

/// "gpt-oss-20b-GGUF", "Qwen2.5-Coder-7B-Q8_0-GGUF": the model without the file's format.
std::string bare_name(std::string_view model, std::string_view type) {
    std::string name(model);
    for (const std::string& ending : {std::string("-GGUF"), "-" + std::string(type)}) {
        if (lower_case(name).ends_with(lower_case(ending))) name.resize(name.size() - ending.size());
    }
    return name;
}

/// Devices and models are made ready once each.
class Ready {
  public:
    struct Pair {
        std::shared_ptr<const Device> device;
        std::shared_ptr<const model::Lowered> model;
        std::string profile;
        std::unique_ptr<const predict::Prepared> prepared;
        std::string reason;  // why it cannot be used
    };

    const Pair& find(const CsvTable& table, const CsvTable::Row& row) {
        std::string key;
        for (const char* column : {"gpu", "model", "weight_dtype", "kv_dtype"})
            key += std::string(table.text(row, column)) + "|";
        const auto known = pairs_.find(key);
        if (known != pairs_.end()) return known->second;
        Pair& pair = pairs_[key];
        pair.reason = load(table, row, pair);
        return pair;
    }

  private:
    std::string load(const CsvTable& table, const CsvTable::Row& row, Pair& pair) {
        auto device = io::builtin_device(table.text(row, "gpu"));
        if (!device) return "unknown device";
        pair.device = std::make_shared<const Device>(std::move(*device));
        const std::string_view type = table.text(row, "weight_dtype");
        const Format* weights = find_format(type);
        // "f16 (llama.cpp default)"
        const std::string_view kv = table.text(row, "kv_dtype");
        const Format* cache = find_format(kv.empty() ? "fp16" : kv.substr(0, kv.find(' ')));
        if (weights == nullptr || cache == nullptr) return "unknown number type";
        pair.model = lowered(bare_name(table.text(row, "model"), type), *weights, *cache);
        if (!pair.model) return "unknown model";
        auto profile = io::builtin_profile(engine, *pair.device);
        if (!profile) return "no profile for this engine";
        pair.profile = profile->name;
        const predict::Execution execution{std::move(*profile), nullptr};
        pair.prepared = std::make_unique<const predict::Prepared>(*pair.model, *pair.device, execution);
        return {};
    }

    std::shared_ptr<const model::Lowered> lowered(const std::string& name, const Format& weights, const Format& cache) {
        const std::string key = name + "|" + std::string(weights.name) + "|" + std::string(cache.name);
        const auto known = models_.find(key);
        if (known != models_.end()) return known->second;
        std::shared_ptr<const model::Lowered> result;
        if (const auto file = io::builtin_model(name)) {
            const model::TypePlan plan =
                model::ggml_plan(file->types.layers.size(), model::gguf_formats(weights), cache);
            // llama.cpp keeps MLA in its latent form in all steps.
            const model::LoweringOptions options{.latent = model::LatentMode::absorbed};
            result = std::make_shared<const model::Lowered>(model::lower(file->architecture, plan, options));
        }
        models_.emplace(key, result);
        return result;
    }

    std::map<std::string, Pair> pairs_;
    std::map<std::string, std::shared_ptr<const model::Lowered>> models_;
};

std::vector<Call> calls_of(const predict::Prepared& prepared, const std::vector<TimedStep>& steps) {
    std::vector<predict::Launch> launches;
    for (const TimedStep& timed : steps) prepared.list(timed.step, timed.times, launches);
    std::vector<Call> calls;
    calls.reserve(launches.size());
    for (const predict::Launch& launch : launches) {
        calls.push_back({.kernel_class = launch.kernel_class,
                         .machine = launch.machine,
                         .kernel = launch.kernel,
                         .engine = launch.engine,
                         .type = launch.type,
                         .count = launch.count});
    }
    return calls;
}

/// The profile does not assume that tokens choose their experts evenly: weights of one token's experts are all that a
/// limit may count, and no row is refused for reading fewer than even tokens would.
void price(const predict::Prepared& prepared, const std::vector<TimedStep>& steps, Measurement& row) {
    std::vector<predict::OperatorTime> times(prepared.size());
    for (const TimedStep& timed : steps) {
        const predict::StageTime stage = prepared.evaluate(timed.step, times);
        row.limit += timed.times * stage.limit;
        row.attainable += timed.times * stage.attainable;
    }
}

std::string label_of(const Run& run, std::string_view model) {
    std::string label = std::string(model) + ", batch " + whole(run.batch) + ", ";
    if (run.decodes()) return label + "context " + whole(run.context());
    label += whole(run.prompt) + " tokens";
    return run.depth > 0.0 ? label + " after " + whole(run.depth) : label;
}

constexpr auto understood = std::to_array<std::string_view>(
    {"gpu", "num_gpus", "tp", "pp", "ep", "model", "weight_dtype", "kv_dtype", "input_len", "output_len", "concurrency",
     "context_depth", "metric", "value", "framework", "source", "note"});

}  // namespace

Result<void> read_rate_table(const CsvTable& table, Measurements& into) {
    // What was timed in several ways, and how long: looked up before any row is taken.
    std::map<std::string, int> best_rank;
    std::map<std::string, double> seconds;
    for (const CsvTable::Row& row : table.rows()) {
        const auto run = run_of(table, row);
        if (!run) continue;
        const std::string key = key_of(table, row, *run, run->batch);
        const auto [place, fresh] = best_rank.try_emplace(key, run->metric->rank);
        if (!fresh && run->metric->rank >= place->second) continue;
        place->second = run->metric->rank;
        seconds[key] = run->seconds();
    }

    Ready ready;
    ServedReader served(into);
    for (const CsvTable::Row& row : table.rows()) {
        Refusal refusal{.file = table.file(),
                        .line = row.line,
                        .device = std::string(table.text(row, "gpu")),
                        .kind = "step",
                        .type = lower_case(table.text(row, "weight_dtype")),
                        .stage = {},
                        .reason = {}};
        const auto refuse = [&](std::string reason) {
            refusal.reason = std::move(reason);
            into.refused.push_back(refusal);
        };
        if (ServedReader::reads(table, row)) {
            if (into.with_served) served.read(table, row, into);
            continue;
        }
        if (!table.text(row, "framework").starts_with(engine)) {
            refuse("no profile for this engine");
            continue;
        }
        if (table.number(row, "num_gpus").value_or(1.0) != 1.0) {
            refuse("more than one device");
            continue;
        }
        const auto run = run_of(table, row);
        if (!run) {
            refuse("no known metric with a positive value, a batch and a length");
            continue;
        }
        refusal.stage = std::string(run->metric->stage);
        const Ready::Pair& pair = ready.find(table, row);
        if (pair.device) refusal.device = pair.device->name;
        if (!pair.reason.empty()) {
            refuse(pair.reason);
            continue;
        }
        const std::string key = key_of(table, row, *run, run->batch);
        if (best_rank[key] < run->metric->rank) {
            refuse("the same measurement as a rate/time");
            continue;
        }
        // Steps of the same kind cannot take as long as twice as many of them; the first after loading a model can: its
        // pages are touched and its kernels loaded on the way.
        const auto twice = seconds.find(key_of(table, row, *run, 2.0 * run->batch));
        if (!run->decodes() && twice != seconds.end() && twice->second < 1.15 * run->seconds()) {
            refuse("as slow as twice the work: a first run");
            continue;
        }
        const std::vector<TimedStep> steps = steps_of(*run);
        Measurement measured;
        measured.file = table.file();
        measured.line = row.line;
        measured.device = pair.device;
        measured.kind = "step";
        measured.type = refusal.type;
        // fit_type stays empty: a step holds products of several types, and one fit is for all of them.
        measured.stack = std::string(engine);
        measured.stage = refusal.stage;
        measured.family = std::string(table.text(row, "model"));
        measured.label = label_of(*run, measured.family);
        measured.seconds = run->seconds();
        measured.calls = calls_of(*pair.prepared, steps);
        // The first of the steps stands for them; their times are in the calls.
        measured.step = std::make_shared<const Step>(
            Step{.model = pair.model, .step = steps.front().step, .profile = pair.profile, .stacks = {}});
        price(*pair.prepared, steps, measured);
        if (measured.seconds < measured.limit) {
            refuse("faster than the limit");
            continue;
        }
        into.rows.push_back(std::move(measured));
    }
    served.finish(into);
    for (const std::string& column : table.columns()) {
        if (std::find(understood.begin(), understood.end(), column) == understood.end())
            into.notes.push_back(table.file() + ": column " + column + " is not used");
    }
    return {};
}

}  // namespace roofline::assess
