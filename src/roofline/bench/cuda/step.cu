// Whole steps of a model: chosen, checked, then timed in a graph and launched one by one; attention and FFN also alone.
#include <algorithm>

#include "roofline/bench/cuda/model.cuh"
#include "roofline/bench/cuda/model_check.hpp"
#include "roofline/bench/cuda/reference.hpp"
#include "roofline/bench/cuda/request_fields.cuh"
#include "roofline/bench/cuda/requests.hpp"

namespace roofline::cuda::kernels {

namespace {

using nlohmann::json;

ModelShape model_of(const json& request) {
    const auto found = request.find("model");
    if (found == request.end() || !found->is_object()) throw Failure{"the request has no model"};
    ModelShape model;
    model.layers = whole(*found, "layers");
    model.hidden = whole(*found, "hidden");
    model.query_heads = whole(*found, "query_heads");
    model.kv_heads = whole(*found, "kv_heads");
    model.head_dim = whole(*found, "head_dim");
    model.ffn_width = whole(*found, "ffn_width");
    model.vocabulary = whole(*found, "vocabulary");
    model.experts = whole(*found, "experts", 0, 0);
    if (model.experts > 0) model.experts_chosen = whole(*found, "experts_chosen");
    model.head_norm = found->value("qk_norm", false);
    model.bias = found->value("bias", false);
    if (const std::string activation = text(*found, "activation", "silu"); activation != "silu") {
        throw Failure{"the CUDA step knows silu as activation, not " + activation};
    }
    if (model.query_heads % model.kv_heads != 0) {
        throw Failure{std::to_string(model.query_heads) + " query heads cannot be shared evenly by " +
                      std::to_string(model.kv_heads) + " kv heads"};
    }
    for (const auto& [name, value] : {std::pair{"hidden", model.hidden}, std::pair{"ffn_width", model.ffn_width},
                                      std::pair{"vocabulary", model.vocabulary}}) {
        if (value % 8 != 0) throw Failure{std::string(name) + " must be a multiple of 8, not " + std::to_string(value)};
    }
    if (model.head_dim % 16 != 0) throw Failure{"head_dim must be a multiple of 16"};
    return model;
}

StepShape step_of(const json& request) {
    StepShape step;
    const std::string stage = text(request, "stage", "decode");
    if (stage != "decode" && stage != "prefill") throw Failure{"no stage " + stage};
    step.prefill = stage == "prefill";
    step.batch = whole(request, "batch", 1, 1);
    step.tokens = step.prefill ? whole(request, "tokens") : 1;
    step.context = std::max(whole(request, "context", 0, 0), step.tokens);
    step.weights = format_named(text(request, "weight_dtype", "bf16"));
    step.cache = format_named(text(request, "kv_dtype", "bf16"));
    if (step.cache != Format::bf16 && step.cache != Format::fp8) throw Failure{"the cache is bf16 or fp8"};
    return step;
}

/// The logits must be numbers, and the token found the largest of them; then, for a small model, right.
json checked(const Model& model) {
    const auto logits = model.logits();
    const auto width = static_cast<std::size_t>(model.shape().vocabulary);
    const auto tokens = model.tokens_found();
    for (std::size_t sequence = 0; sequence < tokens.size(); ++sequence) {
        double highest = -1e300;
        for (std::size_t i = 0; i < width; ++i) {
            const std::uint16_t bits_found = logits[sequence * width + i];
            if ((bits_found & 0x7F80) == 0x7F80) throw Failure{"wrong answer: a logit is not a number"};
            highest = std::max(highest, decode_bf16(bits_found));
        }
        const auto token = static_cast<std::size_t>(tokens[sequence]);
        if (token >= width || decode_bf16(logits[sequence * width + token]) < highest) {
            throw Failure{"wrong answer: the token found has not the largest logit"};
        }
    }
    if (!small_enough(model.shape(), model.step())) return {{"logits", "finite"}};
    const double error = step_error(model);
    if (!(error <= step_tolerance)) {
        throw Failure{"wrong answer: logits differ from float64 by " + std::to_string(error) + ", allowed is " +
                      std::to_string(step_tolerance)};
    }
    return {{"error", error}, {"tolerance", step_tolerance}};
}

json timed(const Clock& clock, const Model& model, const std::string& how, double seconds) {
    if (how != "graph" && how != "graph_serial" && how != "eager") throw Failure{"no launch called " + how};
    const bool overlap = how == "graph";
    const auto time = [&](int parts) {
        const Run run = [&](int) { model.run(parts, overlap); };
        return how == "eager" ? clock.eager(run, 1, seconds) : clock.captured(run, 1, seconds);
    };
    const Timing all = time(Model::all_parts);
    const double new_tokens = static_cast<double>(model.step().batch) * model.step().tokens;
    return {{"launch", how},
            {"time_s", all.median},
            {"low_s", all.low},
            {"high_s", all.high},
            {"repetitions", all.repetitions},
            {"attention_s", time(Model::attention_part).median},
            {"ffn_s", time(Model::ffn_part).median},
            {"other_s", time(Model::other_part).median},
            {"tokens_per_s", new_tokens / all.median},
            {"kernels", clock.kernels([&](int) { model.run(Model::all_parts, overlap); })},
            {"bytes", model.bytes()},
            {"layers_distinct", model.distinct()},
            {"ways", model.chosen()}};
}

}  // namespace
}  // namespace roofline::cuda::kernels

namespace roofline::cuda {

using namespace kernels;
using nlohmann::json;

std::string step(const json& request, const Progress& progress) {
    try {
        take_device(request);
        const Clock clock;
        const double seconds = request.value("seconds", 0.1);
        const json backends = request.value("backends", json::array({"own"}));
        const json launches = request.value("launch", json::array({"graph", "eager"}));
        if (progress) progress("making the model");
        Model model(model_of(request), step_of(request), clock);
        json results = json::array();
        for (const json& entry : backends) {
            const auto backend = entry.get<std::string>();
            const auto add = [&](json result) {
                result["backend"] = backend;
                results.push_back(std::move(result));
            };
            try {
                if (progress) progress("choosing kernels (" + backend + ")");
                model.choose(backend);
                model.run(Model::all_parts, true);
                clock.finish();
                const json check = checked(model);
                for (const json& launch : launches) {
                    if (progress) progress("step, " + launch.get<std::string>() + " (" + backend + ")");
                    json result = timed(clock, model, launch.get<std::string>(), seconds);
                    result["check"] = check;
                    add(std::move(result));
                }
            } catch (const Failure& failure) {
                add({{"problem", failure.text}, {"launch", ""}});
                if (const auto status = cudaDeviceSynchronize(); status != cudaSuccess) {
                    return json{{"problem", std::string("step: ") + cudaGetErrorString(status)}}.dump();
                }
            }
        }
        return json{{"results", std::move(results)}}.dump();
    } catch (const Failure& failure) {
        return json{{"problem", failure.text}}.dump();
    } catch (const std::exception& error) {
        return json{{"problem", std::string("the request cannot be read: ") + error.what()}}.dump();
    }
}

}  // namespace roofline::cuda
