#include "roofline/bench/shape.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "bench/scenarios.hpp"

namespace roofline::bench {
namespace {

using testing::scenario;

Result<LlamaShape> llama(const predict::Scenario& asked) {
    return llama_shape(asked, "random weights can only be written for");
}

double cells(const ProductShape& product) {
    return static_cast<double>(product.n) * static_cast<double>(product.k) +
           (product.bias ? static_cast<double>(product.n) : 0.0);
}

TEST(LlamaShape, IsFoundForLlamaAndItsRelatives) {
    const auto shape = llama(scenario("llama-3.1-8b"));
    ASSERT_TRUE(shape) << shape.error().text;
    EXPECT_EQ(shape->layers, 32);
    EXPECT_EQ(shape->ffn_width, 14336);
    EXPECT_EQ(shape->vocabulary, 128256);
    EXPECT_FALSE(shape->qk_norm);
    const auto normed = llama(scenario("qwen3-8b"));
    ASSERT_TRUE(normed) << normed.error().text;
    EXPECT_TRUE(normed->qk_norm);
}

TEST(LlamaShape, OthersAreRefusedInOneLineThatNamesWhatTheyHave) {
    for (const auto& [model, has] : {std::pair{"llama-4-maverick", "mixes kinds of layers"},
                                     {"mixtral-8x7b", "has experts"},
                                     {"gpt2", "has no rotary embedding"},
                                     {"olmo-2-7b", "has norms over all heads"},
                                     {"command-r-35b", "has attention and FFN side by side"},
                                     {"mamba2-2.7b", "has layers with a state"}}) {
        const auto shape = llama(scenario(model));
        ASSERT_FALSE(shape) << model;
        EXPECT_EQ(
            shape.error().text,
            std::string(model) + ": random weights can only be written for a Llama-like model, and this one " + has);
    }
}

TEST(StackShape, HasEveryParameterOfTheModelsProducts) {
    int found = 0;
    for (const std::string& model : io::builtin_model_names()) {
        const auto asked = scenario(model, "bf16");
        const auto stack = stack_shape(asked);
        if (!stack) continue;
        ++found;
        double products = cells(stack->head);
        for (const LayerShape& layer : stack->kinds) {
            const AttentionShape& attention = layer.attention;
            const FfnShape& ffn = layer.ffn;
            double one = std::max<double>(1.0, static_cast<double>(ffn.experts)) * (cells(ffn.up) + cells(ffn.down));
            for (const ProductShape* product : {&attention.qkv,
                                                &attention.q_down,
                                                &attention.q,
                                                &attention.kv_down,
                                                &attention.kv_up,
                                                &attention.out,
                                                &ffn.router,
                                                &ffn.shared_up,
                                                &ffn.shared_down,
                                                &ffn.shared_gate,
                                                &ffn.latent_down,
                                                &ffn.latent_up,
                                                &layer.state.in,
                                                &layer.state.out,
                                                &layer.channels.in,
                                                &layer.channels.select,
                                                &layer.channels.step,
                                                &layer.channels.out,
                                                &attention.indexer.query,
                                                &attention.indexer.key})
                one += cells(*product);
            one += 2.0 * static_cast<double>(attention.indexer.dim);  // the norm of its keys
            // Scales of the router's rows, of its choice and of the layer.
            if (ffn.norms_apart) one += static_cast<double>(stack->hidden + ffn.experts) + 1.0;
            products += static_cast<double>(layer.count) * one;
        }
        double counted = 0.0;
        for (const model::Operator& op : asked.lowered.operators) {
            if (op.kind == Kind::norm || op.kind == Kind::gather || op.kind == Kind::attention) continue;
            if (op.name.ends_with(".convolution")) continue;  // taps, and what belongs to states
            counted += op.count * op.parameters;
            // A head that shares the table reads it all the same.
            if (op.name == "head" && op.parameters < op.extent.inner * op.extent.cols)
                counted += op.extent.inner * op.extent.cols;
        }
        EXPECT_EQ(products, counted) << model;
    }
    EXPECT_GE(found, 161);
}

// As predict counts it: with weights alone in fp8 or int8 activations stay bf16; DeepSeek's checkpoint has both in fp8.
TEST(StackShape, SaysWhereActivationsAreAsNarrowAsWeights) {
    const auto narrow = [](const predict::Scenario& asked) {
        const auto stack = stack_shape(asked);
        EXPECT_TRUE(stack) << stack.error().text;
        EXPECT_FALSE(stack->head.narrow);
        const LayerShape& layer = stack->kinds.back();
        EXPECT_EQ(layer.attention.out.narrow, layer.ffn.down.narrow);
        return layer.ffn.down.narrow;
    };
    for (const char* type : {"fp8", "int8"}) {
        EXPECT_TRUE(narrow(scenario("llama-3.1-8b", type, 1.0, 512.0, 1024.0, type)));
        EXPECT_FALSE(narrow(scenario("llama-3.1-8b", type)));
    }
    EXPECT_FALSE(narrow(scenario("llama-3.1-8b", "int4")));
    EXPECT_TRUE(narrow(scenario("deepseek-v3")));
}

TEST(StackShape, OfDeepSeekHasTwoKindsOfLayersAndEntries) {
    // V2 Lite: 16 heads of 128 + 64 and 128 over entries of 512 + 64; a dense layer of 10,944, then 26 with 6 of 64
    // experts of 1,408 beside two shared ones.
    const auto stack = stack_shape(scenario("deepseek-v2-lite"));
    ASSERT_TRUE(stack) << stack.error().text;
    ASSERT_EQ(stack->kinds.size(), 2U);
    EXPECT_EQ(stack->kinds[0].count, 1);
    EXPECT_EQ(stack->kinds[0].ffn.down.k, 10944);
    const LayerShape& moe = stack->kinds[1];
    EXPECT_EQ(moe.count, 26);
    EXPECT_EQ(moe.attention.query_heads, 16);
    EXPECT_EQ(moe.attention.rank, 512);
    EXPECT_EQ(moe.attention.rope_dim, 64);
    EXPECT_EQ(moe.attention.unturned(), 128);
    EXPECT_EQ(moe.attention.value_dim, 128);
    EXPECT_FALSE(moe.attention.q_down);
    EXPECT_EQ(moe.ffn.experts, 64);
    EXPECT_EQ(moe.ffn.chosen, 6);
    EXPECT_EQ(moe.ffn.shared_down.k, 2816);
    EXPECT_FALSE(moe.ffn.shared_gate);
    // V3 makes queries of latent rows of 1,536.
    const auto v3 = stack_shape(scenario("deepseek-v3", "bf16"));
    ASSERT_TRUE(v3) << v3.error().text;
    EXPECT_EQ(v3->kinds[0].attention.q_down.n, 1536);
}

TEST(StackShape, OfDeepSeek32AndGlm5HasIndexers) {
    // 64 heads of 128, from queries' rows of 1,536, and 2,048 entries for a token.
    const auto v32 = stack_shape(scenario("deepseek-v3.2"));
    ASSERT_TRUE(v32) << v32.error().text;
    for (const LayerShape& kind : v32->kinds) {
        EXPECT_EQ(kind.attention.chosen, 2048);
        EXPECT_EQ(kind.attention.indexer.heads, 64);
        EXPECT_EQ(kind.attention.indexer.query.k, 1536);
        EXPECT_EQ(kind.attention.indexer.query.n, 64 * 128);
        EXPECT_EQ(kind.attention.indexer.key.n, 128 + 64);
    }
    EXPECT_EQ(stack_shape(scenario("deepseek-v3"))->kinds[0].attention.chosen, 0);
    // GLM 5.2: 21 of 78 layers have one.
    const auto glm = stack_shape(scenario("glm-5.2-fp8"));
    ASSERT_TRUE(glm) << glm.error().text;
    std::int64_t indexed = 0;
    for (const LayerShape& kind : glm->kinds) {
        EXPECT_EQ(kind.attention.chosen, 2048);
        if (kind.attention.indexer.heads == 32) indexed += kind.count;
    }
    EXPECT_EQ(indexed, 21);
    EXPECT_EQ(glm->layers(), 78);
}

TEST(StackShape, OfMambaAndLfm2HasChannels) {
    // Mamba 2.8B: 64 layers of 5,120 channels with states of 16, steps made of 160 numbers.
    const auto mamba = stack_shape(scenario("mamba-2.8b", "bf16"));
    ASSERT_TRUE(mamba) << mamba.error().text;
    ASSERT_EQ(mamba->kinds.size(), 1U);
    const ChannelMixerShape& states = mamba->kinds[0].channels;
    EXPECT_EQ(mamba->kinds[0].count, 64);
    EXPECT_EQ(states.channels, 5120);
    EXPECT_EQ(states.key_dim, 16);
    EXPECT_EQ(states.taps, 4);
    EXPECT_EQ(states.in.n, 10240);
    EXPECT_EQ(states.select.n, 192);
    EXPECT_EQ(states.step.k, 160);
    EXPECT_TRUE(states.step.bias);
    EXPECT_FALSE(states.norms || mamba->kinds[0].ffn.up);
    // Jamba has norms of what is selected, and attention in every eighth layer; every second one has experts.
    const auto jamba = stack_shape(scenario("jamba-v0.1", "bf16"));
    ASSERT_TRUE(jamba) << jamba.error().text;
    const auto with_states = std::ranges::count_if(jamba->kinds, [](const auto& kind) { return kind.channels.norms; });
    EXPECT_EQ(with_states, 2);
    EXPECT_EQ(jamba->layers(), 32);
    // LFM2 1.2B: ten of 16 layers have convolutions of three taps over 2,048 channels.
    const auto lfm2 = stack_shape(scenario("lfm2-1.2b", "bf16"));
    ASSERT_TRUE(lfm2) << lfm2.error().text;
    ASSERT_EQ(lfm2->kinds.size(), 2U);
    const auto short_ones = std::ranges::find_if(lfm2->kinds, [](const auto& kind) { return kind.channels.taps > 0; });
    ASSERT_NE(short_ones, lfm2->kinds.end());
    EXPECT_EQ(short_ones->count, 10);
    EXPECT_EQ(short_ones->channels.key_dim, 0);
    EXPECT_EQ(short_ones->channels.taps, 3);
    EXPECT_EQ(short_ones->channels.in.n, 3 * 2048);
    EXPECT_TRUE(short_ones->ffn.up);
}

TEST(StackShape, KnowsWhereNormsAre) {
    const auto gemma = stack_shape(scenario("gemma-3-4b"));
    ASSERT_TRUE(gemma) << gemma.error().text;
    ASSERT_EQ(gemma->kinds.size(), 2U);
    const auto sliding = std::ranges::find_if(gemma->kinds, [](const auto& kind) { return kind.attention.window > 0; });
    ASSERT_NE(sliding, gemma->kinds.end());
    EXPECT_EQ(sliding->attention.window, 1024);
    EXPECT_EQ(sliding->attention.kept(1, 512), 512);
    EXPECT_EQ(sliding->attention.kept(1, 8192), 1024);
    EXPECT_EQ(sliding->attention.kept(8192, 8192), 8192);
    EXPECT_TRUE(sliding->norm_before_attention && sliding->norm_after_attention);
    EXPECT_EQ(sliding->attention.norm, HeadNorm::each_head);
    const auto olmo = stack_shape(scenario("olmo-2-7b"));
    ASSERT_TRUE(olmo) << olmo.error().text;
    EXPECT_FALSE(olmo->kinds[0].norm_before_attention || olmo->kinds[0].norm_before_ffn);
    EXPECT_EQ(olmo->kinds[0].attention.norm, HeadNorm::whole_width);
    const auto command = stack_shape(scenario("command-r-35b"));
    ASSERT_TRUE(command) << command.error().text;
    EXPECT_TRUE(command->kinds[0].parallel && command->layer_norms);
    EXPECT_FALSE(command->kinds[0].norm_before_ffn);
    const auto gpt2 = stack_shape(scenario("gpt2"));
    ASSERT_TRUE(gpt2) << gpt2.error().text;
    EXPECT_EQ(gpt2->positions, 1024);
    EXPECT_TRUE(gpt2->kinds[0].ffn.up.bias && !gpt2->kinds[0].ffn.gated && !gpt2->kinds[0].attention.rotary);
}

TEST(StackShape, OfLayersWithAStateMayBeOfOneBlock) {
    // Mamba-2 2.7B: 64 layers of 80 heads of 64 with states of 128, nothing else in them.
    const auto mamba = stack_shape(scenario("mamba2-2.7b"));
    ASSERT_TRUE(mamba) << mamba.error().text;
    ASSERT_EQ(mamba->kinds.size(), 1U);
    const LayerShape& layer = mamba->kinds[0];
    EXPECT_EQ(layer.count, 64);
    EXPECT_EQ(layer.state.heads, 80);
    EXPECT_EQ(layer.state.groups, 1);
    EXPECT_EQ(layer.state.channels(), 5120 + 2 * 128);
    EXPECT_EQ(layer.state.taps, 4);
    EXPECT_EQ(layer.attention.query_heads, 0);
    EXPECT_FALSE(layer.ffn.up);
    // Nemotron 3 Nano: states, attention and experts in layers of their own.
    const auto nano = stack_shape(scenario("nemotron-3-nano-30b-a3b"));
    ASSERT_TRUE(nano) << nano.error().text;
    ASSERT_EQ(nano->kinds.size(), 3U);
    for (const LayerShape& kind : nano->kinds) {
        EXPECT_EQ((kind.state.heads > 0) + (kind.attention.query_heads > 0) + (kind.ffn.up.n > 0), 1) << kind.name;
        EXPECT_GT(kind.count, 0) << kind.name;
    }
    // Bamba: an FFN in each.
    const auto bamba = stack_shape(scenario("bamba-9b"));
    ASSERT_TRUE(bamba) << bamba.error().text;
    for (const LayerShape& kind : bamba->kinds) EXPECT_GT(kind.ffn.up.n, 0) << kind.name;
}

TEST(StackShape, HasExpertsOfNarrowerRows) {
    // Nemotron 3 Super: 22 of 512 experts of 2,688 over 1,024 of the model's 4,096, a shared one of 5,376 beside them.
    const auto stack = stack_shape(scenario("nemotron-3-super-120b-a12b"));
    ASSERT_TRUE(stack) << stack.error().text;
    const auto of_experts = std::ranges::find_if(stack->kinds, [](const auto& kind) { return kind.ffn.experts > 0; });
    ASSERT_NE(of_experts, stack->kinds.end());
    const FfnShape& ffn = of_experts->ffn;
    EXPECT_FALSE(ffn.gated);
    EXPECT_EQ(ffn.chosen, 22);
    EXPECT_EQ(ffn.router.k, 4096);
    EXPECT_EQ(ffn.latent_down.n, 1024);
    EXPECT_EQ(ffn.up.k, 1024);
    EXPECT_EQ(ffn.up.n, 2688);
    EXPECT_EQ(ffn.latent_up.n, 4096);
    EXPECT_EQ(ffn.shared_up.n, 5376);
    EXPECT_EQ(ffn.shared_up.k, 4096);
}

TEST(StackShape, HasADenseFfnBesideExpertsWithNormsOfTheirOwn) {
    // Gemma 4 26B A4B: 8 of 128 experts of 704 beside an FFN of 2,112; every sixth layer sees all, its keys are values.
    const auto stack = stack_shape(scenario("gemma-4-26b-a4b"));
    ASSERT_TRUE(stack) << stack.error().text;
    ASSERT_EQ(stack->kinds.size(), 2U);
    for (const LayerShape& kind : stack->kinds) {
        EXPECT_TRUE(kind.ffn.norms_apart);
        EXPECT_EQ(kind.ffn.up.n, 2 * 704);
        EXPECT_EQ(kind.ffn.shared_up.n, 2 * 2112);
        EXPECT_FALSE(kind.ffn.router.bias);
        EXPECT_EQ(kind.attention.keys_as_values, kind.attention.window == 0);
    }
    EXPECT_FALSE(stack_shape(scenario("gemma-3-4b"))->kinds[0].ffn.norms_apart);
}

TEST(StackShape, OfStepHasAGateForEachHead) {
    const auto stack = stack_shape(scenario("step-3.7-flash-fp8"));
    ASSERT_TRUE(stack) << stack.error().text;
    for (const LayerShape& kind : stack->kinds) {
        const AttentionShape& attention = kind.attention;
        EXPECT_TRUE(attention.gated && attention.gate_a_head);
        EXPECT_EQ(attention.query_heads, attention.window > 0 ? 96 : 64);
        EXPECT_EQ(attention.gates(), attention.query_heads);
        EXPECT_EQ(attention.qkv.n, (attention.query_heads + 2 * 8) * 128 + attention.query_heads);
    }
}

TEST(StackShape, OfWhatAStepDoesNotDoIsRefusedInOneLine) {
    const auto stack = stack_shape(scenario("minimax-m3", "bf16"));
    ASSERT_FALSE(stack);
    EXPECT_EQ(stack.error().text,
              "minimax-m3: a whole step needs layers of attention or states and an FFN, and this one has "
              "layers[sparse,moe].attention.index_key");
    const auto unread = stack_shape(scenario("llama-3.1-8b", "q3_k"));
    ASSERT_FALSE(unread);
    EXPECT_TRUE(unread.error().text.ends_with("of GGUF those in q4_0, q8_0, q4_k, q5_k and q6_k are read"))
        << unread.error().text;
    // An operator that nobody knows makes it another model.
    auto asked = scenario("mixtral-8x7b");
    ASSERT_TRUE(stack_shape(asked));
    asked.lowered.operators.push_back(asked.lowered.operators.front());
    asked.lowered.operators.back().name = "layers.ffn.unheard_of";
    EXPECT_FALSE(stack_shape(asked));
}

}  // namespace
}  // namespace roofline::bench
