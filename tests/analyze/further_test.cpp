// Recordings of newer models and of other ways to run one (record/further.py), looked at only after they were made:
// pictures before words, weights in few bits, attention to an encoder, mixers, decodes that a compiler put into graphs.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "analyze/recordings.hpp"

namespace roofline::analyze {
namespace {

const AccountStage* stage_of(const Analysis& analysis, const std::string& name) {
    for (const AccountStage& one : analysis.account.stages) {
        if (one.name == name) return &one;
    }
    return nullptr;
}

double count_of(const AccountStage& stage, const std::string& name) {
    for (const Record& record : stage.records) {
        if (record.name == name) return record.count;
    }
    return 0.0;
}

TEST(Further, EveryKernelIsExplainedAndLayersAreCounted) {
    for (const Recorded& one :
         {Recorded{"qwen3_vl", 1'779'567, "decode", 2, 3}, Recorded{"int4_weights", 2'309'833, "decode", 2, 3},
          Recorded{"m2m_100", 567'640, "decode", 3, 2}, Recorded{"xlstm", 527'328, "prefill", 1, 2},
          Recorded{"compiled_decode_moe", 1'175'407, "decode", 3, 2}, Recorded{"minimax", 2'499'727, "decode", 2, 4},
          Recorded{"compiled_mamba2", 1'744'004, "prefill", 2, 2}})
        expect_found(one);
}

// Three layers of width 320 see a picture in 64 pieces, three of width 768 read 60 words: one fused product before the
// attention of the former, three before that of the latter.
TEST(Further, AnEncoderBeforeTheWordsHasNamesOfItsOwn) {
    const Analysis analysis = analysis_of("qwen3_vl");
    const AccountStage* prefill = stage_of(analysis, "prefill");
    ASSERT_NE(prefill, nullptr);
    EXPECT_EQ(prefill->tokens, 60.0);
    EXPECT_EQ(prefill->context, 60.0);
    EXPECT_EQ(count_of(*prefill, "encoder.attention.core"), 3.0);
    EXPECT_EQ(count_of(*prefill, "encoder.attention.qkv"), 3.0);
    EXPECT_EQ(count_of(*prefill, "layers.attention.core"), 3.0);
    EXPECT_EQ(count_of(*prefill, "layers.attention.qkv"), 9.0);
    EXPECT_EQ(count_of(*prefill, "layers.ffn.gate_up"), 6.0);
    EXPECT_EQ(count_of(*prefill, "layers.ffn.down"), 3.0);
    for (const Record& record : prefill->records) {
        if (record.name == "encoder.attention.core") {
            EXPECT_EQ(record.group, Group::attention);
        }
    }
}

// A decoder of two layers, each with attention to its own words and to 75 of the encoder. The first step projects what
// the encoder made: keys and values of both layers.
TEST(Further, AttentionToAnEncoderIsPartOfALayer) {
    const Analysis analysis = analysis_of("m2m_100");
    const AccountStage* decode = stage_of(analysis, "decode");
    ASSERT_NE(decode, nullptr);
    EXPECT_EQ(decode->batch, 2.0);
    EXPECT_EQ(decode->context, 2.0);  // 1, 2 and 3 words
    EXPECT_EQ(count_of(*decode, "layers.attention.core"), 2.0);
    EXPECT_EQ(count_of(*decode, "layers.cross.core"), 2.0);
    EXPECT_EQ(count_of(*decode, "layers.attention.out"), 2.0);
    EXPECT_EQ(count_of(*decode, "layers.cross.out"), 2.0);
    ASSERT_EQ(analysis.steps.size(), 4U);
    EXPECT_EQ(analysis.steps[0].layers, 3.0);  // the encoder's
    EXPECT_EQ(analysis.steps[1].layers, 2.0);
    EXPECT_EQ(count_of(*decode, "layers.ffn.down"), 2.0);
    for (const Record& record : decode->records) {
        if (record.name == "layers.cross.core") {
            EXPECT_EQ(record.group, Group::attention);
        }
    }
}

// Nine kernels make a weight of packed ones whole, seven weights a layer.
TEST(Further, WeightsMadeWholeBelongToTheirProducts) {
    const Analysis analysis = analysis_of("int4_weights");
    const AccountStage* decode = stage_of(analysis, "decode");
    ASSERT_NE(decode, nullptr);
    EXPECT_EQ(count_of(*decode, "layers.attention.qkv"), 9.0);
    EXPECT_EQ(count_of(*decode, "layers.attention.qkv.unpack"), 81.0);
    EXPECT_EQ(count_of(*decode, "layers.attention.out.unpack"), 27.0);
    EXPECT_EQ(count_of(*decode, "layers.ffn.gate_up.unpack"), 54.0);
    EXPECT_EQ(count_of(*decode, "layers.ffn.down.unpack"), 27.0);
    EXPECT_EQ(count_of(*decode, "layers.attention.mixer"), 0.0);
    EXPECT_TRUE(std::any_of(analysis.diagnoses.begin(), analysis.diagnoses.end(), [](const Diagnosis& one) {
        return one.words == "decode: packed weights are made whole before each product" &&
               one.evidence.starts_with("189 kernels a step take");
    }));
}

// No attention tells how many words there are: [3, 90] are looked up.
TEST(Further, WithoutAttentionTheLookUpTellsBatchAndTokens) {
    const Analysis analysis = analysis_of("compiled_mamba2");
    const AccountStage* prefill = stage_of(analysis, "prefill");
    ASSERT_NE(prefill, nullptr);
    EXPECT_EQ(prefill->batch, 3.0);
    EXPECT_EQ(prefill->tokens, 270.0);
}

// transformers runs batches in a thread of its own, whose operators PyTorch does not record.
TEST(Further, KernelsOfAThreadWithoutOperatorsAreSaidToBe) {
    const Analysis analysis = analysis_of("continuous");
    EXPECT_TRUE(std::any_of(analysis.account.notes.begin(), analysis.account.notes.end(), [](const std::string& note) {
        return note.find("threads whose operators are not in the file") != std::string::npos;
    }));
}

// tests/fuzz/corpus/kineto/training.json: two steps, each with one call of an optimizer until 97 and 195 us. A second
// optimizer for other parameters, called behind the first, ends the same step.
TEST(Further, OptimizersThatShareABackwardPassShareAStep) {
    auto file = open_input(ROOFLINE_SOURCE_DIR "/tests/fuzz/corpus/kineto/training.json");
    ASSERT_TRUE(file) << file.error().text;
    auto text = file->rest();
    ASSERT_TRUE(text) << text.error().text;
    const std::string begin = "\"traceEvents\":[";
    const std::size_t at = text->find(begin);
    ASSERT_NE(at, std::string::npos);
    text->insert(
        at + begin.size(),
        R"({"ph":"X","cat":"user_annotation","name":"Optimizer.step#Muon.step","pid":1,"tid":1,"ts":97.2,"dur":0.5},)"
        R"({"ph":"X","cat":"user_annotation","name":"Optimizer.step#Muon.step","pid":1,"tid":1,"ts":196,"dur":2},)");
    Input input = Input::from_memory("training.json", std::move(*text));
    const auto analysis = analyze(input, {});
    ASSERT_TRUE(analysis) << analysis.error().text;
    ASSERT_EQ(analysis->steps.size(), 2U);
    EXPECT_EQ(analysis->steps[0].kernels, 9.0);
    EXPECT_EQ(analysis->steps[1].kernels, 9.0);
}

// One prompt, three tokens launch by launch and four from a captured graph, nothing named: 173 kernels a token either
// way, but the graph needs a fraction of the time.
TEST(Further, TokensOfAGraphAreAStageBesideThoseLaunchedOneByOne) {
    expect_found({"mixed_eager_graph", 3'022'768, "decode", 3, 3});
    const Analysis analysis = analysis_of("mixed_eager_graph");
    const AccountStage* one_by_one = stage_of(analysis, "decode");
    const AccountStage* graph = stage_of(analysis, "decode (graph)");
    ASSERT_NE(one_by_one, nullptr);
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(graph->repetitions, 4.0);
    EXPECT_EQ(graph->batch, 4.0);
    EXPECT_EQ(graph->context, 128.0) << "the cache has room for so many, and all of it is read";
    EXPECT_EQ(one_by_one->context, 128.0);
    EXPECT_GT(graph->tokens_per_second(*graph->times.measured),
              3.0 * one_by_one->tokens_per_second(*one_by_one->times.measured));
    EXPECT_EQ(count_of(*graph, "layers.attention.core"), count_of(*one_by_one, "layers.attention.core"));
}

}  // namespace
}  // namespace roofline::analyze
