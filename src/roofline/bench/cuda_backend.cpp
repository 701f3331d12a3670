#include "roofline/bench/cuda_backend.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>

namespace roofline::bench {
namespace {

using io::Fields;
using io::Json;

constexpr const char* file = "the CUDA plugin";

Result<Json> ask(const CudaCall& call, const Json& request) {
    auto answer = call(request);
    if (!answer) return answer;
    if (!answer->is_object()) return fail(fmt::format("{}: found {}, expected an object", file, io::describe(*answer)));
    if (const auto problem = answer->find("problem"); problem != answer->end() && !answer->contains("launch")) {
        const bool text = problem->is_string();
        return std::unexpected(
            Problem{fmt::format("{}: {}", file, text ? problem->get<std::string>() : "failed"), true});
    }
    return answer;
}

/// Times are positive and in order, or the answer is not believed.
Timing read_timing(Fields& fields) {
    Timing timing;
    timing.median = fields.positive("time_s");
    timing.low = fields.number_or("low_s", timing.median);
    timing.high = fields.number_or("high_s", timing.median);
    timing.calls = static_cast<std::int64_t>(fields.number_or("repetitions", 1.0));
    if (!(timing.low <= timing.median) || !(timing.median <= timing.high))
        fields.complain("time_s", "found a time that does not lie between low_s and high_s");
    return timing;
}

}  // namespace

Json task_json(const Task& task) {
    Json json = {{"name", task.name}, {"kind", name(task.kind)}};
    if (task.kind == TaskKind::product) {
        json["m"] = task.m;
        json["n"] = task.n;
        json["k"] = task.k;
        json["weight_dtype"] = name(task.weights);
        json["activation_dtype"] = roofline::name(task.activations);
        if (task.experts > 1) {
            json["experts"] = task.experts;
            json["settled"] = task.settled;
        }
    } else if (task.kind == TaskKind::attention) {
        json["stage"] = task.prefill ? "prefill" : "decode";
        json["batch"] = task.batch;
        json["tokens"] = task.tokens;
        json["context"] = task.context;
        json["query_heads"] = task.query_heads;
        json["kv_heads"] = task.kv_heads;
        json["head_dim"] = task.head_dim;
        json["kv_dtype"] = roofline::name(task.kv);
        if (!has_even_heads(task)) json["value_dim"] = value_width(task);
        if (task.latent) json["latent"] = true;
        if (task.window > 0) json["window"] = task.window;
        if (task.sinks) json["sinks"] = true;
    } else if (task.kind == TaskKind::absorption) {
        json["rows"] = task.rows;
        json["heads"] = task.query_heads;
        json["head_dim"] = task.head_dim;
        json["value_dim"] = task.value_dim;
        json["k"] = task.k;
        json["weight_dtype"] = name(task.weights);
    } else if (task.kind == TaskKind::convolution || keeps_state(task)) {
        json["batch"] = task.batch;
        json["tokens"] = task.tokens;
        if (keeps_state(task)) {
            json["heads"] = task.query_heads;
            json["kv_heads"] = task.kv_heads;
            json["head_dim"] = task.head_dim;
            json["value_dim"] = task.value_dim;
        } else {
            json["width"] = task.width;
            json["taps"] = task.taps;
        }
    } else {
        json["rows"] = task.rows;
        json["width"] = task.width;
        json["heads"] = task.query_heads;
        json["kv_heads"] = task.kv_heads;
        json["head_dim"] = task.head_dim;
        json["kv_dtype"] = roofline::name(task.kv);
        if (task.latent) json["latent"] = true;
        if (task.chosen > 0) json["chosen"] = task.chosen;
        if (task.kind == TaskKind::gated_norm) json["run"] = task.run;
    }
    return json;
}

namespace {

Json bench_request(const CudaPlace& place) {
    Json request = {{"do", "bench"},
                    {"device", place.device},
                    {"backends", place.backends},
                    {"seconds", place.seconds},
                    {"tasks", Json::array()}};
    for (const std::string& name : place.plugin_names) request["backends"].push_back(name);
    if (!place.plugins.empty()) request["plugins"] = place.plugins;
    return request;
}

Outcome refused(const Task& task, std::string why) {
    Outcome none;
    none.task = task.name;
    none.backend = "cuda";
    none.problem = std::move(why);
    return none;
}

/// What the plugin has no kernel for though it has one of that name, or would take for something else.
bool processors_only(const Task& task) {
    const bool gates_of_heads = task.kind == TaskKind::output_gate && task.run > 1;
    return task.kind == TaskKind::selective_scan || task.kind == TaskKind::multiply || task.plain || gates_of_heads ||
           task.kind == TaskKind::index_write || task.kind == TaskKind::index_scores ||
           (task.kind == TaskKind::attention && task.chosen > 0);
}

Result<std::vector<Outcome>> run_cuda_task(const CudaCall& call, const CudaPlace& place, const Task& task) {
    if (processors_only(task)) return std::vector{refused(task, "no kernel in the CUDA plugin")};
    if (is_of_gguf(task.weights)) return std::vector{refused(task, unread_by("CUDA", task.weights))};
    Json request = bench_request(place);
    request["tasks"].push_back(task_json(task));
    const auto answer = ask(call, request);
    if (!answer) return std::unexpected(answer.error());
    std::optional<Problem> problem;
    Fields fields(*answer, file, "", problem);
    std::vector<Outcome> outcomes;
    for (Fields& result : fields.children("results")) {
        Outcome outcome;
        outcome.task = result.text("name");
        outcome.backend = result.text("backend");
        outcome.problem = result.text_or("problem", "");
        if (outcome.problem.empty()) {
            outcome.timing = read_timing(result);
            outcome.flops = result.number_or("flops", 0.0);
            outcome.bytes = result.number_or("bytes", 0.0);
            outcome.error = result.number_or("error", 0.0);
            outcome.tolerance = result.number_or("tolerance", 0.0);
            outcome.buffers = static_cast<std::size_t>(result.number_or("buffers", 1.0));
            if (outcome.error > outcome.tolerance) {
                outcome.problem = fmt::format("wrong: off by {:.2g} of the typical value, allowed {:.2g}",
                                              outcome.error, outcome.tolerance);
            }
        }
        if (outcome.task == task.name) outcomes.push_back(std::move(outcome));
    }
    if (problem) return std::unexpected(*problem);
    if (outcomes.empty()) {
        outcomes.push_back(refused(task, "no kernel in the CUDA plugin"));
    }
    return outcomes;
}

}  // namespace

Result<std::vector<CudaPlugin>> load_cuda_plugins(const CudaCall& call, const CudaPlace& place) {
    if (place.plugins.empty()) return std::vector<CudaPlugin>();
    const auto answer = ask(call, bench_request(place));
    if (!answer) return std::unexpected(Problem{answer.error().text, false});  // what was named is wrong, not missing
    std::optional<Problem> problem;
    Fields fields(*answer, file, "", problem);
    std::vector<CudaPlugin> plugins;
    for (Fields& one : fields.children("plugins"))
        plugins.push_back({one.text("name"), one.text_or("description", "")});
    if (problem) return std::unexpected(*problem);
    if (plugins.size() != place.plugins.size())
        return fail(fmt::format("{}: loaded {} of {} kernels", file, plugins.size(), place.plugins.size()));
    return plugins;
}

Result<std::vector<std::vector<Outcome>>> run_cuda_tasks(const CudaCall& call, const CudaPlace& place,
                                                         const std::vector<Task>& tasks) {
    std::vector<std::vector<Outcome>> outcomes(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (place.stopped && place.stopped()) break;
        auto found = run_cuda_task(call, place, tasks[i]);
        if (!found) return std::unexpected(found.error());
        outcomes[i] = std::move(*found);
    }
    return outcomes;
}

namespace {

Json json_of(std::int64_t value) {
    return value;
}
Json json_of(bool value) {
    return value;
}
Json json_of(const std::string& value) {
    return value;
}
Json json_of(DType type) {
    return roofline::name(type);
}
Json json_of(WeightFormat format) {
    return name(format);
}
Json json_of(HeadNorm norm) {
    return norm == HeadNorm::none ? "none" : norm == HeadNorm::each_head ? "each_head" : "whole_width";
}
template <class Shape>
Json json_of(const Shape& shape);
template <class Shape>
Json json_of(const std::vector<Shape>& shapes) {
    Json list = Json::array();
    for (const Shape& shape : shapes) list.push_back(json_of(shape));
    return list;
}
/// Field by field (stack.hpp); products and states that are not there are left out.
template <class Shape>
Json json_of(const Shape& shape) {
    Json json = Json::object();
    each_field(shape, [&](const char* name, const auto& field) {
        if constexpr (std::is_same_v<decltype(field), const ProductShape&>) {
            if (!field) return;
        }
        if constexpr (std::is_same_v<decltype(field), const StateMixerShape&>) {
            if (field.heads == 0) return;
        }
        if constexpr (std::is_same_v<decltype(field), const ChannelMixerShape&>) {
            if (field.channels == 0) return;
        }
        json[name] = json_of(field);
    });
    return json;
}

/// A format of GGUF among those of a model's products.
template <class Shape>
std::optional<WeightFormat> find_gguf(const Shape& shape) {
    std::optional<WeightFormat> found;
    each_field(shape, [&](const char*, const auto& field) {
        using Field = std::remove_cvref_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, WeightFormat>) {
            if (is_of_gguf(field)) found = field;
        } else if constexpr (std::is_same_v<Field, std::vector<LayerShape>>) {
            for (const LayerShape& layer : field) {
                if (const auto inside = find_gguf(layer)) found = inside;
            }
        } else if constexpr (requires { each_field(field, [](const char*, const auto&) {}); }) {
            if (const auto inside = find_gguf(field)) found = inside;
        }
    });
    return found;
}

}  // namespace

Result<std::vector<StepOutcome>> run_cuda_step(const CudaCall& call, const CudaPlace& place, const StackShape& shape,
                                               const StepWork& work) {
    if (const auto unread = find_gguf(shape)) {
        StepOutcome refused;
        refused.backend = "cuda";
        refused.problem = unread_by("CUDA", *unread);
        return std::vector{std::move(refused)};
    }
    const Json request = {{"do", "step"},
                          {"device", place.device},
                          {"stage", work.prefill ? "prefill" : "decode"},
                          {"batch", work.batch},
                          {"tokens", work.tokens},
                          {"context", work.context},
                          {"expanded", work.expanded},
                          {"model", json_of(shape)},
                          {"backends", place.backends},
                          {"launch", {"graph", "eager"}}};
    const auto answer = ask(call, request);
    if (!answer) return std::unexpected(answer.error());
    std::optional<Problem> problem;
    Fields fields(*answer, file, "", problem);
    std::vector<StepOutcome> outcomes;
    const auto mixes = [](const LayerShape& layer) { return layer.mixes(); };
    const auto feeds = [](const LayerShape& layer) { return static_cast<bool>(layer.ffn.up); };
    const auto read = [&](Fields& result) {
        StepOutcome& outcome = outcomes.emplace_back();
        outcome.backend = result.text_or("backend", "cuda");
        outcome.launch = result.text_or("launch", "");
        outcome.problem = result.text_or("problem", "");
        if (!outcome.problem.empty()) return;
        outcome.timing = read_timing(result);
        // Of nothing a time is a few nanoseconds.
        if (std::ranges::any_of(shape.kinds, mixes)) outcome.attention = result.number_or("attention_s", 0.0);
        if (std::ranges::any_of(shape.kinds, feeds)) outcome.ffn = result.number_or("ffn_s", 0.0);
        outcome.other = result.number_or("other_s", 0.0);
        outcome.layers = shape.layers();
        outcome.layers_distinct =
            static_cast<std::int64_t>(result.number_or("layers_distinct", static_cast<double>(shape.layers())));
    };
    if (fields.has("results")) {
        for (Fields& result : fields.children("results")) read(result);
    } else {
        read(fields);
    }
    if (problem) return std::unexpected(*problem);
    return outcomes;
}

}  // namespace roofline::bench
