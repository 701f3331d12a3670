#include "roofline/io/report_json.hpp"

#include <cmath>

#include "roofline/io/device_file.hpp"
#include "roofline/io/times_json.hpp"

namespace roofline::io {
namespace {

using predict::StageReport;

OrderedJson rates_json(const StageReport& stage) {
    return {{"limit", stage.tokens_per_second(stage.times.limit)},
            {"attainable", stage.tokens_per_second(stage.times.attainable)},
            {"expected", stage.tokens_per_second(stage.times.expected)}};
}

OrderedJson record_json(const StageReport& stage, std::size_t i) {
    const Record& record = stage.records[i];
    const predict::OperatorTime& detail = stage.details[i];
    const double total = stage.times.expected.value;
    return {{"name", record.name},
            {"kind", name(record.kind)},
            {"group", name(record.group)},
            {"count", record.count},
            {"engine", name(record.work.engine)},
            {"dtype", name(record.work.type)},
            {"flops", record.work.flops.value},
            {"bytes",
             {{"memory", detail.memory_bytes},
              {"cache", detail.cache_bytes},
              {"weights", detail.weight_bytes},
              {"kv", detail.kv_bytes},
              {"peer", detail.peer_bytes},
              {"network", detail.network_bytes},
              {"host", detail.host_bytes}}},
            {"intensity", finite(detail.intensity)},
            {"bound", name(detail.bound)},
            {"fraction_of_peak", stage.uses[i].of_peak},
            {"fraction_of_bandwidth", stage.uses[i].of_bandwidth},
            {"time_s", times_json(record.times)},
            {"share", total > 0.0 ? record.times.expected.value / total : 0.0}};
}

OrderedJson stage_json(const StageReport& stage) {
    OrderedJson json = {{"stage", predict::name(stage.kind)},
                        {"batch", stage.batch},
                        {"tokens", stage.tokens},
                        {"context", stage.context},
                        {"flops", stage.totals.flops},
                        {"bytes",
                         {{"memory", stage.totals.memory_bytes},
                          {"cache", stage.totals.cache_bytes},
                          {"weights", stage.totals.weight_bytes},
                          {"kv", stage.totals.kv_bytes},
                          {"peer", stage.totals.peer_bytes},
                          {"network", stage.totals.network_bytes},
                          {"host", stage.totals.host_bytes}}},
                        {"intensity", finite(stage.totals.intensity)},
                        {"ridge", finite(stage.ridge.value)},
                        {"bound", name(stage.totals.bound)},
                        {"fraction_of_peak", stage.use.of_peak},
                        {"fraction_of_bandwidth", stage.use.of_bandwidth},
                        {"time_s", times_json(stage.times)},
                        {"tokens_per_s", rates_json(stage)}};
    json["groups"] = OrderedJson::array();
    for (const predict::GroupShare& group : stage.groups) {
        json["groups"].push_back({{"group", name(group.group)},
                                  {"flops", group.flops.value},
                                  {"bytes", {{"memory", group.memory.value}}},
                                  {"intensity", finite(group.intensity.value)},
                                  {"bound", name(group.bound)},
                                  {"fraction_of_peak", group.use.of_peak},
                                  {"fraction_of_bandwidth", group.use.of_bandwidth},
                                  {"time_s",
                                   {{"limit", group.limit.value},
                                    {"attainable", group.attainable.value},
                                    {"expected", group.expected.value}}},
                                  {"share", group.share}});
    }
    json["records"] = OrderedJson::array();
    for (std::size_t i = 0; i < stage.records.size(); ++i) json["records"].push_back(record_json(stage, i));
    return json;
}

OrderedJson optional_json(const std::optional<double>& value) {
    return value ? finite(*value) : OrderedJson(nullptr);
}

/// As the engine named allocates it; nothing where none is named.
void add_engine(OrderedJson& json, const predict::EngineMemory& memory) {
    json["engine"] = memory.engine;
    json["utilisation"] = memory.utilisation;
    json["reported_bytes"] = memory.reported_known ? OrderedJson(memory.reported.value) : OrderedJson(nullptr);
    json["budget_bytes"] = memory.budget.value;
    json["trial_activation_bytes"] = memory.activations.value;
    json["overhead_bytes"] = memory.overhead.value;
    json["pool_bytes"] = memory.pool.value;
    json["pool_tokens"] = memory.pool_tokens;
    json["block_tokens"] = memory.cache.block_tokens;
    json["kv_allocated_bytes"] = memory.allocated.value;
    json["longest_context"] = memory.longest;
    json["concurrency"] = finite(memory.concurrency);
    json["step_tokens"] = memory.step_tokens;
    json["sequences"] = memory.sequences;
}

OrderedJson remedies_json(const std::vector<predict::Remedy>& remedies) {
    OrderedJson json = OrderedJson::array();
    for (const predict::Remedy& remedy : remedies) {
        OrderedJson entry = {{"kind", name(remedy.kind)},
                             {"change", remedy.change},
                             {"value", remedy.value},
                             {"approximate", remedy.approximate}};
        if (remedy.moved.value > 0.0) entry["moved_bytes"] = remedy.moved.value;
        if (remedy.added) entry["added_s"] = remedy.added->value;
        json.push_back(std::move(entry));
    }
    return json;
}

OrderedJson published_json(const std::optional<PublishedCount>& count) {
    if (!count) return nullptr;
    return count->rounding > 0.0 ? OrderedJson(count->text) : OrderedJson(count->value);
}

}  // namespace

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

OrderedJson report_json(const predict::Scenario& scenario, const predict::Report& report, const RunInfo& run) {
    const predict::Workload& workload = scenario.workload;
    const model::Deployment& spread = scenario.deployment;
    OrderedJson json;
    json["schema"] = "roofline.report/1";
    json["run"] = {{"version", ROOFLINE_VERSION}, {"command", run.command}, {"time", run.time}};
    json["device"] = write_device(scenario.device);  // whole: a report can be judged where the device is not known
    json["model"] = {{"name", scenario.model_name},
                     {"title", scenario.model_title},
                     {"parameters", report.parameters.total},
                     {"active_parameters", scenario.active_parameters},
                     {"kv_bytes_per_token", report.kv_bytes_per_token}};
    json["workload"] = {{"batch", workload.batch},          {"prompt", workload.prompt},
                        {"cached_prefix", workload.cached}, {"context", workload.decode_context()},
                        {"generate", workload.generate},    {"chunk", workload.chunk}};
    json["deployment"] = {{"weight_dtype", scenario.weight_types},
                          {"activation_dtype", scenario.activation_type},
                          {"kv_cache_dtype", scenario.kv_type},
                          {"profile", scenario.execution.profile.name},
                          {"devices", static_cast<long long>(spread.devices())},
                          {"tensor_parallel", static_cast<long long>(spread.tensor)},
                          {"pipeline_parallel", static_cast<long long>(spread.pipeline)},
                          {"context_parallel", static_cast<long long>(spread.context)},
                          {"expert_parallel", static_cast<long long>(spread.experts)},
                          {"attention_groups", static_cast<long long>(spread.groups)},
                          {"replicas", static_cast<long long>(spread.replicas)}};
    const predict::Fit& fit = report.fit;
    json["fit"] = {{"weights_bytes", fit.weights.value},
                   {"kv_bytes", fit.kv.value},
                   {"activation_bytes", fit.activations.value},
                   {"capacity_bytes", fit.capacity ? OrderedJson(fit.capacity->value) : OrderedJson(nullptr)},
                   {"fits", fit.fits},
                   {"max_batch", optional_json(fit.largest_batch)},
                   {"max_context", optional_json(fit.longest_context)}};
    if (fit.engine) add_engine(json["fit"], *fit.engine);
    if (!fit.fits) {
        json["fit"]["shortfall_bytes"] = fit.shortfall().value;
        json["fit"]["remedies"] = remedies_json(fit.remedies);
    }
    json["stages"] = OrderedJson::array();
    for (const StageReport& stage : report.stages) json["stages"].push_back(stage_json(stage));
    const auto rate = [&](Seconds tpot) { return tpot.value > 0.0 ? workload.batch / tpot.value : 0.0; };
    const predict::RequestMetrics& metrics = report.metrics;
    json["metrics"] = {{"ttft_s", times_json(metrics.ttft)},
                       {"tpot_s", times_json(metrics.tpot)},
                       {"request_s", times_json(metrics.request)},
                       {"output_tokens_per_s",
                        {{"limit", rate(metrics.tpot.limit)},
                         {"attainable", rate(metrics.tpot.attainable)},
                         {"expected", rate(metrics.tpot.expected)}}},
                       {"joules_per_token", optional_json(metrics.joules_per_token)},
                       {"cost_per_million_tokens", nullptr}};
    json["calibration"] = OrderedJson::array();
    for (const predict::CalibrationShare& part : report.calibration)
        json["calibration"].push_back({{"source", part.source}, {"share", part.share}});
    json["notes"] = report.notes;
    return json;
}

OrderedJson device_json(const Device& device) {
    OrderedJson json = write_device(device);
    json["ridge"] = OrderedJson::object();
    for (const DType type : all_dtypes) {
        const bool own = device.rate(Engine::matrix, type) || device.rate(Engine::vector, type);
        if (const auto value = ridge(device, type); own && value) json["ridge"][std::string(name(type))] = value->value;
    }
    return json;
}

OrderedJson model_json(const ModelFile& model, const model::Lowered& lowered) {
    const model::ParameterCount count = model::count_parameters(lowered);
    OrderedJson json = {
        {"schema", "roofline.model_summary/1"},
        {"name", model.name},
        {"title", model.title},
        {"family", model.architecture.family},
        {"aliases", model.aliases},
        {"parameters", count.total},
        {"active_parameters", model::active_parameters(lowered, model.active_counts)},
        {"active_parameters_without_embedding", count.active},
        {"embedding_parameters", count.embedding},
        {"published",
         {{"parameters", published_json(model.parameters)},
          {"active_parameters", published_json(model.active_parameters)},
          {"source", model.published_source}}},
        {"weight_bytes", count.stored_bytes},
        {"weight_dtype", model.types_summary},
        {"kv_cache_dtype", model.types.kv.name},
        {"kv_bytes_per_token", model::kv_bytes_per_token(lowered)},
        {"kv_bytes_per_token_beyond_windows", model::kv_bytes_per_token_beyond_windows(lowered)},
        {"state_bytes_per_sequence", model::state_bytes_per_sequence(lowered)},
        {"hidden_size", model.architecture.hidden},
        {"vocabulary", model.architecture.vocabulary},
        {"layers", model.architecture.layers.size()},
        {"max_context", model.architecture.longest_context > 0.0 ? OrderedJson(model.architecture.longest_context)
                                                                 : OrderedJson(nullptr)},
        {"tied_embeddings", model.architecture.tied},
        {"source", model.source},
        {"notes", model.notes}};
    json["stack"] = OrderedJson::array();
    for (std::size_t kind = 0; kind < model.architecture.kinds.size(); ++kind) {
        const model::LayerKind& layer = model.architecture.kinds[kind];
        double layers = 0.0;
        for (const int of : model.architecture.layers) layers += of == static_cast<int>(kind) ? 1.0 : 0.0;
        json["stack"].push_back({{"label", layer.label},
                                 {"layers", layers},
                                 {"mixer", layer.mixer ? OrderedJson(layer.mixer->describe()) : OrderedJson(nullptr)},
                                 {"ffn", layer.ffn ? OrderedJson(layer.ffn->describe()) : OrderedJson(nullptr)}});
    }
    return json;
}

}  // namespace roofline::io
