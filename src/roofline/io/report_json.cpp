#include "roofline/io/report_json.hpp"

#include <cmath>

#include "roofline/io/device_file.hpp"
#include "roofline/io/json_text.hpp"
#include "roofline/io/times_json.hpp"

namespace roofline::io {
namespace {

using predict::StageReport;

void write_rates(JsonText& json, std::string_view key, double limit, double attainable, double expected) {
    json.object(key, [&] {
        json.add("limit", limit);
        json.add("attainable", attainable);
        json.add("expected", expected);
    });
}

/// Of an operator and of a stage alike.
template <class Sums>
void write_bytes(JsonText& json, const Sums& sums) {
    json.object("bytes", [&] {
        json.add("memory", sums.memory_bytes);
        json.add("cache", sums.cache_bytes);
        json.add("weights", sums.weight_bytes);
        json.add("kv", sums.kv_bytes);
        json.add("peer", sums.peer_bytes);
        json.add("network", sums.network_bytes);
        json.add("host", sums.host_bytes);
    });
}

void write_record(JsonText& json, const StageReport& stage, std::size_t i) {
    const Record& record = stage.records[i];
    const predict::OperatorTime& detail = stage.details[i];
    const double total = stage.times.expected.value;
    json.add("name", record.name);
    json.add("kind", name(record.kind));
    json.add("group", name(record.group));
    json.add("count", record.count);
    json.add("engine", name(record.work.engine));
    json.add("dtype", name(record.work.type));
    json.add("flops", record.work.flops.value);
    write_bytes(json, detail);
    json.add("intensity", detail.intensity);
    json.add("bound", name(detail.bound));
    json.add("fraction_of_peak", stage.uses[i].of_peak);
    json.add("fraction_of_bandwidth", stage.uses[i].of_bandwidth);
    write_times(json, "time_s", record.times);
    json.add("share", total > 0.0 ? record.times.expected.value / total : 0.0);
}

void write_group(JsonText& json, const predict::GroupShare& group) {
    json.add("group", name(group.group));
    json.add("flops", group.flops.value);
    json.object("bytes", [&] { json.add("memory", group.memory.value); });
    json.add("intensity", group.intensity.value);
    json.add("bound", name(group.bound));
    json.add("fraction_of_peak", group.use.of_peak);
    json.add("fraction_of_bandwidth", group.use.of_bandwidth);
    write_rates(json, "time_s", group.limit.value, group.attainable.value, group.expected.value);
    json.add("share", group.share);
}

void write_stage(JsonText& json, const StageReport& stage) {
    json.add("stage", predict::name(stage.kind));
    json.add("batch", stage.batch);
    json.add("tokens", stage.tokens);
    json.add("context", stage.context);
    json.add("flops", stage.totals.flops);
    write_bytes(json, stage.totals);
    json.add("intensity", stage.totals.intensity);
    json.add("ridge", stage.ridge.value);
    json.add("bound", name(stage.totals.bound));
    json.add("fraction_of_peak", stage.use.of_peak);
    json.add("fraction_of_bandwidth", stage.use.of_bandwidth);
    write_times(json, "time_s", stage.times);
    write_rates(json, "tokens_per_s", stage.tokens_per_second(stage.times.limit),
                stage.tokens_per_second(stage.times.attainable), stage.tokens_per_second(stage.times.expected));
    json.array("groups", [&] {
        for (const predict::GroupShare& group : stage.groups) json.object([&] { write_group(json, group); });
    });
    json.array("records", [&] {
        for (std::size_t i = 0; i < stage.records.size(); ++i) json.object([&] { write_record(json, stage, i); });
    });
}

/// As the engine named allocates it; nothing where none is named.
void write_engine(JsonText& json, const predict::EngineMemory& memory) {
    json.add("engine", memory.engine);
    json.add("utilisation", memory.utilisation);
    json.add("reported_bytes", memory.reported_known ? std::optional(memory.reported.value) : std::nullopt);
    json.add("budget_bytes", memory.budget.value);
    json.add("trial_activation_bytes", memory.activations.value);
    json.add("overhead_bytes", memory.overhead.value);
    json.add("pool_bytes", memory.pool.value);
    json.add("pool_tokens", memory.pool_tokens);
    json.add("block_tokens", memory.cache.block_tokens);
    json.add("kv_allocated_bytes", memory.allocated.value);
    json.add("longest_context", memory.longest);
    json.add("concurrency", memory.concurrency);
    json.add("step_tokens", memory.step_tokens);
    json.add("sequences", memory.sequences);
}

void write_remedy(JsonText& json, const predict::Remedy& remedy) {
    json.add("kind", name(remedy.kind));
    json.add("change", remedy.change);
    json.add("value", remedy.value);
    json.add("approximate", remedy.approximate);
    if (remedy.moved.value > 0.0) json.add("moved_bytes", remedy.moved.value);
    if (remedy.added) json.add("added_s", remedy.added->value);
}

void write_fit(JsonText& json, const predict::Fit& fit) {
    json.add("weights_bytes", fit.weights.value);
    json.add("kv_bytes", fit.kv.value);
    json.add("activation_bytes", fit.activations.value);
    json.add("capacity_bytes", fit.capacity ? std::optional(fit.capacity->value) : std::nullopt);
    json.add("fits", fit.fits);
    json.add("max_batch", fit.largest_batch);
    json.add("max_context", fit.longest_context);
    if (fit.draft_weights.value > 0.0) {
        json.add("draft_weights_bytes", fit.draft_weights.value);
        json.add("draft_kv_bytes", fit.draft_kv.value);
    }
    if (fit.engine) write_engine(json, *fit.engine);
    if (fit.fits) return;
    json.add("shortfall_bytes", fit.shortfall().value);
    json.array("remedies", [&] {
        for (const predict::Remedy& remedy : fit.remedies) json.object([&] { write_remedy(json, remedy); });
    });
}

void write_question(JsonText& json, const predict::Scenario& scenario, const predict::Report& report) {
    const model::Deployment& spread = scenario.deployment;
    json.object("model", [&] {
        json.add("name", scenario.model_name);
        json.add("title", scenario.model_title);
        json.add("parameters", report.parameters.total);
        json.add("active_parameters", scenario.active_parameters);
        json.add("kv_bytes_per_token", report.kv_bytes_per_token);
    });
    write_workload(json, scenario.workload);
    json.object("deployment", [&] {
        json.add("weight_dtype", scenario.weight_types);
        json.add("activation_dtype", scenario.activation_type);
        json.add("kv_cache_dtype", scenario.kv_type);
        json.add("profile", scenario.execution.profile.name);
        json.add("devices", static_cast<long long>(spread.devices()));
        json.add("tensor_parallel", static_cast<long long>(spread.tensor));
        json.add("pipeline_parallel", static_cast<long long>(spread.pipeline));
        json.add("context_parallel", static_cast<long long>(spread.context));
        json.add("expert_parallel", static_cast<long long>(spread.experts));
        json.add("attention_groups", static_cast<long long>(spread.groups));
        if (spread.exchange) json.add("expert_exchange", model::name(*spread.exchange));
        json.add("replicas", static_cast<long long>(spread.replicas));
    });
}

void write_metrics(JsonText& json, const predict::RequestMetrics& metrics, double batch) {
    const auto rate = [&](Seconds tpot) { return tpot.value > 0.0 ? batch / tpot.value : 0.0; };
    write_times(json, "ttft_s", metrics.ttft);
    write_times(json, "tpot_s", metrics.tpot);
    write_times(json, "request_s", metrics.request);
    write_rates(json, "output_tokens_per_s", rate(metrics.tpot.limit), rate(metrics.tpot.attainable),
                rate(metrics.tpot.expected));
    json.add("joules_per_token", metrics.joules_per_token);
    json.add("cost_per_million_tokens", metrics.money ? metrics.money->output : std::nullopt);
    if (!metrics.money) return;
    json.add("cost_per_million_decoded_tokens", metrics.money->decode);
    json.add("cost_per_million_prompt_tokens", metrics.money->prompt);
}

void write_published(JsonText& json, std::string_view key, const std::optional<PublishedCount>& count) {
    if (!count)
        json.add(key, nullptr);
    else if (count->rounding > 0.0)
        json.add(key, count->text);
    else
        json.add(key, count->value);
}

}  // namespace

void write_times(JsonText& json, std::string_view key, const Times& times) {
    json.object(key, [&] {
        json.add("limit", times.limit.value);
        json.add("attainable", times.attainable.value);
        json.add("expected", times.expected.value);
        json.add("expected_low", times.expected_low.value);
        json.add("expected_high", times.expected_high.value);
        if (times.measured) json.add("measured", times.measured->value);
    });
}

void write_run(JsonText& json, const RunInfo& run) {
    json.object("run", [&] {
        json.add("version", ROOFLINE_VERSION);
        json.add("command", run.command);
        json.add("time", run.time);
    });
}

void write_workload(JsonText& json, const predict::Workload& workload) {
    json.object("workload", [&] {
        json.add("batch", workload.batch);
        json.add("prompt", workload.prompt);
        json.add("cached_prefix", workload.cached);
        json.add("context", workload.decode_context());
        json.add("generate", workload.generate);
        json.add("chunk", workload.chunk);
    });
}

OrderedJson times_json(const Times& times) {
    OrderedJson json = {{"limit", finite(times.limit.value)},
                        {"attainable", finite(times.attainable.value)},
                        {"expected", finite(times.expected.value)},
                        {"expected_low", finite(times.expected_low.value)},
                        {"expected_high", finite(times.expected_high.value)}};
    if (times.measured) json["measured"] = finite(times.measured->value);
    return json;
}

std::string dump(const OrderedJson& json) {
    return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

OrderedJson finite(double value) {
    return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

std::string report_text(const predict::Scenario& scenario, const predict::Report& report, const RunInfo& run,
                        const std::function<void(JsonText&)>& more) {
    JsonText json;
    json.object([&] {
        json.add("schema", "roofline.report/1");
        write_run(json, run);
        // Whole: a report can be judged where the device is not known.
        json.object("device", [&] { write_device(json, scenario.device); });
        write_question(json, scenario, report);
        json.object("fit", [&] { write_fit(json, report.fit); });
        json.add("hypothetical", !report.fit.fits);
        json.array("stages", [&] {
            for (const StageReport& stage : report.stages) json.object([&] { write_stage(json, stage); });
        });
        json.object("metrics", [&] { write_metrics(json, report.metrics, scenario.workload.batch); });
        json.array("calibration", [&] {
            for (const predict::CalibrationShare& part : report.calibration) {
                json.object([&] {
                    json.add("source", part.source);
                    json.add("share", part.share);
                });
            }
        });
        json.add("notes", report.notes);
        if (more) more(json);
    });
    return std::move(json).finish();
}

void write_device_and_ridges(JsonText& json, const Device& device) {
    write_device(json, device);
    json.object("ridge", [&] {
        for (const DType type : all_dtypes) {
            const bool own = device.rate(Engine::matrix, type) || device.rate(Engine::vector, type);
            if (const auto value = ridge(device, type); own && value) json.add(name(type), value->value);
        }
    });
}

std::string device_text(const Device& device) {
    JsonText json;
    json.object([&] { write_device_and_ridges(json, device); });
    return std::move(json).finish();
}

std::string devices_text(const std::vector<Device>& devices) {
    JsonText json;
    json.object([&] {
        json.add("schema", "roofline.devices/1");
        json.array("devices", [&] {
            for (const Device& device : devices) json.object([&] { write_device_and_ridges(json, device); });
        });
    });
    return std::move(json).finish();
}

void write_model(JsonText& json, const ModelFile& model, const model::Lowered& lowered) {
    const model::ParameterCount count = model::count_parameters(lowered);
    const model::Architecture& architecture = model.architecture;
    json.add("schema", "roofline.model_summary/1");
    json.add("name", model.name);
    json.add("title", model.title);
    json.add("family", architecture.family);
    json.add("aliases", model.aliases);
    json.add("parameters", count.total);
    json.add("active_parameters", model::active_parameters(lowered, model.active_counts));
    json.add("active_parameters_without_embedding", count.active);
    json.add("embedding_parameters", count.embedding);
    json.object("published", [&] {
        write_published(json, "parameters", model.parameters);
        write_published(json, "active_parameters", model.active_parameters);
        json.add("source", model.published_source);
    });
    json.add("weight_bytes", count.stored_bytes);
    json.add("weight_dtype", model.types_summary);
    json.add("kv_cache_dtype", model.types.kv.name);
    json.add("kv_bytes_per_token", model::kv_bytes_per_token(lowered));
    json.add("kv_bytes_per_token_beyond_windows", model::kv_bytes_per_token_beyond_windows(lowered));
    json.add("state_bytes_per_sequence", model::state_bytes_per_sequence(lowered));
    json.add("hidden_size", architecture.hidden);
    json.add("vocabulary", architecture.vocabulary);
    json.add("layers", architecture.layers.size());
    json.add("max_context",
             architecture.longest_context > 0.0 ? std::optional(architecture.longest_context) : std::nullopt);
    json.add("tied_embeddings", architecture.tied);
    json.add("source", model.source);
    json.add("notes", model.notes);
    json.array("stack", [&] {
        for (std::size_t kind = 0; kind < architecture.kinds.size(); ++kind) {
            const model::LayerKind& layer = architecture.kinds[kind];
            double layers = 0.0;
            for (const int of : architecture.layers) layers += of == static_cast<int>(kind) ? 1.0 : 0.0;
            if (layers == 0.0) continue;  // of a module that predicts further tokens, beside the stack
            json.object([&] {
                json.add("label", layer.label);
                json.add("layers", layers);
                json.add("mixer", layer.mixer ? std::optional(layer.mixer->describe()) : std::nullopt);
                json.add("ffn", layer.ffn ? std::optional(layer.ffn->describe()) : std::nullopt);
            });
        }
    });
}

std::string model_text(const ModelFile& model, const model::Lowered& lowered) {
    JsonText json;
    json.object([&] { write_model(json, model, lowered); });
    return std::move(json).finish();
}

}  // namespace roofline::io
