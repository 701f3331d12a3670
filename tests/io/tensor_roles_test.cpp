#include "roofline/io/tensor_roles.hpp"

#include <gtest/gtest.h>

namespace roofline::io {
namespace {

using model::Role;

struct Named {
    std::string_view name;
    Role role;
};

void expect_roles(std::initializer_list<Named> names) {
    for (const Named& item : names) {
        EXPECT_EQ(model::name(place_tensor(item.name).role), model::name(item.role)) << item.name;
    }
}

TEST(TensorRoles, LlamaAndQwenFromHuggingFace) {
    expect_roles({
        {"model.embed_tokens.weight", Role::embedding},
        {"model.layers.0.self_attn.q_proj.weight", Role::attention_qkv},
        {"model.layers.0.self_attn.k_proj.bias", Role::attention_qkv},
        {"model.layers.0.self_attn.v_proj.weight", Role::attention_qkv},
        {"model.layers.0.self_attn.o_proj.weight", Role::attention_out},
        {"model.layers.0.self_attn.q_norm.weight", Role::norm},
        {"model.layers.0.mlp.gate_proj.weight", Role::ffn_gate_up},
        {"model.layers.0.mlp.up_proj.weight", Role::ffn_gate_up},
        {"model.layers.0.mlp.down_proj.weight", Role::ffn_down},
        {"model.layers.0.input_layernorm.weight", Role::norm},
        {"model.layers.0.post_attention_layernorm.weight", Role::norm},
        {"model.layers.0.pre_feedforward_layernorm.weight", Role::norm},
        {"model.norm.weight", Role::norm},
        {"lm_head.weight", Role::head},
        {"model.layers.0.self_attn.rotary_emb.inv_freq", Role::other},
        {"model.layers.0.self_attn.qkv_proj.weight", Role::attention_qkv},
        {"model.layers.0.mlp.gate_up_proj.weight", Role::ffn_gate_up},
        {"model.language_model.layers.7.self_attn.q_proj.weight", Role::attention_qkv},
    });
}

TEST(TensorRoles, ExpertsFromHuggingFace) {
    expect_roles({
        {"model.layers.3.mlp.gate.weight", Role::router},
        {"model.layers.3.mlp.gate.e_score_correction_bias", Role::router},
        {"model.layers.3.mlp.experts.17.gate_proj.weight", Role::expert_gate_up},
        {"model.layers.3.mlp.experts.17.up_proj.weight", Role::expert_gate_up},
        {"model.layers.3.mlp.experts.17.down_proj.weight", Role::expert_down},
        {"model.layers.3.mlp.shared_experts.down_proj.weight", Role::shared_down},
        {"model.layers.3.mlp.shared_expert.up_proj.weight", Role::shared_gate_up},
        {"model.layers.3.mlp.shared_expert_gate.weight", Role::router},
        {"model.layers.0.block_sparse_moe.gate.weight", Role::router},
        {"model.layers.0.block_sparse_moe.experts.5.w1.weight", Role::expert_gate_up},
        {"model.layers.0.block_sparse_moe.experts.5.w2.weight", Role::expert_down},
        {"model.layers.0.block_sparse_moe.experts.5.w3.weight", Role::expert_gate_up},
        {"model.layers.0.mlp.experts.gate_up_proj_blocks", Role::expert_gate_up},
        {"model.layers.0.mlp.experts.gate_up_proj_scales", Role::expert_gate_up},
        {"model.layers.0.mlp.experts.gate_up_proj_bias", Role::expert_gate_up},
        {"model.layers.0.mlp.experts.down_proj_blocks", Role::expert_down},
        {"model.layers.0.mlp.experts.down_proj_bias", Role::expert_down},
        {"model.layers.0.mlp.router.weight", Role::router},
        {"model.layers.0.mlp.router.bias", Role::router},
        {"model.layers.0.self_attn.sinks", Role::other},
        {"language_model.model.layers.0.feed_forward.experts.gate_up_proj", Role::expert_gate_up},
        {"language_model.model.layers.0.feed_forward.shared_expert.down_proj.weight", Role::shared_down},
        {"language_model.model.layers.0.feed_forward.router.weight", Role::router},
    });
}

TEST(TensorRoles, LatentAndSparseAttentionFromHuggingFace) {
    expect_roles({
        {"model.layers.0.self_attn.q_a_proj.weight", Role::latent_q_down},
        {"model.layers.0.self_attn.q_a_layernorm.weight", Role::norm},
        {"model.layers.0.self_attn.q_b_proj.weight", Role::latent_q_up},
        {"model.layers.0.self_attn.kv_a_proj_with_mqa.weight", Role::latent_kv_down},
        {"model.layers.0.self_attn.kv_a_layernorm.weight", Role::norm},
        {"model.layers.0.self_attn.kv_b_proj.weight", Role::latent_kv_up},
        {"model.layers.0.self_attn.indexer.wq_b.weight", Role::indexer},
        {"model.layers.0.self_attn.indexer.k_norm.weight", Role::indexer},
        {"layers.0.attn.wq_a.weight", Role::latent_q_down},
        {"layers.0.attn.compressor.wkv.weight", Role::compressor},
        {"layers.0.attn.indexer.compressor.wkv.weight", Role::indexer},
        {"layers.0.ffn.shared_experts.w2.weight", Role::shared_down},
        {"layers.0.ffn.experts.3.w1.scale", Role::expert_gate_up},
        {"layers.0.hc_attn_fn", Role::other},
        {"head.weight", Role::head},
        {"embed.weight", Role::embedding},
    });
}

TEST(TensorRoles, StateSpaceAndLinearAttentionFromHuggingFace) {
    expect_roles({
        {"model.layers.0.linear_attn.in_proj_qkvz.weight", Role::mixer_in},
        {"model.layers.0.linear_attn.in_proj_ba.weight", Role::mixer_in},
        {"model.layers.0.linear_attn.in_proj_z.weight", Role::mixer_in},
        {"model.layers.0.linear_attn.conv1d.weight", Role::mixer_state},
        {"model.layers.0.linear_attn.A_log", Role::mixer_state},
        {"model.layers.0.linear_attn.dt_bias", Role::mixer_state},
        {"model.layers.0.linear_attn.norm.weight", Role::norm},
        {"model.layers.0.linear_attn.out_proj.weight", Role::mixer_out},
        {"backbone.embeddings.weight", Role::embedding},
        {"backbone.layers.0.norm.weight", Role::norm},
        {"backbone.layers.0.mixer.in_proj.weight", Role::mixer_in},
        {"backbone.layers.0.mixer.conv1d.bias", Role::mixer_state},
        {"backbone.layers.0.mixer.D", Role::mixer_state},
        {"backbone.layers.0.mixer.out_proj.weight", Role::mixer_out},
        {"backbone.layers.7.mixer.q_proj.weight", Role::attention_qkv},
        {"backbone.layers.7.mixer.o_proj.weight", Role::attention_out},
        {"backbone.layers.1.mixer.up_proj.weight", Role::ffn_gate_up},
        {"backbone.layers.1.mixer.down_proj.weight", Role::ffn_down},
        {"backbone.layers.1.mixer.gate.weight", Role::router},
        {"backbone.layers.1.mixer.experts.5.up_proj.weight", Role::expert_gate_up},
        {"backbone.layers.1.mixer.shared_experts.down_proj.weight", Role::shared_down},
        {"backbone.layers.1.mixer.fc1_latent_proj.weight", Role::moe_latent},
        {"backbone.norm_f.weight", Role::norm},
        {"model.layers.0.mamba.x_proj.weight", Role::mixer_state},
        {"model.layers.0.mamba.in_proj.weight", Role::mixer_in},
    });
}

TEST(TensorRoles, OlderModelsFromHuggingFace) {
    expect_roles({
        {"wte.weight", Role::embedding},
        {"transformer.wpe.weight", Role::position},
        {"h.0.attn.c_attn.weight", Role::attention_qkv},
        {"h.0.attn.c_proj.weight", Role::attention_out},
        {"h.0.mlp.c_fc.weight", Role::ffn_gate_up},
        {"h.0.mlp.c_proj.bias", Role::ffn_down},
        {"h.0.ln_1.weight", Role::norm},
        {"ln_f.bias", Role::norm},
        {"model.decoder.layers.2.fc1.weight", Role::ffn_gate_up},
        {"model.decoder.layers.2.fc2.weight", Role::ffn_down},
        {"model.decoder.layers.2.self_attn.out_proj.weight", Role::attention_out},
        {"model.decoder.embed_positions.weight", Role::position},
        {"transformer.h.0.self_attention.query_key_value.weight", Role::attention_qkv},
        {"transformer.h.0.self_attention.dense.weight", Role::attention_out},
        {"transformer.h.0.mlp.dense_h_to_4h.weight", Role::ffn_gate_up},
        {"transformer.h.0.mlp.dense_4h_to_h.weight", Role::ffn_down},
        {"transformer.word_embeddings.weight", Role::embedding},
        {"gpt_neox.layers.0.attention.dense.weight", Role::attention_out},
        {"embed_out.weight", Role::head},
    });
}

TEST(TensorRoles, GgufNames) {
    expect_roles({
        {"token_embd.weight", Role::embedding},
        {"position_embd.weight", Role::position},
        {"output.weight", Role::head},
        {"output_norm.weight", Role::norm},
        {"rope_freqs.weight", Role::other},
        {"blk.0.attn_norm.weight", Role::norm},
        {"blk.0.attn_q.weight", Role::attention_qkv},
        {"blk.0.attn_k.bias", Role::attention_qkv},
        {"blk.0.attn_qkv.weight", Role::attention_qkv},
        {"blk.0.attn_gate.weight", Role::attention_qkv},
        {"blk.0.attn_q_norm.weight", Role::norm},
        {"blk.0.attn_output.weight", Role::attention_out},
        {"blk.0.attn_output_norm.weight", Role::norm},
        {"blk.0.attn_sinks.weight", Role::other},
        {"blk.0.attn_q_a.weight", Role::latent_q_down},
        {"blk.0.attn_q_a_norm.weight", Role::norm},
        {"blk.0.attn_q_b.weight", Role::latent_q_up},
        {"blk.0.attn_kv_a_mqa.weight", Role::latent_kv_down},
        {"blk.0.attn_kv_b.weight", Role::latent_kv_up},
        {"blk.0.attn_k_b.weight", Role::latent_kv_up},
        {"blk.0.attn_v_b.weight", Role::latent_kv_up},
        {"blk.0.indexer.attn_k.weight", Role::indexer},
        {"blk.0.indexer.proj.weight", Role::indexer},
        {"blk.0.ffn_gate.weight", Role::ffn_gate_up},
        {"blk.0.ffn_up.weight", Role::ffn_gate_up},
        {"blk.0.ffn_down.weight", Role::ffn_down},
        {"blk.0.ffn_gate_inp.weight", Role::router},
        {"blk.0.ffn_gate_inp_shexp.weight", Role::router},
        {"blk.0.exp_probs_b.bias", Role::router},
        {"blk.0.ffn_gate_exps.weight", Role::expert_gate_up},
        {"blk.0.ffn_gate_up_exps.weight", Role::expert_gate_up},
        {"blk.0.ffn_down_exps.weight", Role::expert_down},
        {"blk.0.ffn_up.3.weight", Role::expert_gate_up},
        {"blk.0.ffn_down.3.weight", Role::expert_down},
        {"blk.0.ffn_up_shexp.weight", Role::shared_gate_up},
        {"blk.0.ffn_down_shexp.weight", Role::shared_down},
        {"blk.0.ffn_latent_down.weight", Role::moe_latent},
        {"blk.0.ssm_in.weight", Role::mixer_in},
        {"blk.0.ssm_alpha.weight", Role::mixer_in},
        {"blk.0.ssm_conv1d.bias", Role::mixer_state},
        {"blk.0.ssm_a", Role::mixer_state},
        {"blk.0.ssm_d", Role::mixer_state},
        {"blk.0.ssm_dt.bias", Role::mixer_state},
        {"blk.0.ssm_norm.weight", Role::norm},
        {"blk.0.ssm_out.weight", Role::mixer_out},
    });
}

TEST(TensorRoles, SideTensorsGoWithTheirMatrix) {
    for (std::string_view suffix :
         {"weight", "bias", "weight_scale", "weight_scale_inv", "weight_scale_2", "input_scale", "qweight", "qzeros",
          "scales", "g_idx", "weight_packed", "weight_shape", "weight_global_scale", "weight.absmax",
          "weight.quant_state.bitsandbytes__nf4", "k_scale"}) {
        std::string name = "model.layers.11.mlp.experts.3.down_proj." + std::string(suffix);
        EXPECT_EQ(place_tensor(name).role, Role::expert_down) << name;
        EXPECT_EQ(place_tensor(name).layer, 11) << name;
    }
}

TEST(TensorRoles, LayersAreTheNumberBehindTheLayerWord) {
    EXPECT_EQ(place_tensor("model.layers.61.mlp.experts.5.up_proj.weight").layer, 61);
    EXPECT_EQ(place_tensor("h.3.ln_1.weight").layer, 3);
    EXPECT_EQ(place_tensor("blk.7.attn_q.weight").layer, 7);
    EXPECT_FALSE(place_tensor("lm_head.weight").layer);
    EXPECT_FALSE(place_tensor("blk.99999999999999999999.attn_q.weight").layer);
}

TEST(TensorRoles, VisionAndMultiTokenPredictionAreMarked) {
    for (std::string_view name :
         {"vision_tower.encoder.layers.0.self_attn.q_proj.weight", "model.visual.blocks.0.attn.qkv.weight",
          "multi_modal_projector.linear_1.weight", "v.blk.0.attn_q.weight", "mm.0.weight"}) {
        EXPECT_TRUE(place_tensor(name).vision) << name;
        EXPECT_EQ(place_tensor(name).role, Role::other) << name;
    }
    EXPECT_FALSE(place_tensor("model.layers.0.self_attn.q_proj.weight").vision);
    EXPECT_TRUE(place_tensor("mtp.layers.0.self_attn.q_proj.weight").mtp);
    EXPECT_EQ(place_tensor("mtp.layers.0.self_attn.q_proj.weight").role, Role::attention_qkv);
    EXPECT_TRUE(place_tensor("blk.46.nextn.eh_proj.weight").mtp);
    EXPECT_EQ(place_tensor("blk.46.nextn.shared_head_head.weight").role, Role::head);
    EXPECT_EQ(place_tensor("blk.46.nextn.embed_tokens.weight").role, Role::embedding);
    EXPECT_EQ(place_tensor("blk.46.nextn.enorm.weight").role, Role::norm);
    EXPECT_EQ(place_tensor("model.layers.61.shared_head.head.weight").role, Role::head);
}

TEST(TensorRoles, OddNamesAreOther) {
    for (std::string_view name : {"", ".", "...", ".weight", "weight", "0", "0.1.2", "blk.", "blk.0", "layers.5.",
                                  "a..b", "model.layers.0.something_new.weight"}) {
        EXPECT_EQ(place_tensor(name).role, Role::other) << name;
    }
}

TEST(TensorRoles, CompanyTellsMtpLayersAndLinearAttention) {
    std::vector<StoredTensor> tensors;
    for (const char* name :
         {"blk.0.attn_qkv.weight", "blk.0.attn_gate.weight", "blk.0.ssm_out.weight", "blk.1.attn_qkv.weight",
          "blk.2.attn_q.weight", "blk.2.nextn.eh_proj.weight", "mtp.layers.0.self_attn.q_proj.weight"}) {
        tensors.push_back({name, "F32", {1}, 1, 4});
    }
    auto places = place_tensors(tensors);
    EXPECT_EQ(places[0].role, Role::mixer_in);
    EXPECT_EQ(places[1].role, Role::mixer_in);
    EXPECT_EQ(places[3].role, Role::attention_qkv);
    EXPECT_FALSE(places[0].mtp);
    EXPECT_TRUE(places[4].mtp);
    EXPECT_TRUE(places[6].mtp);
}

}  // namespace
}  // namespace roofline::io
