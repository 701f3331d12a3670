// Weights in fewer bits. Activations follow where the device multiplies that type; where it does not, weights are
// unpacked on the way and only the traffic shrinks.
#include <fmt/format.h>

#include "roofline/decide/move.hpp"

namespace roofline::decide {
namespace {

struct Choice {
    const char* format;
    const char* quality;
};

// What a GGUF file can be had in, and what serving engines take.
constexpr Choice for_llama_cpp[] = {{"q8_0", "quality: as good as unchanged"},
                                    {"q4_k_m", "quality: small losses, larger for small models"}};
constexpr Choice for_engines[] = {{"fp8", "quality: usually within noise, to be checked"},
                                  {"fp8_block", "quality: usually within noise; scales per block, as DeepSeek's"},
                                  {"int8", "quality: usually within noise once calibrated"},
                                  {"int4", "quality: small losses, larger for small models"},
                                  {"mxfp4", "quality: losses unless the model was trained for it"},
                                  {"nvfp4", "quality: small losses, larger for small models"}};

/// Of a weight of the asked model, on average.
double bits_now(const Question& question) {
    const auto& parameters = question.scenario.parameters;
    return parameters && parameters->total > 0.0 ? 8.0 * parameters->stored_bytes / parameters->total : 16.0;
}

Variant variant_of(const Choice& choice, double now, const Device& device) {
    const Format& format = *find_format(choice.format);
    // The rest of a checkpoint (norms, embedding) keeps its type, so a format is only worth it well below the mean.
    constexpr double margin = 0.3;
    const bool multiplied = !format.weight_only && device.rate(Engine::matrix, format.value).has_value();
    Variant variant;
    variant.name = fmt::format("{} weights{}", format.name, multiplied ? " and activations" : "");
    variant.costs = choice.quality;
    if (!multiplied)
        variant.costs +=
            fmt::format("; {} no faster compute, weights are unpacked", format.weight_only ? "by design" : "here");
    variant.answers = Answers::rounded;
    variant.apply = [&format, now](Candidate& candidate) -> Result<std::string> {
        if (bits_per_element(format) > now - margin)
            return fail(fmt::format("weights take {:.1f} bits each already", now));
        // Where another device was put in its place, that one decides.
        const bool narrow =
            !format.weight_only && candidate.setup.device.rate(Engine::matrix, format.value).has_value();
        predict::TypeChoice& types = candidate.setup.types;
        types.weights = &format;
        if (narrow) types.activations = &format;
        return fmt::format("{} {}", narrow ? "-q" : "--weight-dtype", format.name);
    };
    return variant;
}

std::vector<Variant> variants(const Question& question) {
    const double now = bits_now(question);
    const bool ggml = !question.asked.setup.execution.profile.kernels.empty();
    std::vector<Variant> result;
    for (const Choice& choice : ggml ? std::span<const Choice>(for_llama_cpp) : std::span<const Choice>(for_engines))
        result.push_back(variant_of(choice, now, question.asked.setup.device));
    return result;
}

}  // namespace

extern const Move quantise_weights_move;
const Move quantise_weights_move{"quantise_weights", "weights in fewer bits", 20, variants};

}  // namespace roofline::decide
