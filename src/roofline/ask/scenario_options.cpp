#include "roofline/ask/scenario_options.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/ask/execution_options.hpp"
#include "roofline/ask/parse.hpp"
#include "roofline/io/names.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/predict/one_type.hpp"

namespace roofline::ask {
namespace {

constexpr double most_tokens = 1e9;

Result<const Format*> format_named(std::string_view option, const std::string& text) {
    if (const Format* format = find_format(text)) return format;
    std::vector<std::string> names;
    for (const Format& format : all_formats()) names.emplace_back(format.name);
    return fail(fmt::format("{}: found \"{}\", expected a number type such as bf16, fp8, int4, nvfp4 or q4_k_m{}",
                            option, text, io::suggestion(text, names)));
}

/// --dtype means all three; what is said of one of them goes before it.
Result<predict::TypeChoice> choose_types(const ScenarioOptions& options) {
    predict::TypeChoice choice;
    if (!options.dtype.empty()) {
        const auto format = format_named("--dtype", options.dtype);
        if (!format) return std::unexpected(format.error());
        choice = predict::in_one_type(**format);
    }
    const auto override_with = [](const char* option, const std::string& text, const Format*& target) -> Result<void> {
        if (text.empty() || text == "auto") return {};
        const auto format = format_named(option, text);
        if (!format) return std::unexpected(format.error());
        target = *format;
        return {};
    };
    if (!options.quantization.empty()) {
        // As in vLLM: a method for weights and, where it quantises them, activations; the KV cache stays.
        const auto format = format_named("--quantization", options.quantization);
        if (!format) return std::unexpected(format.error());
        choice.weights = *format;
        choice.activations = (*format)->weight_only ? nullptr : *format;
    }
    if (auto done = override_with("--weight-dtype", options.weight_dtype, choice.weights); !done)
        return std::unexpected(done.error());
    if (auto done = override_with("--activation-dtype", options.activation_dtype, choice.activations); !done)
        return std::unexpected(done.error());
    if (auto done = override_with("--kv-cache-dtype", options.kv_dtype, choice.kv); !done)
        return std::unexpected(done.error());
    if (choice.activations != nullptr && choice.activations->weight_only) {
        return fail(fmt::format("--activation-dtype: {} is a format for weights only", choice.activations->name));
    }
    return choice;
}

Result<predict::Workload> read_workload(const ScenarioOptions& options) {
    predict::Workload workload;
    const auto read = [](const char* option, const std::string& text, double least, double& target) -> Result<void> {
        const auto value = parse_whole(option, text, least, most_tokens);
        if (!value) return std::unexpected(value.error());
        target = *value;
        return {};
    };
    if (auto done = read("--batch", options.batch, 1.0, workload.batch); !done) return std::unexpected(done.error());
    if (auto done = read("--prompt", options.prompt, 1.0, workload.prompt); !done) return std::unexpected(done.error());
    if (auto done = read("--generate", options.generate, 1.0, workload.generate); !done)
        return std::unexpected(done.error());
    if (auto done = read("--cached-prefix", options.cached, 0.0, workload.cached); !done)
        return std::unexpected(done.error());
    if (auto done = read("--chunk", options.chunk, 0.0, workload.chunk); !done) return std::unexpected(done.error());
    if (options.context != "prompt") {
        if (auto done = read("--context", options.context, 1.0, workload.context); !done)
            return std::unexpected(done.error());
    }
    using predict::StageKind;
    if (options.stage == "prefill") workload.stages = {StageKind::prefill};
    if (options.stage == "decode") workload.stages = {StageKind::decode};
    if (options.stage == "mixed") workload.stages = {StageKind::mixed};
    if (options.stage == "both" && workload.chunk > 0.0) workload.stages = {StageKind::mixed, StageKind::decode};
    if (options.stage == "mixed" && workload.chunk == 0.0) workload.chunk = workload.prompt;
    return workload;
}

}  // namespace

void ScenarioOptions::add_to(Form& form) {
    form.text("model,--model", model, "Built-in name, folder, config.json, .gguf or .safetensors").of_type("MODEL");
    form.text("device,--device", device, "Built-in name, device file, or `this`").of_type("DEVICE");
    form.text("--params", parameters, "Instead of MODEL: only the number of parameters is known, weights alone count")
        .of_type("N");
    const char* work = "Workload";
    form.text("-b,--batch", batch, "Sequences").in(work).shows_default().of_type("N");
    form.text("-p,--prompt,--input-len", prompt, "New tokens per sequence in prefill")
        .in(work)
        .shows_default()
        .of_type("N");
    form.text("-c,--context", context, "Tokens in the KV cache when a token is decoded")
        .in(work)
        .shows_default()
        .of_type("N");
    form.text("-n,--generate,--output-len", generate, "Tokens written per sequence")
        .in(work)
        .shows_default()
        .of_type("N");
    form.text("--cached-prefix", cached, "Tokens before the prompt that are cached already")
        .in(work)
        .shows_default()
        .of_type("N");
    form.text("--chunk", chunk, "Chunked prefill: prompt tokens beside a decode step")
        .in(work)
        .shows_default()
        .of_type("N");
    form.text("--stage", stage, "Which steps to show")
        .in(work)
        .one_of({"both", "prefill", "decode", "mixed"})
        .shows_default();
    const char* types = "Number types (default: what the checkpoint says)";
    form.text("--dtype", dtype, "For weights, activations and KV cache").in(types).of_type("TYPE");
    form.text("--weight-dtype", weight_dtype, "For weights: bf16, fp8, int4, nvfp4, mxfp4, q4_k_m ...")
        .in(types)
        .of_type("TYPE");
    form.text("-q,--quantization", quantization,
              "Weights and, where the method quantises them, activations: fp8, int8, awq, nvfp4 ...")
        .in(types)
        .of_type("METHOD");
    form.text("--activation-dtype", activation_dtype, "For activations").in(types).of_type("TYPE");
    form.text("--kv-cache-dtype", kv_dtype, "For keys and values").in(types).of_type("TYPE");
    const char* how = "How it is computed";
    form.text("--attention", attention,
              "Scores stay on the chip (flash) or go through memory (not for latent attention)")
        .in(how)
        .one_of({"flash", "unfused"})
        .shows_default();
    form.text("--mla", latent, "Latent attention: absorbed, expanded, or each where it is better")
        .in(how)
        .one_of({"auto", "absorbed", "expanded"})
        .shows_default();
    add_execution_options(form, profile, calibration);
    deployment.add_to(form);
    memory.add_to(form);
    form.texts("--set", settings,
               "Change a figure for this run: memory.bandwidth=2x, matrix.bf16=500TFLOP/s, num_hidden_layers=16")
        .in(how)
        .of_type("PATH=VALUE|Nx");
}

Result<predict::Setup> ScenarioOptions::setup(const Library& library, bool with_settings) const {
    std::vector<io::Setting> changes;
    for (const std::string& text : settings) {
        auto setting = io::parse_setting(text);
        if (!setting) return std::unexpected(setting.error());
        if (with_settings) changes.push_back(std::move(*setting));
    }
    std::string model_name = model;
    std::string device_name = device;
    if (!parameters.empty() && device_name.empty()) std::swap(model_name, device_name);  // `--params 8e9 h100-sxm`
    if (!parameters.empty() && !model_name.empty())
        return fail("--params: stands in for MODEL, but a model was named too");
    if (parameters.empty() && model_name.empty())
        return fail("no MODEL was named (`roofline models` lists the built-in ones)");
    if (device_name.empty()) return fail("no DEVICE was named (`roofline devices` lists the built-in ones)");

    predict::Setup setup;
    const auto workload = read_workload(*this);
    if (!workload) return std::unexpected(workload.error());
    setup.workload = *workload;
    const auto types = choose_types(*this);
    if (!types) return std::unexpected(types.error());
    setup.types = *types;
    auto loaded_device = library.device(device_name);
    if (!loaded_device && !model_name.empty() && library.device(model_name)) {
        return fail(fmt::format("{} is a device: the order is MODEL DEVICE", model_name));
    }
    if (!loaded_device) return std::unexpected(loaded_device.error());
    setup.device = std::move(*loaded_device);
    for (const io::Setting& setting : changes) {
        if (!io::is_device_path(setting.path)) continue;
        if (auto done = io::apply(setting, setup.device); !done) return std::unexpected(done.error());
    }
    auto spread = deployment.load(setup.device);
    if (!spread) return std::unexpected(spread.error());
    setup.lowering.deployment = *spread;
    auto rules = memory.load(library);
    if (!rules) return std::unexpected(rules.error());
    setup.memory = std::move(*rules);
    if (attention == "unfused") setup.lowering.scores = model::AttentionScores::in_memory;
    if (latent == "absorbed") setup.lowering.latent = model::LatentMode::absorbed;
    if (latent == "expanded") setup.lowering.latent = model::LatentMode::expanded;

    auto execution = library.execution(profile, calibration, setup.device);
    if (!execution) return std::unexpected(execution.error());
    setup.execution = std::move(*execution);

    if (!parameters.empty()) {
        const auto count = parse_positive("--params", parameters);
        if (!count) return std::unexpected(count.error());
        setup.parameters = *count;
        setup.model_name = parameters;
        setup.model_title = fmt::format("a model of {} parameters", parameters);
        setup.checkpoint = std::make_shared<const model::TypePlan>(
            model::uniform_plan(1, plain_format(DType::bf16), DType::bf16, plain_format(DType::bf16)));
        setup.checkpoint_summary = "bf16";
        setup.notes.emplace_back(
            "only the number of parameters is known: weights alone count, no attention, no KV cache");
        return setup;
    }

    io::ConfigEdit edit;  // empty where nothing of the model is changed: then it may be one that was read before
    if (std::any_of(changes.begin(), changes.end(),
                    [](const io::Setting& setting) { return !io::is_device_path(setting.path); })) {
        edit = [&](io::Json& config) -> Result<void> {
            for (const io::Setting& setting : changes) {
                if (io::is_device_path(setting.path)) continue;
                if (auto done = io::apply(setting, config); !done) return done;
            }
            return {};
        };
    }
    auto loaded = library.model(model_name, edit);
    if (!loaded) return std::unexpected(loaded.error());
    predict::Setup named = setup_of_model(std::move(*loaded));
    setup.model_name = std::move(named.model_name);
    setup.model_title = std::move(named.model_title);
    setup.architecture = std::move(named.architecture);
    setup.checkpoint = std::move(named.checkpoint);
    setup.checkpoint_summary = std::move(named.checkpoint_summary);
    setup.active_counts = named.active_counts;
    setup.notes = std::move(named.notes);
    return setup;
}

Result<predict::Scenario> ScenarioOptions::load(const Library& library, bool with_settings) const {
    const auto asked = setup(library, with_settings);
    if (!asked) return std::unexpected(asked.error());
    return with_remedies(*asked);
}

predict::Setup setup_of_model(io::ModelFile model) {
    predict::Setup setup;
    setup.model_name = std::move(model.name);
    setup.model_title = std::move(model.title);
    setup.architecture = std::make_shared<const model::Architecture>(std::move(model.architecture));
    setup.checkpoint = std::make_shared<const model::TypePlan>(std::move(model.types));
    setup.checkpoint_summary = std::move(model.types_summary);
    setup.active_counts = model.active_counts;
    setup.notes = std::move(model.notes);
    return setup;
}

Result<predict::Scenario> with_remedies(const predict::Setup& setup) {
    auto scenario = predict::realise(setup);
    if (!scenario) return scenario;
    // Lowering other ways costs time that only an answer of "no" repays.
    if (setup.architecture && !predict::fit_deployment(*scenario, predict::Advice::left_out).fits)
        scenario->remedies = predict::other_ways(setup, *scenario);
    return scenario;
}

}  // namespace roofline::ask
