#include "roofline/io/class_defaults.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace roofline::io {
namespace {

/// Zero: the class has no number of its own for it.
struct Defaults {
    std::string_view type;
    int hidden;
    int layers;
    int heads;
    int kv_heads;
    int head_dim;
    int width;
    int vocabulary;
    int window;
};

// As transformers has them (checked with 5.17).
constexpr auto all_defaults = std::to_array<Defaults>({
    {"llama", 4096, 32, 32, 0, 0, 11008, 32000, 0},
    {"mistral", 4096, 32, 32, 8, 0, 14336, 32000, 4096},
    {"gemma", 3072, 28, 16, 16, 256, 24576, 256000, 0},
    {"gemma2", 2304, 26, 8, 4, 256, 9216, 256000, 4096},
    {"gemma3_text", 2304, 26, 8, 4, 256, 9216, 262208, 4096},
    {"llama4_text", 5120, 48, 40, 8, 128, 8192, 202048, 0},
    {"qwen2", 4096, 32, 32, 32, 0, 22016, 151936, 0},
    {"qwen2_vl_text", 8192, 80, 64, 8, 0, 29568, 152064, 0},
    {"qwen2_5_vl_text", 8192, 80, 64, 8, 0, 29568, 152064, 0},
    {"qwen3", 4096, 32, 32, 32, 128, 22016, 151936, 0},
    {"qwen3_vl_text", 4096, 32, 32, 32, 128, 22016, 151936, 0},
    {"phi3", 3072, 32, 32, 0, 0, 8192, 32064, 0},
    {"cohere2", 8192, 40, 64, 0, 0, 22528, 256000, 4096},
    {"granite", 4096, 32, 32, 0, 0, 11008, 32000, 0},
    {"glm4v_text", 4096, 40, 32, 2, 0, 13696, 151552, 0},
});

}  // namespace

std::vector<std::string> fill_class_defaults(Json& nested) {
    std::vector<std::string> filled;
    const auto type = nested.find("model_type");
    if (type == nested.end() || !type->is_string()) return filled;
    const auto found = std::find_if(all_defaults.begin(), all_defaults.end(), [&](const Defaults& each) {
        return each.type == type->get_ref<const std::string&>();
    });
    if (found == all_defaults.end()) return filled;
    const auto sizes = std::to_array<std::pair<const char*, int>>({{"hidden_size", found->hidden},
                                                                   {"num_hidden_layers", found->layers},
                                                                   {"num_attention_heads", found->heads},
                                                                   {"num_key_value_heads", found->kv_heads},
                                                                   {"head_dim", found->head_dim},
                                                                   {"intermediate_size", found->width},
                                                                   {"vocab_size", found->vocabulary},
                                                                   {"sliding_window", found->window}});
    for (const auto& [key, value] : sizes) {
        if (value == 0 || nested.contains(key)) continue;
        nested[key] = value;
        filled.emplace_back(key);
    }
    return filled;
}

}  // namespace roofline::io
