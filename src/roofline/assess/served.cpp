#include "roofline/assess/served.hpp"

#include <algorithm>

#include "roofline/assess/in_parallel.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/engine_file.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/serving/deployed.hpp"
#include "roofline/serving/steady.hpp"

namespace roofline::assess {
namespace {

/// Number types as these tables name them. FP8: weights and activations; FP4: NVFP4. gpt-oss is published in MXFP4 and
/// run so, whatever the column says of its activations.
std::string weight_format(std::string_view column, std::string_view model) {
    const std::string type = lower_case(column);
    if (lower_case(model).starts_with("gpt-oss")) return "";
    return type == "fp4" ? "nvfp4" : type;
}

std::string load_model(std::string_view name, std::string_view weights, std::string_view kv, predict::Setup& setup) {
    // The engine keeps and attends to everything unless it is told a window, which these runs did not.
    const io::ConfigEdit without_window = [](io::Json& config) -> Result<void> {
        if (config.contains("sliding_window") && config.value("model_type", "") == "mistral")
            config["sliding_window"] = nullptr;
        return {};
    };
    auto file = io::builtin_model(name, without_window);
    if (!file) return "unknown model";
    setup.model_name = file->name;
    setup.architecture = std::make_shared<const model::Architecture>(std::move(file->architecture));
    setup.checkpoint = std::make_shared<const model::TypePlan>(std::move(file->types));
    const std::string format = weight_format(weights, name);
    // A checkpoint that is published in the type of the row is taken as it is, blocks and exceptions included.
    const bool as_published = format.empty() || file->types_summary.starts_with(format);
    if (!as_published) {
        setup.types.weights = find_format(format);
        if (setup.types.weights == nullptr) return "unknown number type";
        if (!setup.types.weights->weight_only) setup.types.activations = setup.types.weights;
    }
    setup.types.kv = find_format(lower_case(kv));
    return setup.types.kv != nullptr ? "" : "unknown number type of the cache";
}

/// Requests that these benchmarks queue at once, by their length: the replica never sees more.
double requests_of(const Served& served) {
    const double tokens = served.prompt + served.output;
    return tokens <= 256.0 ? 30000.0 : tokens <= 2500.0 ? 3000.0 : tokens <= 5500.0 ? 1500.0 : 1000.0;
}

std::optional<serving::Steady> steady_state(const Served& served, const predict::Scenario& scenario,
                                            serving::Price price) {
    const serving::Deployed replica(scenario, price);
    serving::Policy policy;
    policy.admission = serving::Admission::reserving;  // TensorRT-LLM admits what is sure to finish
    const serving::Mix mix{.prompt = serving::Lengths::fixed(served.prompt),
                           .output = serving::Lengths::fixed(served.output),
                           .trace = {},
                           .longest_context = 0.0};
    const auto found = serving::steady(replica, policy, mix, serving::Load::users(requests_of(served)));
    if (!found || !(found->flow.output_tokens > 0.0)) return std::nullopt;
    return *found;
}

// A rate errs by more than its steps do: how requests are dealt to them, and what runs between them. Its range grows by
// this factor on both sides.
constexpr double beyond_steps = 1.1;

double seconds_per_token(const Served& served, const predict::Scenario& scenario, serving::Price price) {
    const auto found = steady_state(served, scenario, price);
    return found ? 1.0 / found->flow.output_tokens : 0.0;
}

/// Sets how fast it could be; an empty string is success, anything else the reason for refusing the row.
std::string price(Measurement& row) {
    const auto scenario = predict::realise(row.served->setup);
    if (!scenario) return scenario.error().text;
    row.limit = seconds_per_token(*row.served, *scenario, serving::Price::limit);
    if (row.limit == 0.0) return "does not fit";
    row.attainable = std::max(row.limit, seconds_per_token(*row.served, *scenario, serving::Price::attainable));
    return row.seconds < row.limit ? "faster than the limit" : "";
}

}  // namespace

bool ServedReader::reads(const CsvTable& table, const CsvTable::Row& row) {
    return table.text(row, "metric").starts_with("output_tok_s") && table.text(row, "concurrency") == "max";
}

void ServedReader::read(const CsvTable& table, const CsvTable::Row& row, Measurements& into) {
    const auto text = [&](std::string_view column) { return table.text(row, column); };
    const auto number = [&](std::string_view column, double fallback) {
        return table.number(row, column).value_or(fallback);
    };
    Refusal refusal{.file = table.file(),
                    .line = row.line,
                    .device = std::string(text("gpu")),
                    .kind = "served",
                    .type = lower_case(text("weight_dtype")),
                    .stage = {},
                    .reason = {}};
    const auto refuse = [&](std::string reason) {
        refusal.reason = std::move(reason);
        into.refused.push_back(refusal);
    };
    if (!text("framework").starts_with("TensorRT-LLM")) return refuse("no profile for this engine");
    const auto device = io::builtin_device(text("gpu"));
    if (!device) return refuse("unknown device");
    refusal.device = device->name;
    const double devices = number("num_gpus", 1.0);
    const double value = number("value", 0.0);
    const bool per_device = text("metric").ends_with("per_gpu");
    if (!per_device && !text("metric").ends_with("total")) return refuse("no known metric");
    const double prompt = number("input_len", 0.0);
    const double output = number("output_len", 0.0);
    if (value <= 0.0 || prompt < 1.0 || output < 1.0 || devices < 1.0)
        return refuse("no positive rate with an input and an output length");

    const std::string key =
        std::string(text("model")) + "|" + std::string(text("weight_dtype")) + "|" + std::string(text("kv_dtype"));
    auto& known = known_[key];
    if (!known) {
        predict::Setup setup;
        if (std::string problem = load_model(text("model"), text("weight_dtype"), text("kv_dtype"), setup);
            !problem.empty()) {
            known_.erase(key);
            return refuse(std::move(problem));
        }
        known = std::make_shared<const predict::Setup>(std::move(setup));
    }
    auto served = std::make_shared<Served>(Served{*known, prompt, output});
    predict::Setup& setup = served->setup;
    setup.device = *device;
    setup.workload.prompt = prompt;
    setup.workload.generate = output;
    model::Deployment& spread = setup.deployment();
    spread.tensor = number("tp", 1.0);
    spread.pipeline = number("pp", 1.0);
    const double experts = number("ep", 1.0);
    // Attention data-parallel with expert parallelism: every device attends to its own requests.
    if (text("note").find("attention data-parallel") != std::string_view::npos) spread.groups = experts;
    spread.experts = experts;
    // Version 1.0 ran all mixtures of experts so, and its tables say nothing of it; its page does.
    const bool routed = std::ranges::any_of(setup.architecture->kinds, [](const model::LayerKind& kind) {
        return kind.ffn && kind.ffn->describe().starts_with("MoE");
    });
    if (routed && text("framework").starts_with("TensorRT-LLM 1.0")) {
        spread.groups = spread.experts = spread.tensor;
        spread.tensor = 1.0;
    }
    if (spread.devices() != devices) return refuse("tp, pp and ep do not make up num_gpus");
    auto rules = io::builtin_engine("trtllm");
    if (!rules) return refuse("no memory rules of the engine");
    setup.memory.emplace().rules = std::move(*rules);
    setup.memory->longest = prompt + output;
    setup.memory->utilisation = 0.95;  // of what is free, as the pages of these tables say
    auto profile = io::builtin_profile("engine", *device);
    if (profile) setup.execution.profile = std::move(*profile);

    Measurement measured;
    measured.file = table.file();
    measured.line = row.line;
    measured.device = std::make_shared<const Device>(*device);
    measured.kind = "served";
    measured.type = refusal.type;
    measured.stack = std::string(text("framework"));
    measured.family = setup.model_name;
    measured.label =
        setup.model_name + ", " + describe(spread) + ", " + whole(prompt) + " in, " + whole(output) + " out";
    measured.seconds = 1.0 / (per_device ? value * devices : value);
    measured.served = std::move(served);
    into.rows.push_back(std::move(measured));
}

void ServedReader::finish(Measurements& into) const {
    std::vector<std::string> reasons(into.rows.size());
    in_parallel(into.rows.size() - first_row_, [&](std::size_t i) {
        Measurement& row = into.rows[first_row_ + i];
        if (row.served) reasons[first_row_ + i] = price(row);
    });
    std::size_t kept = first_row_;
    for (std::size_t i = first_row_; i < into.rows.size(); ++i) {
        Measurement& row = into.rows[i];
        if (!reasons[i].empty()) {
            into.refused.push_back({.file = row.file,
                                    .line = row.line,
                                    .device = row.device->name,
                                    .kind = row.kind,
                                    .type = row.type,
                                    .stage = {},
                                    .reason = std::move(reasons[i])});
        } else if (kept++ < i) {
            into.rows[kept - 1] = std::move(row);
        }
    }
    into.rows.resize(kept);
    std::stable_sort(into.refused.begin() + static_cast<std::ptrdiff_t>(first_refused_), into.refused.end(),
                     [](const Refusal& a, const Refusal& b) { return a.line < b.line; });
}

Expected expect_served(const Measurement& row, const std::shared_ptr<const predict::Calibration>& calibration) {
    predict::Setup setup = row.served->setup;
    setup.execution.calibration = calibration;
    Expected result;
    const auto scenario = predict::realise(setup);
    if (!scenario) return result;
    const auto at = [&](serving::Price price) { return seconds_per_token(*row.served, *scenario, price); };
    result.seconds = std::max(at(serving::Price::expected), row.attainable);
    result.low = std::max(std::min(at(serving::Price::low), result.seconds) / beyond_steps, row.attainable);
    result.high = std::max(at(serving::Price::high), result.seconds) * beyond_steps;
    result.source = "steady state of its steps";
    return result;
}

}  // namespace roofline::assess
