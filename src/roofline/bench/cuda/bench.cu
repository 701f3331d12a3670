// Operators one by one: each task on each backend, in the order asked. A task that cannot be run says why and the rest
// go on.
#include "roofline/bench/cuda/foreign.cuh"
#include "roofline/bench/cuda/product.cuh"
#include "roofline/bench/cuda/request_fields.cuh"
#include "roofline/bench/cuda/requests.hpp"
#include "roofline/bench/cuda/tasks.cuh"

namespace roofline::cuda::kernels {

namespace {

using nlohmann::json;

/// Few rows wait for weights, whatever they are: what is made for them beside others than plain fp8 takes bf16. On GPUs
/// other than Hopper there may be nothing else.
bool takes_narrow_activations(Format weights, int m, int experts) {
    const bool few = m < least_narrow_activations * experts && (weights != Format::fp8 || experts > 1);
    if (few || !meets_narrow_activations(weights)) return false;
    return experts > 1 ? !routed_variants(weights, true).empty() : !product_variants(weights, true).empty();
}

Outcome run_task(const Clock& clock, const json& task, const std::string& backend, const Effort& effort) {
    const std::string kind = text(task, "kind", "");
    if (kind == "gemm") {
        const Format weights = format_named(text(task, "weight_dtype", "bf16"));
        const std::string activations = text(task, "activation_dtype", "bf16");
        const int m = whole(task, "m");
        const int experts = whole(task, "experts", 1, 1);
        if (experts > m) throw Failure{"there are more experts than rows"};
        // Our kernels for few rows and int8 weights cut bf16 activations to int8 themselves.
        const bool cut = activations == "int8" && weights == Format::int8;
        const bool widened = activations == "fp4" && bits(weights) == 4;  // nobody multiplies four bits by four here
        if (activations != "bf16" && activations != "fp8" && !cut && !widened) {
            throw Failure{"activations are bf16 or fp8 in the CUDA kernels, not " + activations};
        }
        const bool narrow = (activations == "fp8" || cut) && takes_narrow_activations(weights, m, experts);
        return run(
            clock,
            ProductTask{m, whole(task, "n"), whole(task, "k"), weights, narrow, experts, task.value("settled", false)},
            backend, effort);
    }
    if (kind == "attention") {
        const std::string stage = text(task, "stage", "decode");
        if (stage != "decode" && stage != "prefill") throw Failure{"no stage " + stage};
        return run(
            clock,
            AttentionTask{stage == "prefill", whole(task, "batch"), whole(task, "query_heads"), whole(task, "kv_heads"),
                          whole(task, "head_dim"), whole(task, "context", 0, 0), whole(task, "tokens", 1, 1),
                          format_named(text(task, "kv_dtype", "bf16")), whole(task, "value_dim", 0, 0),
                          task.value("latent", false), whole(task, "window", 0, 0), task.value("sinks", false)},
            backend, effort);
    }
    if (kind == "absorption") {
        return run(
            clock,
            HeadsTask{whole(task, "rows"), whole(task, "heads"), whole(task, "head_dim"), whole(task, "value_dim"),
                      whole(task, "k"), format_named(text(task, "weight_dtype", "bf16"))},
            backend, effort);
    }
    if (kind == "convolution") {
        const int tokens = whole(task, "tokens", 1, 1);
        return run(clock, ConvolutionTask{whole(task, "batch"), tokens, whole(task, "width"), whole(task, "taps")},
                   backend, effort);
    }
    if (kind == "state_space" || kind == "delta_rule") {
        StatesTask states;
        states.shape.heads = whole(task, "heads");
        states.shape.delta = kind == "delta_rule";
        states.shape.groups = whole(task, "kv_heads");
        states.shape.key_dim = whole(task, "head_dim");
        states.shape.value_dim = whole(task, "value_dim");
        states.sequences = whole(task, "batch");
        states.tokens = whole(task, "tokens", 1, 1);
        if (states.shape.heads % states.shape.groups != 0) throw Failure{"heads cannot be shared evenly by groups"};
        return run(clock, states, backend, effort);
    }
    SmallTask small{kind,
                    whole(task, "rows", 0, 0),
                    whole(task, "width", 0, 0),
                    whole(task, "heads", 0, 0),
                    whole(task, "kv_heads", 0, 0),
                    whole(task, "head_dim", 0, 0),
                    whole(task, "chosen", 0, 0)};
    small.run = whole(task, "run", 0, 0);
    small.latent = task.value("latent", false);
    if (kind == "kv_write") small.cache = format_named(text(task, "kv_dtype", "bf16"));
    return run(clock, small, backend, effort.seconds);
}

json answer(const Outcome& outcome) {
    json tried = json::array();
    for (const Tried& one : outcome.tried) {
        tried.push_back({{"variant", one.name}, {"time_s", one.time}});
        if (one.error) tried.back()["error"] = *one.error;
    }
    return {{"time_s", outcome.timing.median},
            {"low_s", outcome.timing.low},
            {"high_s", outcome.timing.high},
            {"flops", outcome.flops},
            {"bytes", outcome.bytes},
            {"error", outcome.error},
            {"tolerance", outcome.tolerance},
            {"repetitions", outcome.timing.repetitions},
            {"buffers", outcome.buffers},
            {"variant", outcome.variant},
            {"tried", tried}};
}

}  // namespace
}  // namespace roofline::cuda::kernels

namespace roofline::cuda {

using namespace kernels;
using nlohmann::json;

std::string bench(const nlohmann::json& request, const Progress& progress) {
    try {
        take_device(request);
        const Clock clock;
        const Effort effort{request.value("seconds", 0.05), request.value("check_all", false)};
        const json backends = request.value("backends", json::array({"own", "cublaslt"}));
        json plugins = json::array();
        for (const json& file : request.value("plugins", json::array())) {
            const roofline_cuda_kernel* kernel = load_foreign(file.get<std::string>());
            plugins.push_back({{"name", kernel->name},
                               {"description", kernel->description != nullptr ? kernel->description : kernel->name}});
        }
        json results = json::array();
        for (const json& task : request.at("tasks")) {
            const std::string name = text(task, "name", "");
            for (const json& entry : backends) {
                const auto backend = entry.get<std::string>();
                if (progress) progress(name + " (" + backend + ")");
                json result;
                try {
                    result = answer(run_task(clock, task, backend, effort));
                } catch (const Failure& failure) {
                    result = {{"problem", failure.text}};
                    // A fault of the device does not go away: no further task could run.
                    if (const auto status = cudaDeviceSynchronize(); status != cudaSuccess) {
                        return json{{"problem", name + " (" + backend + "): " + cudaGetErrorString(status)}}.dump();
                    }
                }
                result["name"] = name;
                result["backend"] = backend;
                results.push_back(std::move(result));
            }
        }
        return json{{"results", std::move(results)}, {"plugins", std::move(plugins)}}.dump();
    } catch (const Failure& failure) {
        return json{{"problem", failure.text}}.dump();
    } catch (const std::exception& error) {
        return json{{"problem", std::string("the request cannot be read: ") + error.what()}}.dump();
    }
}

}  // namespace roofline::cuda
