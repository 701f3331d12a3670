// Whole steps of a model: chosen, checked, then timed in a graph and launched one by one; attention and FFN also alone.
#include <algorithm>
#include <string_view>
#include <type_traits>

#include "roofline/bench/cuda/model.cuh"
#include "roofline/bench/cuda/model_check.hpp"
#include "roofline/bench/cuda/reference.hpp"
#include "roofline/bench/cuda/request_fields.cuh"
#include "roofline/bench/cuda/requests.hpp"

namespace roofline::cuda::kernels {

namespace {

using nlohmann::json;

/// Reads the fields of a shape that are there; the others stay as they are. What is wrong is named with its place.
class ShapeReader {
  public:
    ShapeReader(const json& object, std::string place) : object_(object), place_(std::move(place)) {
        if (!object.is_object()) throw Failure{place_ + " is " + object.dump() + ", but must be an object"};
    }

    template <class T>
    void operator()(const char* name, T& member) const {
        const auto found = object_.find(name);
        if (found != object_.end()) read(*found, place_ + "." + name, member);
    }

  private:
    static void read(const json& value, const std::string& place, std::int64_t& member) {
        constexpr std::int64_t most = std::int64_t{1} << 30;
        if (!value.is_number_integer() || value < 0 || value > most) {
            throw Failure{place + " is " + value.dump() + ", but must be a whole number of at least 0"};
        }
        member = value.get<std::int64_t>();
    }
    static void read(const json& value, const std::string& place, bool& member) {
        if (!value.is_boolean()) throw Failure{place + " is " + value.dump() + ", but must be true or false"};
        member = value.get<bool>();
    }
    static std::string text_of(const json& value, const std::string& place) {
        if (!value.is_string()) throw Failure{place + " is " + value.dump() + ", but must be text"};
        return value.get<std::string>();
    }
    static void read(const json& value, const std::string& place, std::string& member) {
        member = text_of(value, place);
    }
    static void read(const json& value, const std::string& place, Format& member) {
        member = format_named(text_of(value, place));
    }
    static void read(const json& value, const std::string& place, DType& member) {
        const Format cache = format_named(text_of(value, place));
        if (cache != Format::bf16 && cache != Format::fp8) throw Failure{"the cache is bf16 or fp8"};
        member = cache == Format::fp8 ? DType::fp8 : DType::bf16;
    }
    static void read(const json& value, const std::string& place, HeadNorm& member) {
        const std::string text = text_of(value, place);
        if (text != "none" && text != "each_head" && text != "whole_width") {
            throw Failure{place + " is \"" + text + "\", but must be none, each_head or whole_width"};
        }
        member = text == "none" ? HeadNorm::none : text == "each_head" ? HeadNorm::each_head : HeadNorm::whole_width;
    }
    static void read(const json& value, const std::string& place, std::vector<LayerShape>& member) {
        if (!value.is_array()) throw Failure{place + " is " + value.dump() + ", but must be a list"};
        for (std::size_t i = 0; i < value.size(); ++i) {
            read(value[i], place + "[" + std::to_string(i) + "]", member.emplace_back());
        }
    }
    template <class Shape>
    static void read(const json& value, const std::string& place, Shape& member) {
        each_field(member, ShapeReader(value, place));
    }

    const json& object_;
    std::string place_;
};

/// What kernels take for granted of every product.
void check_product(const ProductShape& product, const char* name) {
    if (!product) return;
    if (product.k < 1 || product.n % 8 != 0) {
        throw Failure{std::string(name) + " of " + std::to_string(product.n) + " x " + std::to_string(product.k) +
                      ": must have a multiple of 8 rows, and columns"};
    }
}

StackShape stack_of(const json& request) {
    const auto found = request.find("model");
    if (found == request.end()) throw Failure{"the request has no model"};
    StackShape stack;
    each_field(stack, ShapeReader(*found, "model"));
    if (stack.kinds.empty()) throw Failure{"model.kinds is empty"};
    if (stack.hidden < 8 || stack.hidden % 8 != 0) {
        throw Failure{"hidden must be a multiple of 8, not " + std::to_string(stack.hidden)};
    }
    check_product(stack.head, "head");
    if (!stack.head || stack.head.n != stack.vocabulary) throw Failure{"the head must have a row for each token"};
    for (const LayerShape& layer : stack.kinds) {
        const AttentionShape& a = layer.attention;
        const FfnShape& ffn = layer.ffn;
        if (layer.count < 1) throw Failure{"there must be a layer of each kind"};
        each_field(a, [](const char* name, const auto& field) {
            if constexpr (std::is_same_v<decltype(field), const ProductShape&>) check_product(field, name);
        });
        each_field(ffn, [](const char* name, const auto& field) {
            const bool narrow = std::string_view(name) == "shared_gate";  // a number a row
            if constexpr (std::is_same_v<decltype(field), const ProductShape&>) {
                if (!narrow) check_product(field, name);
            }
        });
        if (a.query_heads > 0 && (!a.out || a.kv_heads < 1 || a.query_heads % a.kv_heads != 0)) {
            throw Failure{std::to_string(a.query_heads) + " query heads cannot be shared evenly by " +
                          std::to_string(a.kv_heads) + " kv heads"};
        }
        if (a.head_dim % 16 != 0 || a.value_dim % 8 != 0) throw Failure{"head_dim must be a multiple of 16"};
        const bool fits = a.query_heads == 0 || (a.latent() ? (a.kv_down && a.q && a.kv_up) : static_cast<bool>(a.qkv));
        if (!fits) throw Failure{"attention without products"};
        const StateMixerShape& state = layer.state;
        each_field(state, [](const char* name, const auto& field) {
            if constexpr (std::is_same_v<decltype(field), const ProductShape&>) check_product(field, name);
        });
        if (state.heads > 0 && (state.groups < 1 || state.heads % state.groups != 0 || state.in.n != state.made() ||
                                state.out.k != state.values() || a.query_heads > 0)) {
            throw Failure{"a layer with a state whose products do not fit its heads"};
        }
        if (ffn.up && !ffn.down) throw Failure{"an FFN without a way down"};
        if (ffn.experts > 0 && (!ffn.router || ffn.chosen < 1)) throw Failure{"experts without a router"};
    }
    return stack;
}

StepShape step_of(const json& request) {
    StepShape step;
    const std::string stage = text(request, "stage", "decode");
    if (stage != "decode" && stage != "prefill") throw Failure{"no stage " + stage};
    step.prefill = stage == "prefill";
    step.batch = whole(request, "batch", 1, 1);
    step.tokens = step.prefill ? whole(request, "tokens") : 1;
    step.context = std::max(whole(request, "context", 0, 0), step.tokens);
    step.expanded = request.value("expanded", false);
    return step;
}

/// The logits must be numbers, and the token found the largest of them; then, for a small model, right.
json checked(const Model& model) {
    const auto logits = model.logits();
    const auto width = static_cast<std::size_t>(model.stack().vocabulary);
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
    if (!small_enough(model.stack(), model.step())) return {{"logits", "finite"}};
    const double error = step_error(model);
    const double tolerance = model.narrows_somewhere() ? narrow_step_tolerance : step_tolerance;
    if (!(error <= tolerance)) {
        throw Failure{"wrong answer: logits differ from float64 by " + std::to_string(error) + ", allowed is " +
                      std::to_string(tolerance)};
    }
    return {{"error", error}, {"tolerance", tolerance}};
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
        Model model(stack_of(request), step_of(request), clock);
        json results = json::array();
        for (const json& entry : backends) {
            const auto backend = entry.get<std::string>();
            const auto add = [&](json result) {
                result["backend"] = backend;
                results.push_back(std::move(result));
            };
            try {
                if (progress) progress("choosing kernels (" + backend + ")");
                model.choose(backend, text(request, "preferred", ""));
                model.renew_states();
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
