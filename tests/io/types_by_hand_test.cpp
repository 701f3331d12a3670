// Blocks of model types that are no Llama, each counted by hand: parameters, flops and bytes of a decode step.
#include <gtest/gtest.h>

#include "roofline/io/hf_config.hpp"
#include "roofline/model/lowering.hpp"

namespace roofline::model {
namespace {

struct Counted {
    Lowered lowered;
    FeatureValues values{};
    double flops = 0.0;  // of products and attention
    double weights = 0.0;
    double cache = 0.0;

    Counted(const io::Json& config, double batch, double context) {
        const auto model = io::read_hf_config(config, "config.json");
        EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().text);
        if (!model) return;
        lowered = lower(model->architecture, model->types);
        const Step step = decode_step(batch, context);
        for (std::size_t i = 0; i < lowered.features.size(); ++i) values[i] = evaluate(lowered.features[i], step);
        for (const Operator& op : lowered.operators) {
            if (op.engine == Engine::matrix) flops += op.count * op.flops(values);
            weights += op.count * op.weight_bytes(values);
            cache += op.count * op.cache_bytes(values);
        }
    }
};

TEST(Nemotron, HasNoGateAndNormsWithBiases) {
    // 2 layers of width 64: 4 heads of 16 with 2 KV heads, a squared ReLU between 64 x 256 and 256 x 64, untied, 100
    // words.
    const io::Json config = {{"model_type", "nemotron"},  {"hidden_size", 64},        {"num_hidden_layers", 2},
                             {"num_attention_heads", 4},  {"num_key_value_heads", 2}, {"head_dim", 16},
                             {"intermediate_size", 256},  {"vocab_size", 100},        {"tie_word_embeddings", false},
                             {"torch_dtype", "bfloat16"}, {"hidden_act", "relu2"}};
    const double products = 2.0 * (64.0 * 128.0 + 64.0 * 64.0 + 2.0 * 64.0 * 256.0) + 64.0 * 100.0;
    const double norms = 5.0 * 2.0 * 64.0;
    const Counted counted(config, 3.0, 50.0);
    EXPECT_EQ(count_parameters(counted.lowered).total, products + norms + 64.0 * 100.0);
    // Each of 3 tokens multiplies with every weight, and 4 heads with 50 keys and values of 16 in each of two layers.
    EXPECT_EQ(counted.flops, 2.0 * 3.0 * products + 2.0 * (3.0 * 50.0 * 2.0 * 4.0 * 32.0));
    // All but the table streams once; of the table 3 rows (less what three random words have in common).
    EXPECT_NEAR(counted.weights, 2.0 * (products + norms) + 3.0 * 128.0, 2.0 * 128.0);
    // 50 entries of 2 x 2 heads x 16 x 2 bytes are read, one is written.
    EXPECT_EQ(counted.cache, 2.0 * 3.0 * 51.0 * 128.0);
}

TEST(Lfm2, AConvolutionKeepsTwoInputsHoweverLongTheContext) {
    // Layer 0 a convolution of width 3 over 64 channels, layer 1 attention of 4 heads, 2 KV heads; FFN of 192 after the
    // rule (two thirds of 256, up to a multiple of 64); tied.
    const io::Json config = {{"model_type", "lfm2"},
                             {"hidden_size", 64},
                             {"num_hidden_layers", 2},
                             {"num_attention_heads", 4},
                             {"num_key_value_heads", 2},
                             {"intermediate_size", 256},
                             {"block_multiple_of", 64},
                             {"conv_L_cache", 3},
                             {"vocab_size", 100},
                             {"torch_dtype", "bfloat16"},
                             {"layer_types", {"conv", "full_attention"}}};
    const double convolution = 64.0 * 192.0 + 64.0 * 64.0;
    const double attention = 64.0 * 128.0 + 64.0 * 64.0;
    const double ffn = 3.0 * 64.0 * 192.0;
    const double head = 64.0 * 100.0;
    const double small = 64.0 * 3.0 + 2.0 * 16.0 + 5.0 * 64.0;  // the convolution, norms of q and k, five norms
    const Counted near(config, 1.0, 10.0);
    const Counted far(config, 1.0, 1000.0);
    EXPECT_EQ(count_parameters(near.lowered).total, convolution + attention + 2.0 * ffn + head + small);
    EXPECT_EQ(near.flops, 2.0 * (convolution + attention + 2.0 * ffn + head) + 2.0 * 10.0 * 4.0 * 32.0);
    // Two inputs of 64 channels are read and written, whatever the context; the other layer reads it.
    EXPECT_EQ(near.cache, 2.0 * 2.0 * 64.0 * 2.0 + 11.0 * 128.0);
    EXPECT_EQ(far.cache, 2.0 * 2.0 * 64.0 * 2.0 + 1001.0 * 128.0);
}

TEST(FalconH1, AttentionAndAStateSpaceReadTheSameInput) {
    // One layer: attention of 4 heads (2 KV) beside 8 states of 16 x 32 in one group; FFN of 128; untied.
    const io::Json config = {
        {"model_type", "falcon_h1"}, {"hidden_size", 64},  {"num_hidden_layers", 1},       {"num_attention_heads", 4},
        {"num_key_value_heads", 2},  {"head_dim", 16},     {"intermediate_size", 128},     {"mamba_d_ssm", 128},
        {"mamba_n_heads", 8},        {"mamba_d_head", 16}, {"mamba_d_state", 32},          {"mamba_n_groups", 1},
        {"mamba_d_conv", 4},         {"vocab_size", 100},  {"tie_word_embeddings", false}, {"torch_dtype", "bfloat16"}};
    const double attention = 64.0 * 128.0 + 64.0 * 64.0;
    const double in = 64.0 * (128.0 + 128.0 + 2.0 * 32.0 + 8.0);  // gate, x, B and C, steps
    const double out = 128.0 * 64.0;
    const double state = 192.0 * 5.0 + 3.0 * 8.0 + 128.0;  // convolution with bias; A, D, step biases; the gated norm
    const double ffn = 3.0 * 64.0 * 128.0;
    const Counted counted(config, 1.0, 10.0);
    EXPECT_EQ(count_parameters(counted.lowered).total,
              attention + in + out + state + ffn + 2.0 * 64.0 * 100.0 + 3.0 * 64.0);
    // 11 entries of 128 bytes; the state of 8 x 16 x 32 in fp32 and three inputs of 192 channels read and written.
    EXPECT_EQ(counted.cache, 11.0 * 128.0 + 2.0 * 4096.0 * 4.0 + 2.0 * 3.0 * 192.0 * 2.0);
}

}  // namespace
}  // namespace roofline::model
