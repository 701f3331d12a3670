// Recordings of kinds of runs that nothing was written for when they were made (record/unseen.py): trainings, decodes
// replayed from graphs, encoders, compiled models, one of each of many operators. PyTorch's own counter of FLOPs
// (torch.utils.flop_counter) ran beside them.
#include <algorithm>
#include <cmath>
#include <initializer_list>

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

/// FLOPs of the operators whose names begin so, over all steps.
double flops_of(const Analysis& analysis, std::initializer_list<const char*> names) {
    double sum = 0.0;
    for (const AccountStage& stage : analysis.by_operator) {
        for (const Record& record : stage.records) {
            const bool wanted = std::any_of(names.begin(), names.end(), [&](const char* name) {
                return record.name.starts_with(std::string("aten::") + name + " ");
            });
            if (wanted) sum += record.work.flops.value * stage.repetitions;
        }
    }
    return sum;
}

bool says(const Analysis& analysis, const std::string& words) {
    return std::any_of(analysis.account.notes.begin(), analysis.account.notes.end(),
                       [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

TEST(Unseen, EveryKernelIsExplainedAndStagesAreFound) {
    for (const Recorded& one :
         {Recorded{"train_gpt2_amp", 2'690'630, "train", 1, 3}, Recorded{"convnet_training", 536'891, "train", 1, 0},
          Recorded{"compiled_train", 1'613'410, "train", 2, 2},
          Recorded{"graph_llama_decode", 1'957'356, "decode", 4, 3},
          Recorded{"graph_moe_decode", 6'854'204, "decode", 4, 3}, Recorded{"whisper", 793'634, "decode", 3, 2},
          Recorded{"compiled_qwen3_moe", 564'447, "decode", 2, 2}, Recorded{"compiled_bert", 225'154, "prefill", 2, 2},
          Recorded{"mamba2", 2'363'302, "decode", 2, 2}, Recorded{"ops_many", 2'899'462, "prefill", 1, 4}})
        expect_found(one);
}

TEST(Unseen, ProductsAreWhatPytorchCounts) {
    const Analysis gpt2 = analysis_of("train_gpt2_amp");
    EXPECT_EQ(flops_of(gpt2, {"mm"}), 68'023'812'096.0);
    EXPECT_EQ(flops_of(gpt2, {"addmm"}), 16'307'453'952.0);
    const Analysis whisper = analysis_of("whisper");
    EXPECT_EQ(flops_of(whisper, {"mm"}), 3'210'347'520.0);
    EXPECT_EQ(flops_of(whisper, {"addmm"}), 18'915'262'464.0);
    EXPECT_EQ(flops_of(whisper, {"cudnn_convolution"}), 3'096'576'000.0);
    EXPECT_EQ(flops_of(analysis_of("mamba2"), {"mm", "bmm"}), 6'531'784'704.0 + 1'572'864.0);
    const Analysis convolutions = analysis_of("convnet_training");
    EXPECT_EQ(flops_of(convolutions, {"cudnn_convolution"}), 3'246'391'296.0);
    EXPECT_EQ(flops_of(convolutions, {"convolution_backward"}), 6'266'290'176.0);
    const Analysis many = analysis_of("ops_many");
    EXPECT_EQ(flops_of(many, {"cudnn_convolution", "_conv_depthwise2d", "cudnn_convolution_transpose"}),
              2'057'250'816.0);
    EXPECT_EQ(flops_of(many, {"baddbmm"}), 16'777'216.0);
}

// 38,206,464 parameters in fp32: read with their gradients and both moments, all but the gradients written again, by
// operators whose lists are too long for the profiler to write down. 4 x 38,206,464 is one pass over one list.
TEST(Unseen, AnOptimizersListsAreWhatTheBackwardPassMadeGradientsFor) {
    const Analysis analysis = analysis_of("train_gpt2_amp");
    EXPECT_TRUE(says(analysis, "38.21 million parameters"));
    const double list = 4.0 * 38'206'464.0;
    double norm = 0.0;
    double moved = 0.0;
    double squared = 0.0;
    for (const AccountStage& stage : analysis.by_operator) {
        for (const Record& record : stage.records) {
            const double bytes = record.work.at(Level::memory).value + record.work.at(Level::cache).value;
            if (record.name.starts_with("aten::_foreach_norm")) norm += bytes;
            if (record.name.starts_with("aten::_foreach_addcdiv_")) moved += bytes;
            if (record.name.starts_with("aten::_foreach_addcmul_")) squared += bytes;
        }
    }
    EXPECT_EQ(norm, list);
    EXPECT_EQ(moved, 4.0 * list);    // parameters += first / second: three read, one written
    EXPECT_EQ(squared, 3.0 * list);  // second += gradient x gradient: two read, one written
}

// 3 layers of 768 (12 heads of 64, 4 of keys and values, 2,048 wide), 20,011 words, 4 sequences of one token: 2 x 4
// FLOPs for each of 3 x (2 x 768 x 768 + 2 x 768 x 256 + 3 x 768 x 2,048) + 768 x 20,011 weights. Keys and values of 61
// to 64 tokens: 3 layers x 4 sequences x 62.5 x 2 x 4 heads x 64 x 2 bytes.
TEST(Unseen, ADecodeInAGraphBorrowsFromThePromptBeforeIt) {
    const Analysis analysis = analysis_of("graph_llama_decode");
    const AccountStage* decode = stage_of(analysis, "decode");
    ASSERT_NE(decode, nullptr);
    EXPECT_EQ(decode->batch, 4.0);
    EXPECT_EQ(decode->context, 62.5);
    double products = 0.0;
    double kv = 0.0;
    for (const Record& record : decode->records) {
        if (record.weights.value > 0.0) products += record.work.flops.value;
        kv += record.kv.value;
    }
    const double weights = 3.0 * (2.0 * 768 * 768 + 2.0 * 768 * 256 + 3.0 * 768 * 2048) + 768.0 * 20011;
    EXPECT_NEAR(products, 2.0 * 4.0 * weights, 1.0);
    EXPECT_NEAR(kv, 3.0 * 4.0 * 62.5 * 2.0 * 4.0 * 64.0 * 2.0, 1e-3);
    EXPECT_GT(analysis.inferred_time / analysis.kernel_time, 0.7);
    EXPECT_TRUE(says(analysis, "inferred from the steps before it in the same file"));
}

// Two layers, each one mixer and nothing else: two products, about forty kernels between them. The convolution that
// gives it away is only in the prompt.
TEST(Unseen, LayersWithoutAttentionAreLayers) {
    const Analysis analysis = analysis_of("mamba2");
    for (const char* name : {"prefill", "decode"}) {
        const AccountStage* stage = stage_of(analysis, name);
        ASSERT_NE(stage, nullptr);
        double mixers = 0.0;
        double in = 0.0;
        double out = 0.0;
        for (const Record& record : stage->records) {
            if (record.name == "layers.attention.mixer") mixers = record.count;
            if (record.name == "layers.attention.qkv") in = record.count;
            if (record.name == "layers.attention.out") out = record.count;
        }
        EXPECT_EQ(in, 2.0) << name;
        EXPECT_EQ(out, 2.0) << name;
        EXPECT_GT(mixers, 50.0) << name;
    }
    EXPECT_TRUE(std::any_of(analysis.diagnoses.begin(), analysis.diagnoses.end(), [](const Diagnosis& one) {
        return one.words.find("kernels that mix tokens one operator at a time") != std::string::npos;
    }));
}

// What follows the forward pass is its backward pass and the optimizer; what follows the head before it is the loss.
// GPT-2's forward pass multiplies with a bias (addmm) but for the head: all other products without one are backward.
TEST(Unseen, ATrainingHasABackwardPassAndAnOptimizer) {
    const Analysis analysis = analysis_of("train_gpt2_amp");
    const AccountStage* train = stage_of(analysis, "train");
    ASSERT_NE(train, nullptr);
    double backward = 0.0;
    double head = 0.0;
    bool optimizer = false;
    bool loss = false;
    for (const Record& record : train->records) {
        if (record.name == "backward.products") backward = record.work.flops.value;
        if (record.name == "head") head = record.work.flops.value;
        optimizer = optimizer || record.name == "optimizer";
        loss = loss || record.name == "loss";
    }
    EXPECT_TRUE(optimizer);
    EXPECT_TRUE(loss);
    EXPECT_EQ(head, 2.0 * 384.0 * 768.0 * 20011.0);
    EXPECT_EQ(backward + head, 68'023'812'096.0);
    EXPECT_TRUE(std::any_of(analysis.diagnoses.begin(), analysis.diagnoses.end(),
                            [](const Diagnosis& one) { return one.words.starts_with("train: the optimizer takes"); }));
}

// tests/fuzz/corpus/kineto/training.json: two steps of nine kernels of 4 us; here with their forward passes named,
// which leaves out the optimizer: such ranges are no steps.
TEST(Unseen, NamedPartsOfATrainingStepAreNoSteps) {
    auto file = open_input(ROOFLINE_SOURCE_DIR "/tests/fuzz/corpus/kineto/training.json");
    ASSERT_TRUE(file) << file.error().text;
    auto text = file->rest();
    ASSERT_TRUE(text) << text.error().text;
    const std::string begin = "\"traceEvents\":[";
    const std::size_t at = text->find(begin);
    ASSERT_NE(at, std::string::npos);
    text->insert(at + begin.size(),
                 R"({"ph":"X","cat":"user_annotation","name":"forward","pid":1,"tid":1,"ts":0,"dur":55},)");
    Input input = Input::from_memory("training.json", std::move(*text));
    const auto analysis = analyze(input, {});
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(steps_of(*analysis, "train"), 2.0);
    ASSERT_EQ(analysis->steps.size(), 2U);
    EXPECT_EQ(analysis->steps[0].kernels, 9.0);
    EXPECT_EQ(analysis->steps[1].kernels, 9.0);
}

TEST(Unseen, AnEncoderWithoutWordsIsAStageOfItsOwn) {
    const Analysis analysis = analysis_of("whisper");
    const AccountStage* encode = stage_of(analysis, "encode");
    ASSERT_NE(encode, nullptr);
    EXPECT_EQ(encode->tokens, 1500.0);
    EXPECT_EQ(stage_of(analysis, "decode")->batch, 1.0);
    EXPECT_EQ(stage_of(analysis, "decode")->context, 2.0);  // 1, 2 and 3 words, not the 1,500 of the sound
}

// graph_moe_decode: 4 experts of 768 to 2 x 2,048, of which each of 140 tokens picks 2 before one batched product: 280
// matrices of 768 x 4,096 are written from 4 that are read. The profiler does not say how many indices there are.
TEST(Unseen, WhatIndicesPickIsTheSizeOfTheResult) {
    const Analysis analysis = analysis_of("graph_moe_decode");
    double bytes = 0.0;
    double count = 0.0;
    for (const AccountStage& stage : analysis.by_operator) {
        for (const Record& record : stage.records) {
            if (stage.name != "prefill" || record.name != "aten::index [4x4096x768]") continue;
            bytes += record.work.at(Level::memory).value + record.work.at(Level::cache).value;
            count += record.count;
        }
    }
    EXPECT_EQ(count, 3.0);
    EXPECT_EQ(bytes, 3.0 * ((280.0 + 4.0) * 4096.0 * 768.0 * 2.0 + 280.0 * 8.0));
    EXPECT_TRUE(std::any_of(analysis.diagnoses.begin(), analysis.diagnoses.end(), [](const Diagnosis& one) {
        return one.words == "prefill: the weights of chosen experts are copied before the product";
    }));
}

// Attention that a compiler took apart: two batched products with a softmax between that carries other operators along.
TEST(Unseen, CompiledAttentionTellsQueriesAndSequences) {
    const AccountStage* pass = nullptr;
    const Analysis analysis = analysis_of("compiled_bert");
    ASSERT_NE(pass = stage_of(analysis, "prefill"), nullptr);
    EXPECT_EQ(pass->batch, 3.0);
    EXPECT_EQ(pass->tokens, 270.0);
    EXPECT_EQ(pass->context, 90.0);
}

}  // namespace
}  // namespace roofline::analyze
