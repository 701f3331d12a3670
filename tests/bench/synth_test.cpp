#include "roofline/bench/synth.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "bench/scenarios.hpp"
#include "roofline/bench/llama_cpp.hpp"
#include "roofline/io/gguf.hpp"
#include "roofline/io/gguf_config.hpp"
#include "roofline/io/model_file.hpp"

namespace roofline::bench {
namespace {

LlamaShape small() {
    LlamaShape shape;
    shape.layers = 3;
    shape.hidden = 64;
    shape.query_heads = 4;
    shape.kv_heads = 2;
    shape.head_dim = 32;
    shape.ffn_width = 96;
    shape.vocabulary = 320;
    return shape;
}

std::vector<std::byte> whole_file(const SynthPlan& plan) {
    std::vector<std::byte> file;
    EXPECT_TRUE(write_synth(plan, [&](std::span<const std::byte> piece) {
        file.insert(file.end(), piece.begin(), piece.end());
        return true;
    }));
    return file;
}

TEST(Synth, WhatIsWrittenIsReadBackAsTheSameModel) {
    for (const char* dtype : {"f16", "q8_0", "q4_0"}) {
        const auto plan = plan_synth(small(), {.name = "toy", .dtype = dtype, .context = 128});
        ASSERT_TRUE(plan);
        const std::vector<std::byte> file = whole_file(*plan);
        EXPECT_EQ(file.size(), plan->header.size() + plan->data_bytes);
        const auto gguf = io::read_gguf(file, file.size(), "toy.gguf");
        ASSERT_TRUE(gguf);
        EXPECT_EQ(gguf->unsigned_at("llama.block_count"), 3U);
        EXPECT_EQ(gguf->count_at("tokenizer.ggml.tokens"), 320U);
        std::vector<std::string> notes;
        auto config = io::config_from_gguf(*gguf, "toy.gguf", notes);
        ASSERT_TRUE(config) << config.error().text;
        const auto model = io::read_config_file(std::move(*config), "toy.gguf", "toy");
        ASSERT_TRUE(model) << model.error().text;
        // Two tables of 320 x 64; a layer: Q and output of 64 x 128, K and V of 64 x 64, three of 64 x 96, two norms of
        // 64; a final norm. 40,960 + 3 x (16,384 + 8,192 + 18,432 + 128) + 64 = 170,432.
        EXPECT_DOUBLE_EQ(model::count_parameters(model::lower(model->architecture, model->types)).total, 170432.0);
    }
}

TEST(Synth, AQ4KMHasHalfOfItsValuesInMoreBits) {
    LlamaShape shape = small();
    shape.layers = 8;
    shape.hidden = 256;
    shape.query_heads = 8;  // of 32
    shape.ffn_width = 512;
    const auto plan = plan_synth(shape, {.name = "toy", .dtype = "q4_k_m", .tied = true});
    ASSERT_TRUE(plan) << plan.error().text;
    constexpr std::uint32_t q4_k = 12;
    constexpr std::uint32_t q6_k = 14;
    const auto type_of = [&](const std::string& name) {
        const auto found = std::ranges::find(plan->tensors, name, &SynthTensor::name);
        return found != plan->tensors.end() ? found->type : 99U;
    };
    EXPECT_EQ(type_of("token_embd.weight"), q6_k);
    // The first eighth, the last, and every third in between.
    for (int layer = 0; layer < 8; ++layer) {
        const std::string block = "blk." + std::to_string(layer) + ".";
        const bool more = layer == 0 || layer == 3 || layer == 6 || layer == 7;
        EXPECT_EQ(type_of(block + "attn_v.weight"), more ? q6_k : q4_k) << layer;
        EXPECT_EQ(type_of(block + "ffn_down.weight"), more ? q6_k : q4_k) << layer;
        EXPECT_EQ(type_of(block + "attn_k.weight"), q4_k);
        EXPECT_EQ(type_of(block + "ffn_up.weight"), q4_k);
    }
    const std::vector<std::byte> file = whole_file(*plan);
    EXPECT_EQ(file.size(), plan->header.size() + plan->data_bytes);
    ASSERT_TRUE(io::read_gguf(file, file.size(), "toy.gguf"));
    // A row of 64 holds no block of 256.
    EXPECT_FALSE(plan_synth(small(), {.name = "toy", .dtype = "q6_k"}));
}

TEST(Synth, StopsWhereTheWriterSaysSo) {
    const auto plan = plan_synth(small(), {.name = "toy"});
    ASSERT_TRUE(plan);
    int pieces = 0;
    EXPECT_FALSE(write_synth(*plan, [&](std::span<const std::byte>) { return ++pieces < 4; }));
    EXPECT_EQ(pieces, 4);
}

TEST(Synth, RefusesWhatLlamaCppWouldNotLoad) {
    EXPECT_FALSE(plan_synth(small(), {.name = "toy", .dtype = "q9"}));
    LlamaShape narrow = small();
    narrow.hidden = 65;
    EXPECT_FALSE(plan_synth(narrow, {.name = "toy"}));
    narrow = small();
    narrow.vocabulary = 100;
    EXPECT_FALSE(plan_synth(narrow, {.name = "toy"}));
}

TEST(LlamaBench, TheMedianOfTheRepetitionsIsTaken) {
    const auto answer = read_llama_bench(
        R"([{"build_commit": "abc", "n_prompt": 512, "n_gen": 0, "avg_ns": 9e9, "samples_ns": [3e9, 1e9, 2e9]},
            {"n_prompt": 0, "n_gen": 128, "avg_ns": 4e9},
            {"n_prompt": 512, "n_gen": 128, "avg_ns": 5e9}])",
        "out.json");
    ASSERT_TRUE(answer) << answer.error().text;
    ASSERT_EQ(answer->results.size(), 2U) << "a prompt with its answer is no stage";
    EXPECT_TRUE(answer->results[0].prefill);
    EXPECT_DOUBLE_EQ(answer->results[0].seconds, 2.0);
    EXPECT_DOUBLE_EQ(answer->results[0].low, 1.0);
    EXPECT_DOUBLE_EQ(answer->results[1].seconds, 4.0);
    EXPECT_DOUBLE_EQ(answer->results[1].tokens, 128.0);
}

TEST(LlamaBench, WhatIsNoResultIsOneClearLine) {
    for (const char* text : {"", "{}", "[]", "[3]", R"([{"n_prompt": 5}])", R"([{"n_prompt": 5, "avg_ns": -1}])"}) {
        const auto answer = read_llama_bench(text, "out.json");
        ASSERT_FALSE(answer) << text;
        EXPECT_NE(answer.error().text.find("out.json"), std::string::npos) << answer.error().text;
    }
}

}  // namespace
}  // namespace roofline::bench
