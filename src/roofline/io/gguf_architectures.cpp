#include "roofline/io/gguf_architectures.hpp"

#include <algorithm>
#include <array>

namespace roofline::io {
namespace {

using Experts = GgufExperts;
using Kind = GgufKind;

constexpr auto architectures = std::to_array<GgufArchitecture>({
    {"llama", "llama"},  // with experts: mixtral; with a window: mistral
    {"mistral3", "mistral"},
    {"mistral4", "mistral4", Experts::routed, Kind::latent},
    {"llama4", "llama4_text", Experts::local, Kind::llama4, 4, 8192},
    {"smollm3", "smollm3"},
    {"seed_oss", "seed_oss"},
    {"arcee", "arcee"},
    {"internlm2", "internlm2"},
    {"baichuan", "baichuan"},
    {"exaone", "exaone"},
    {"exaone4", "exaone4", Experts::none, Kind::plain, 4},
    {"minicpm", "minicpm"},
    {"orion", "orion"},
    {"xverse", "xverse"},
    {"chatglm", "glm"},
    {"hunyuan-dense", "hunyuan_v1_dense"},
    {"apertus", "apertus"},
    {"bitnet", "bitnet"},
    {"persimmon", "persimmon"},
    {"bloom", "bloom"},
    {"mpt", "mpt"},
    {"starcoder", "gpt_bigcode"},
    {"qwen2", "qwen2"},
    {"qwen2vl", "qwen2"},
    {"qwen2moe", "qwen2_moe", Experts::counted},
    {"qwen3", "qwen3"},
    {"qwen3moe", "qwen3_moe", Experts::counted},
    {"qwen3vl", "qwen3_vl_text"},
    {"qwen3vlmoe", "qwen3_vl_moe_text", Experts::counted},
    {"qwen3next", "qwen3_next", Experts::counted, Kind::delta},
    {"qwen35", "qwen3_5_text", Experts::none, Kind::delta},
    {"qwen35moe", "qwen3_5_moe_text", Experts::counted, Kind::delta},
    {"olmo", "olmo"},
    {"olmo2", "olmo2", Experts::none, Kind::plain, 4},  // with a window: olmo3
    {"olmoe", "olmoe", Experts::counted},
    {"gemma", "gemma"},
    {"gemma2", "gemma2", Experts::none, Kind::plain, 2, 4096},
    {"gemma3", "gemma3_text", Experts::none, Kind::plain, 6},
    {"gemma3n", "gemma3n_text", Experts::none, Kind::plain, 5},
    {"gemma4", "gemma4_text", Experts::counted, Kind::gemma4, 6},
    {"phi2", "phi"},
    {"phi3", "phi3", Experts::none, Kind::plain, 1},
    {"phimoe", "phimoe", Experts::local},
    {"command-r", "cohere"},
    {"cohere2", "cohere2", Experts::none, Kind::plain, 4},
    {"granite", "granite"},
    {"granitemoe", "granitemoe", Experts::local},
    {"granitehybrid", "granitemoehybrid", Experts::local, Kind::granite_hybrid},
    {"stablelm", "stablelm"},
    {"starcoder2", "starcoder2", Experts::none, Kind::plain, 1},
    {"falcon", "falcon", Experts::none, Kind::falcon},
    {"gpt2", "gpt2", Experts::none, Kind::gpt2},
    {"gptneox", "gpt_neox"},
    {"gpt-oss", "gpt_oss", Experts::local, Kind::plain, 2, 128},
    {"dbrx", "dbrx", Experts::local},
    {"deepseek", "deepseek", Experts::routed},
    {"deepseek2", "deepseek_v3", Experts::routed, Kind::latent},  // V2, V3, R1, Kimi K2
    {"deepseek32", "deepseek_v32", Experts::routed, Kind::latent},
    {"glm-dsa", "glm_moe_dsa", Experts::routed, Kind::latent},
    {"glm4", "glm4"},
    {"glm4moe", "glm4_moe", Experts::routed},
    {"dots1", "dots1", Experts::routed},
    {"bailingmoe", "bailing_moe", Experts::counted},
    {"bailingmoe2", "bailing_moe_v2", Experts::counted},
    {"ernie4_5", "ernie4_5"},
    {"minimax-m2", "minimax_m2", Experts::local},
    {"nemotron", "nemotron"},
    {"nemotron_h", "nemotron_h", Experts::none, Kind::nemotron},
    {"nemotron_h_moe", "nemotron_h", Experts::routed, Kind::nemotron},
    {"mamba", "mamba", Experts::none, Kind::mamba},
    {"mamba2", "mamba2", Experts::none, Kind::mamba},
    {"lfm2", "lfm2", Experts::none, Kind::lfm2},
    {"falcon-h1", "falcon_h1", Experts::none, Kind::falcon_h1},
    {"jamba", "jamba", Experts::counted, Kind::jamba},
});

}  // namespace

const GgufArchitecture* find_gguf_architecture(std::string_view name) {
    const auto found = std::find_if(architectures.begin(), architectures.end(),
                                    [&](const GgufArchitecture& candidate) { return candidate.architecture == name; });
    return found == architectures.end() ? nullptr : &*found;
}

}  // namespace roofline::io
