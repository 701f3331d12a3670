// DeepSeek V2 to V3.2, R1, Kimi K2, GLM-5: latent attention (with an indexer from V3.2 on) and many small experts after
// a few dense layers.
#include <cmath>

#include "roofline/io/family.hpp"
#include "roofline/model/attention/mla.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

/// GLM-5.2 lets most layers reuse the choice of an earlier one: indexer_types says which, or a frequency does.
std::vector<bool> layers_with_indexer(Fields& config, std::size_t layers) {
    const auto types = config.texts("indexer_types");
    const double frequency = config.size_or("index_topk_freq", 1.0);
    const double offset = config.count_or("index_skip_topk_offset", 1.0);
    std::vector<bool> own(layers, true);
    for (std::size_t i = 0; i < layers; ++i) {
        if (types.size() == layers) {
            own[i] = types[i] != "shared";
        } else {
            own[i] = std::fmod(std::fmax(static_cast<double>(i) - offset + 1.0, 0.0), frequency) == 0.0;
        }
    }
    return own;
}

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture);
    model::MlaShape shape;
    shape.heads = config.size("num_attention_heads");
    shape.query_rank = config.has("q_lora_rank") ? config.size("q_lora_rank") : 0.0;
    shape.kv_rank = config.size("kv_lora_rank");
    shape.nope_dim = config.size("qk_nope_head_dim");
    shape.rope_dim = config.size("qk_rope_head_dim");
    shape.value_dim = config.size("v_head_dim");
    shape.bias = config.flag("attention_bias", false);

    const bool sparse = config.has("index_topk");
    if (sparse) {
        shape.chosen = config.size("index_topk");
        const double dim = config.size("index_head_dim");
        shape.indexer = model::Indexer{.heads = config.size("index_n_heads"),
                                       .dim = dim,
                                       .query_inner = shape.query_rank,
                                       .key_bytes = dim + 4.0,  // 8-bit with one scale, whatever the KV cache is
                                       .norm_parameters = 2.0 * dim,
                                       .scored = model::Reach::full()};
    }
    model::MoeShape moe;
    const bool has_experts = config.has("n_routed_experts") || config.has("num_experts");
    if (has_experts) {
        moe = read_moe(config);
        moe.shared_width = config.count_or("n_shared_experts", 0.0) * moe.width;
        const bool corrected =
            config.text_or("topk_method", "") == "noaux_tc" || config.text_or("scoring_func", "softmax") == "sigmoid";
        if (corrected) moe.router_parameters = moe.experts;
    }
    const std::size_t layers = read_layer_count(config);
    const double first_dense = config.count_or("first_k_dense_replace", 0.0);
    const double every = config.has("moe_layer_freq") ? config.size("moe_layer_freq") : 1.0;
    const auto own_indexer = layers_with_indexer(config, layers);
    const auto sparse_layers = read_sparse_layers(config, layers);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool experts = has_experts && (sparse_layers.empty() ? static_cast<double>(i) >= first_dense &&
                                                                         std::fmod(static_cast<double>(i), every) == 0.0
                                                                   : sparse_layers[i]);
        const bool reuses = sparse && !own_indexer[i];
        add_layer(architecture, std::string(experts ? "moe" : "dense") + (reuses ? ",reused" : ""), [&] {
            model::MlaShape own = shape;
            if (reuses) own.indexer.reset();
            return pre_norm_layer(
                block<model::Mla>(own),
                experts ? block<model::Moe>(moe)
                        : block<model::Dense>(model::DenseShape{.width = config.size("intermediate_size")}));
        });
    }
}

}  // namespace

extern const Family deepseek_family;
const Family deepseek_family{{"deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa", "glm4_moe_lite",
                              "minicpm3", "youtu", "axk1", "mistral4"},
                             read};

}  // namespace roofline::io
