// ChatGLM 2 and 3, GLM-4 as first published: a Llama under names of its own.
#include "roofline/io/family.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    if (!config.has("multi_query_attention"))
        config.complain("multi_query_attention",
                        "is missing: the first ChatGLM is another model and is not known here");
    architecture.hidden = config.size("hidden_size");
    architecture.vocabulary = config.size_of_any({"padded_vocab_size", "vocab_size"});
    architecture.tied = config.flag("tie_word_embeddings", false);
    architecture.longest_context = config.size_or("seq_length", 0.0);
    model::GqaShape shape;
    shape.heads = config.size("num_attention_heads");
    shape.kv_heads = config.flag("multi_query_attention", false) ? config.size("multi_query_group_num") : shape.heads;
    shape.head_dim = config.size_or("kv_channels", architecture.hidden / shape.heads);
    check_heads(config, shape);
    const bool bias = config.flag("add_bias_linear", false);
    shape.qkv_bias = bias || config.flag("add_qkv_bias", false);
    shape.out_bias = bias;
    const model::DenseShape ffn{.width = config.size("ffn_hidden_size"), .bias = bias};
    const std::size_t layers = read_layer_count(config, "num_layers");
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        add_layer(architecture, "full",
                  [&] { return pre_norm_layer(block<model::Gqa>(shape), block<model::Dense>(ffn)); });
    }
}

}  // namespace

extern const Family chatglm_family;
const Family chatglm_family{{"chatglm"}, read};

}  // namespace roofline::io
