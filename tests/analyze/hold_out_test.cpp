// Recordings of models that no formula was written for (record/hold_out.py): how much of them is explained, whether
// their steps and layers are found, and whether products agree with what PyTorch itself counted beside the recording.
#include <cmath>

#include <gtest/gtest.h>

#include "analyze/recordings.hpp"
#include "roofline/analyze/ranks.hpp"
#include "roofline/io/account_json.hpp"

namespace roofline::analyze {
namespace {

const Record* record_of(const Analysis& analysis, const std::string& stage, const std::string& name) {
    for (const AccountStage& one : analysis.account.stages) {
        if (one.name != stage) continue;
        for (const Record& record : one.records) {
            if (record.name == name) return &record;
        }
    }
    return nullptr;
}

double product_flops(const Analysis& analysis) {
    double sum = 0.0;
    for (const AccountStage& stage : analysis.by_operator) {
        for (const Record& record : stage.records) {
            for (const char* name : {"aten::mm ", "aten::addmm ", "aten::bmm ", "aten::baddbmm "}) {
                if (record.name.starts_with(name)) sum += record.work.flops.value * stage.repetitions;
            }
        }
    }
    return sum;
}

// Sums of "dur" of the kernels and PyTorch's sums of FLOPs of mm, addmm, bmm and baddbmm, by a script of their own.
TEST(HoldOut, EveryKernelIsExplainedAndProductsAreWhatPytorchCounts) {
    struct Case {
        const char* file;
        std::int64_t kernels;
        double flops;
        double prefills, decodes, layers;
    };
    for (const Case& one :
         {Case{"phimoe", 1'904'202, 20'988'355'904.0, 1, 2, 3}, Case{"llama4", 1'954'744, 51'903'170'048.0, 1, 2, 4},
          Case{"gpt_bigcode", 616'281, 21'015'590'400.0, 1, 2, 3}}) {
        const Analysis analysis = analysis_of(one.file);
        EXPECT_EQ(std::llround(analysis.kernel_time.value * 1e9), one.kernels) << one.file;
        EXPECT_GE(analysis.explained_time / analysis.kernel_time, 0.97) << one.file;
        EXPECT_EQ(product_flops(analysis), one.flops) << one.file;
        EXPECT_EQ(steps_of(analysis, "prefill"), one.prefills) << one.file;
        EXPECT_EQ(steps_of(analysis, "decode"), one.decodes) << one.file;
        EXPECT_EQ(analysis.layers, one.layers) << one.file;
    }
}

// One of every layer's products makes 6 numbers of 768: the router. 198 tokens, two of six experts each, 768 to 2 x
// 2304: 3 layers x 2 x 396 x 768 x 4608 FLOPs.
TEST(HoldOut, ARouterIsFoundThatNeverCallsTopK) {
    const Analysis analysis = analysis_of("phimoe");
    const Record* router = record_of(analysis, "prefill", "layers.ffn.router");
    const Record* experts = record_of(analysis, "prefill", "layers.ffn.experts.gate_up");
    ASSERT_NE(router, nullptr);
    ASSERT_NE(experts, nullptr);
    EXPECT_EQ(router->work.flops.value, 3.0 * 2.0 * 198.0 * 768.0 * 6.0);
    EXPECT_EQ(experts->work.flops.value, 3.0 * 2.0 * 396.0 * 768.0 * 4608.0);
}

// Every second of four layers runs all 4 experts over all 300 tokens as one batched product (768 to 2 x 2304), and a
// shared expert beside them; products of a plain layer are gate and up, 768 to 2304 each.
TEST(HoldOut, ExpertsAsOneBatchedProductAreExperts) {
    const Analysis analysis = analysis_of("llama4");
    const Record* experts = record_of(analysis, "prefill", "layers.ffn.experts.gate_up");
    ASSERT_NE(experts, nullptr);
    EXPECT_EQ(experts->work.flops.value,
              2.0 * (2.0 * 4.0 * 300.0 * 768.0 * 4608.0 + 2.0 * 2.0 * 300.0 * 768.0 * 2304.0));
    const Record* chosen = record_of(analysis, "prefill", "layers.ffn.choose");
    ASSERT_NE(chosen, nullptr);
    EXPECT_LT(chosen->work.flops.value, 2e6);  // 2 x 4 x 300 x 768 to scale what the experts read, and a little
}

// A prompt without a graph, then graphs replayed: 4 of 114 kernels, 5 of 39.
TEST(HoldOut, GraphsAfterAPromptAreItsDecodes) {
    for (const auto& [file, decodes, layers] :
         {std::tuple{"neox_graph_static", 4.0, 3.0}, std::tuple{"generate_static", 5.0, 2.0}}) {
        const Analysis analysis = analysis_of(file);
        EXPECT_EQ(steps_of(analysis, "prefill"), 1.0) << file;
        EXPECT_EQ(steps_of(analysis, "decode"), decodes) << file;
        EXPECT_EQ(analysis.layers, layers) << file;
        const Record* core = record_of(analysis, "decode", "layers.attention.core");
        ASSERT_NE(core, nullptr) << file;
        EXPECT_EQ(core->count, layers) << file;
    }
}

TEST(HoldOut, EncodersAreStagesAndTheirLayersAreCounted) {
    const Analysis both = analysis_of("torch_encoder");
    EXPECT_EQ(steps_of(both, "encode"), 1.0);
    EXPECT_EQ(steps_of(both, "decode"), 1.0);
    EXPECT_EQ(both.explained_time, both.kernel_time);
    EXPECT_EQ(analysis_of("vit").layers, 3.0);
}

// Two processes on the host, gloo between them (record/two_ranks.py); rank 1 computes its blocks twice. The machine had
// a GPU, which the file names and which ran nothing.
TEST(HoldOut, TwoRanksOnAHostShowWhoWaits) {
    std::vector<Analysis> ranks;
    ranks.push_back(analysis_of("two_ranks_0"));
    ranks.push_back(analysis_of("two_ranks_1"));
    compare_ranks(ranks);
    for (const Analysis& one : ranks) {
        EXPECT_FALSE(one.device_known);
        EXPECT_GT(one.rank->collectives.value, 0.0);
        EXPECT_EQ(one.explained_time, one.kernel_time);
    }
    EXPECT_EQ(ranks[0].rank->number, 0.0);
    EXPECT_TRUE(ranks[1].rank->slowest);
}

TEST(HoldOut, AReportOfAnUnknownDeviceCanBeReadBack) {
    const Analysis one = analysis_of("two_ranks_0");
    const auto back = io::read_account(io::account_text(one.account, {}), "report");
    ASSERT_TRUE(back) << back.error().text;
    EXPECT_EQ(back->device.name, one.account.device.name);
    EXPECT_EQ(back->stages.size(), one.account.stages.size());
}

}  // namespace
}  // namespace roofline::analyze
