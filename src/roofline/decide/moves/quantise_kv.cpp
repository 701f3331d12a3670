// Keys and values in fewer bits: less to read for every token, and room for more sequences.
#include <fmt/format.h>

#include "roofline/decide/move.hpp"

namespace roofline::decide {
namespace {

Variant variant_of(const char* type, const char* quality) {
    const Format& format = *find_format(type);
    Variant variant;
    variant.name = fmt::format("{} KV cache", format.name);
    variant.costs = quality;
    variant.answers = Answers::rounded;
    variant.apply = [&format](Candidate& candidate) -> Result<std::string> {
        const Format now = predict::plan_types(candidate.setup).kv;
        if (bits_per_element(format) >= bits_per_element(now))
            return fail(fmt::format("the cache is in {} already", now.name));
        candidate.setup.types.kv = &format;
        return fmt::format("--kv-cache-dtype {}", format.name);
    };
    return variant;
}

std::vector<Variant> variants(const Question& question) {
    if (question.scenario.kv_bytes_per_token.value_or(0.0) <= 0.0)
        return {not_here("KV cache in fewer bits", "the model keeps no keys and values that grow with the context")};
    std::vector<Variant> result = {variant_of("fp8", "quality: usually within noise, to be checked at long context")};
    if (question.asked.setup.device.rate(Engine::matrix, DType::fp4))
        result.push_back(variant_of("nvfp4", "quality: losses at long context; few kernels support it"));
    return result;
}

}  // namespace

extern const Move quantise_kv_move;
const Move quantise_kv_move{"quantise_kv", "keys and values in fewer bits", 21, variants};

}  // namespace roofline::decide
