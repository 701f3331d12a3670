#include "roofline/io/gguf_config.hpp"

#include <random>

#include <gtest/gtest.h>

#include "gguf_writer.hpp"

namespace roofline::io {
namespace {

using nlohmann::json;
using testing::GgufWriter;
using testing::tiny_llama;

struct Converted {
    json config;
    std::string problem;
    std::vector<std::string> notes;

    json at(const char* key) const { return config.contains(key) ? config[key] : json("absent"); }
};

Converted convert(const GgufWriter& writer) {
    Converted result;
    auto gguf = read_gguf(writer.header(), writer.file_size(), "x.gguf");
    if (!gguf) {
        result.problem = testing::problem_of(gguf);
        return result;
    }
    auto config = config_from_gguf(*gguf, "x.gguf", result.notes);
    if (config) {
        result.config = *config;
    } else {
        result.problem = config.error().text;
    }
    return result;
}

// The keys that every architecture with attention has; vocabulary 1000.
GgufWriter base(const std::string& arch, std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads,
                std::uint32_t width) {
    GgufWriter writer;
    writer.text("general.architecture", arch)
        .u32(arch + ".block_count", layers)
        .u32(arch + ".embedding_length", hidden)
        .u32(arch + ".attention.head_count", heads)
        .tensor("token_embd.weight", 1, {hidden, 1000});
    if (width > 0) {
        writer.u32(arch + ".feed_forward_length", width);
    }
    return writer;
}

TEST(GgufConfig, TinyLlama) {
    auto got = convert(tiny_llama());
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("model_type"), "llama");
    EXPECT_EQ(got.at("num_hidden_layers"), 2);
    EXPECT_EQ(got.at("hidden_size"), 256);
    EXPECT_EQ(got.at("intermediate_size"), 512);
    EXPECT_EQ(got.at("num_attention_heads"), 4);
    EXPECT_EQ(got.at("num_key_value_heads"), 2);
    EXPECT_EQ(got.at("head_dim"), 64);
    EXPECT_EQ(got.at("vocab_size"), 320);  // the rows of the table, not the three tokens listed
    EXPECT_EQ(got.at("tie_word_embeddings"), false);
    EXPECT_EQ(got.at("attention_bias"), false);
    EXPECT_EQ(got.at("gated_mlp"), true);
    EXPECT_TRUE(got.notes.empty());
}

TEST(GgufConfig, TensorsTellBiasesNormsAndTying) {
    auto writer = base("qwen3", 1, 256, 4, 512);
    writer.tensor("blk.0.attn_q.bias", 0, {256}).tensor("blk.0.attn_q_norm.weight", 0, {64});
    auto got = convert(writer);
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("attention_bias"), true);
    EXPECT_EQ(got.at("attention_out_bias"), false);
    EXPECT_EQ(got.at("use_qk_norm"), true);
    EXPECT_EQ(got.at("qk_norm_type"), "per_head");
    EXPECT_EQ(got.at("tie_word_embeddings"), true);
    EXPECT_EQ(got.at("num_key_value_heads"), 4);
}

TEST(GgufConfig, LlamaWithExpertsIsMixtral) {
    auto writer = base("llama", 2, 256, 4, 512);
    writer.u32("llama.expert_count", 8).u32("llama.expert_used_count", 2);
    auto got = convert(writer);
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("model_type"), "mixtral");
    EXPECT_EQ(got.at("num_local_experts"), 8);
    EXPECT_EQ(got.at("num_experts_per_tok"), 2);
    EXPECT_EQ(got.at("intermediate_size"), 512);
}

TEST(GgufConfig, QwenCountsItsExpertsInItsOwnWords) {
    auto writer = base("qwen3moe", 2, 2048, 32, 6144);
    writer.u32("qwen3moe.attention.head_count_kv", 4)
        .u32("qwen3moe.attention.key_length", 128)
        .u32("qwen3moe.attention.value_length", 128)
        .u32("qwen3moe.expert_count", 128)
        .u32("qwen3moe.expert_used_count", 8)
        .u32("qwen3moe.expert_feed_forward_length", 768);
    auto got = convert(writer);
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("model_type"), "qwen3_moe");
    EXPECT_EQ(got.at("num_experts"), 128);
    EXPECT_EQ(got.at("moe_intermediate_size"), 768);
    EXPECT_EQ(got.at("intermediate_size"), 6144);
    EXPECT_EQ(got.at("head_dim"), 128);  // not 2048 / 32
    EXPECT_EQ(got.at("mlp_only_layers"), json::array());
}

TEST(GgufConfig, DeepSeekHeadsFromTheLatentKeys) {
    auto writer = base("deepseek2", 5, 7168, 128, 18432);
    writer.u32("deepseek2.attention.head_count_kv", 1)
        .u32("deepseek2.attention.key_length", 576)
        .u32("deepseek2.attention.value_length", 512)
        .u32("deepseek2.attention.key_length_mla", 192)
        .u32("deepseek2.attention.value_length_mla", 128)
        .u32("deepseek2.attention.q_lora_rank", 1536)
        .u32("deepseek2.attention.kv_lora_rank", 512)
        .u32("deepseek2.rope.dimension_count", 64)
        .u32("deepseek2.expert_count", 256)
        .u32("deepseek2.expert_used_count", 8)
        .u32("deepseek2.expert_shared_count", 1)
        .u32("deepseek2.expert_feed_forward_length", 2048)
        .u32("deepseek2.leading_dense_block_count", 3)
        .u32("deepseek2.nextn_predict_layers", 1)
        .tensor("blk.3.exp_probs_b.bias", 0, {256});
    auto got = convert(writer);
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("model_type"), "deepseek_v3");
    EXPECT_EQ(got.at("num_hidden_layers"), 4);  // the fifth block is the MTP one
    EXPECT_EQ(got.at("num_nextn_predict_layers"), 1);
    EXPECT_EQ(got.at("qk_nope_head_dim"), 128);  // 192 - 64
    EXPECT_EQ(got.at("qk_rope_head_dim"), 64);
    EXPECT_EQ(got.at("v_head_dim"), 128);
    EXPECT_EQ(got.at("kv_lora_rank"), 512);
    EXPECT_EQ(got.at("q_lora_rank"), 1536);
    EXPECT_EQ(got.at("num_key_value_heads"), 128);
    EXPECT_EQ(got.at("n_routed_experts"), 256);
    EXPECT_EQ(got.at("n_shared_experts"), 1);
    EXPECT_EQ(got.at("first_k_dense_replace"), 3);
}

TEST(GgufConfig, WindowsBecomeLayerTypes) {
    auto gemma = base("gemma3", 7, 256, 4, 512);
    gemma.u32("gemma3.attention.sliding_window", 1024);
    auto got = convert(gemma);
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("sliding_window"), 1024);
    ASSERT_EQ(got.at("layer_types").size(), 7U);
    for (std::size_t i = 0; i < 7; ++i) {
        EXPECT_EQ(got.at("layer_types")[i], i == 5 ? "full_attention" : "sliding_attention");
    }

    got = convert(base("gemma2", 2, 256, 4, 512));
    EXPECT_EQ(got.at("sliding_window"), 4096);
    EXPECT_EQ(got.at("layer_types"), json::array({"sliding_attention", "full_attention"}));

    auto listed = base("gpt-oss", 2, 256, 4, 512);
    listed.u32("gpt-oss.attention.sliding_window", 128)
        .flags("gpt-oss.attention.sliding_window_pattern", {false, true})
        .u32("gpt-oss.expert_count", 32)
        .u32("gpt-oss.expert_used_count", 4)
        .u32("gpt-oss.expert_feed_forward_length", 2880);
    got = convert(listed);
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("model_type"), "gpt_oss");
    EXPECT_EQ(got.at("layer_types"), json::array({"full_attention", "sliding_attention"}));
    EXPECT_EQ(got.at("num_local_experts"), 32);
    EXPECT_EQ(got.at("intermediate_size"), 2880);
}

TEST(GgufConfig, LinearAttentionOfQwen) {
    auto writer = base("qwen35moe", 9, 3072, 32, 0);
    writer.u32("qwen35moe.attention.head_count_kv", 2)
        .u32("qwen35moe.attention.key_length", 256)
        .u32("qwen35moe.nextn_predict_layers", 1)
        .u32("qwen35moe.full_attention_interval", 4)
        .u32("qwen35moe.ssm.conv_kernel", 4)
        .u32("qwen35moe.ssm.state_size", 128)
        .u32("qwen35moe.ssm.group_count", 16)
        .u32("qwen35moe.ssm.time_step_rank", 64)
        .u32("qwen35moe.ssm.inner_size", 8192)
        .u32("qwen35moe.expert_count", 256)
        .u32("qwen35moe.expert_used_count", 8)
        .u32("qwen35moe.expert_feed_forward_length", 1024)
        .u32("qwen35moe.expert_shared_feed_forward_length", 1024);
    auto got = convert(writer);
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("model_type"), "qwen3_5_moe_text");
    EXPECT_EQ(got.at("num_hidden_layers"), 8);
    EXPECT_EQ(got.at("mtp_num_hidden_layers"), 1);
    EXPECT_EQ(got.at("linear_num_key_heads"), 16);
    EXPECT_EQ(got.at("linear_num_value_heads"), 64);
    EXPECT_EQ(got.at("linear_key_head_dim"), 128);
    EXPECT_EQ(got.at("linear_value_head_dim"), 128);  // 8192 / 64
    EXPECT_EQ(got.at("shared_expert_intermediate_size"), 1024);
    EXPECT_EQ(got.at("layer_types")[2], "linear_attention");
    EXPECT_EQ(got.at("layer_types")[3], "full_attention");
}

TEST(GgufConfig, NemotronLayersFromTheirArrays) {
    auto writer = base("nemotron_h", 4, 256, 4, 0);
    writer.u32s("nemotron_h.attention.head_count_kv", {0, 0, 2, 0})
        .u32s("nemotron_h.feed_forward_length", {0, 1024, 0, 0})
        .u32("nemotron_h.attention.key_length", 128)
        .u32("nemotron_h.ssm.conv_kernel", 4)
        .u32("nemotron_h.ssm.state_size", 128)
        .u32("nemotron_h.ssm.group_count", 8)
        .u32("nemotron_h.ssm.time_step_rank", 8)
        .u32("nemotron_h.ssm.inner_size", 512);
    auto got = convert(writer);
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("hybrid_override_pattern"), "M-*M");
    EXPECT_EQ(got.at("num_key_value_heads"), 2);
    EXPECT_EQ(got.at("intermediate_size"), 1024);
    EXPECT_EQ(got.at("mamba_num_heads"), 8);
    EXPECT_EQ(got.at("mamba_head_dim"), 64);
    EXPECT_EQ(got.at("head_dim"), 128);
}

TEST(GgufConfig, MambaHasNoHeads) {
    GgufWriter writer;
    writer.text("general.architecture", "mamba2")
        .u32("mamba2.block_count", 2)
        .u32("mamba2.embedding_length", 256)
        .u32("mamba2.attention.head_count", 0)
        .u32("mamba2.ssm.conv_kernel", 4)
        .u32("mamba2.ssm.state_size", 128)
        .u32("mamba2.ssm.group_count", 1)
        .u32("mamba2.ssm.time_step_rank", 8)
        .u32("mamba2.ssm.inner_size", 512)
        .tensor("token_embd.weight", 1, {256, 1000});
    auto got = convert(writer);
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("num_heads"), 8);
    EXPECT_EQ(got.at("head_dim"), 64);
    EXPECT_EQ(got.at("state_size"), 128);
}

TEST(GgufConfig, Lfm2LayersWithoutKvHeadsAreConvolutions) {
    auto writer = base("lfm2", 3, 256, 4, 512);
    writer.u32s("lfm2.attention.head_count_kv", {0, 2, 0}).u32("lfm2.shortconv.l_cache", 3);
    auto got = convert(writer);
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("layer_types"), (json{"conv", "full_attention", "conv"}));
    EXPECT_EQ(got.at("num_key_value_heads"), 2);
    EXPECT_EQ(got.at("conv_L_cache"), 3);
    EXPECT_EQ(got.at("intermediate_size"), 512);
    EXPECT_EQ(got.at("block_auto_adjust_ff_dim"), false);
}

TEST(GgufConfig, FalconH1HasAStateSpaceBesideItsHeads) {
    auto writer = base("falcon-h1", 1, 256, 4, 512);
    writer.u32("falcon-h1.attention.head_count_kv", 2)
        .u32("falcon-h1.ssm.conv_kernel", 4)
        .u32("falcon-h1.ssm.state_size", 128)
        .u32("falcon-h1.ssm.group_count", 1)
        .u32("falcon-h1.ssm.time_step_rank", 8)
        .u32("falcon-h1.ssm.inner_size", 512);
    auto got = convert(writer);
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("model_type"), "falcon_h1");
    EXPECT_EQ(got.at("mamba_d_ssm"), 512);
    EXPECT_EQ(got.at("mamba_n_heads"), 8);
    EXPECT_EQ(got.at("mamba_d_head"), 64);
    EXPECT_EQ(got.at("mamba_rms_norm"), false);  // no such tensor in the file
}

TEST(GgufConfig, ATypeKnownByItsConfigAloneIsRefused) {
    EXPECT_EQ(convert(base("gptj", 1, 256, 4, 512)).problem,
              "x.gguf: general.architecture is \"gptj\", which is known here by its config.json only");
}

TEST(GgufConfig, JambaLayersByPeriod) {
    auto writer = base("jamba", 8, 256, 4, 512);
    writer.u32s("jamba.attention.head_count_kv", {0, 0, 2, 0, 0, 0, 2, 0})
        .u32("jamba.ssm.conv_kernel", 4)
        .u32("jamba.ssm.state_size", 16)
        .u32("jamba.ssm.time_step_rank", 16)
        .u32("jamba.ssm.inner_size", 512)
        .u32("jamba.expert_count", 16)
        .u32("jamba.expert_used_count", 2);
    for (int i = 1; i < 8; i += 2) {
        writer.tensor("blk." + std::to_string(i) + ".ffn_gate_inp.weight", 0, {256, 16});
    }
    auto got = convert(writer);
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("attn_layer_period"), 4);
    EXPECT_EQ(got.at("attn_layer_offset"), 2);
    EXPECT_EQ(got.at("expert_layer_period"), 2);
    EXPECT_EQ(got.at("expert_layer_offset"), 1);
    EXPECT_EQ(got.at("mamba_expand"), 2.0);
    EXPECT_TRUE(got.notes.empty());
}

TEST(GgufConfig, UnknownArchitecturesAreReadAsLlamaWithANote) {
    auto got = convert(base("newcomer", 2, 256, 4, 512));
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("model_type"), "newcomer");
    EXPECT_EQ(got.at("intermediate_size"), 512);
    ASSERT_EQ(got.notes.size(), 1U);
    EXPECT_EQ(got.notes[0], "x.gguf: the architecture \"newcomer\" is not known here; read as if it were a Llama");
}

TEST(GgufConfig, WithoutTensorsNothingIsSaidAboutThem) {
    GgufWriter writer;
    writer.text("general.architecture", "llama")
        .u32("llama.block_count", 2)
        .u32("llama.embedding_length", 256)
        .u32("llama.feed_forward_length", 512)
        .u32("llama.attention.head_count", 4)
        .texts("tokenizer.ggml.tokens", {"a", "b", "c"});
    auto got = convert(writer);
    ASSERT_EQ(got.problem, "");
    EXPECT_EQ(got.at("vocab_size"), 3);
    EXPECT_EQ(got.at("gated_mlp"), "absent");
    EXPECT_EQ(got.at("tie_word_embeddings"), "absent");
    EXPECT_EQ(got.notes.size(), 1U);
}

TEST(GgufConfig, MissingKeysAreNamed) {
    GgufWriter none;
    EXPECT_EQ(convert(none).problem, "x.gguf: general.architecture is missing: not a model");
    GgufWriter bare;
    bare.text("general.architecture", "llama");
    EXPECT_EQ(convert(bare).problem, "x.gguf: llama.block_count is missing, expected a number of at least 1");
    EXPECT_EQ(convert(base("llama", 2, 256, 4, 0)).problem,
              "x.gguf: llama.feed_forward_length is missing or 0, expected a number of at least 1");
    EXPECT_EQ(convert(base("deepseek2", 2, 256, 4, 512)).problem,
              "x.gguf: deepseek2.attention.kv_lora_rank is missing, expected a number of at least 1");
    EXPECT_EQ(convert(base("llama", 2, 256, 0, 512)).problem,
              "x.gguf: llama.attention.head_count is missing or 0, expected a number of at least 1");
}

TEST(GgufConfig, HostileNumbersAreRefused) {
    EXPECT_EQ(convert(base("llama", 0xffffffff, 256, 4, 512)).problem,
              "x.gguf: llama.block_count is 4294967295, expected at most 4096");
    auto short_list = base("jamba", 4, 256, 4, 512);
    short_list.u32s("jamba.attention.head_count_kv", {0, 1});
    EXPECT_EQ(convert(short_list).problem,
              "x.gguf: jamba.attention.head_count_kv has 2 elements, expected one for each of 4 layers");
    GgufWriter name;
    name.text("general.architecture", "lla\xff\x01");
    EXPECT_EQ(convert(name).problem, "x.gguf: general.architecture is \"lla\?\?\", expected a name such as \"llama\"");
}

TEST(GgufConfig, FlippedBytesNeverCrashAndAlwaysPrint) {
    const auto sound = tiny_llama().header();
    const auto size = tiny_llama().file_size();
    std::mt19937 random(99);
    for (int i = 0; i < 5000; ++i) {
        auto bytes = sound;
        bytes[random() % 700] = static_cast<std::byte>(random() & 0xff);
        auto gguf = read_gguf(bytes, size, "x.gguf");
        if (!gguf) {
            continue;
        }
        std::vector<std::string> notes;
        if (auto config = config_from_gguf(*gguf, "x.gguf", notes)) {
            EXPECT_FALSE(config->dump().empty());  // would abort on text that is not UTF-8
        }
    }
}

}  // namespace
}  // namespace roofline::io
