// A profile by hand, and one that ONNX Runtime 1.30 wrote (data/README.md).
#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/analyze/format.hpp"

namespace roofline::analyze {
namespace {

constexpr const char* profile = R"([
{"cat" : "Session","pid" :7,"tid" :7,"dur" :900,"ts" :5,"ph" : "X","name" :"model_loading_uri","args" : {}},
{"cat" : "Node","pid" :7,"tid" :7,"dur" :50,"ts" :1000,"ph" : "X","name" :"mm_kernel_time","args" : {"op_name" : "MatMul","provider" : "CPUExecutionProvider","input_type_shape" : [{"float":[1,4,8]},{"float":[8,16]}],"output_type_shape" : [{"float":[1,4,16]}]}},
{"cat" : "Node","pid" :7,"tid" :7,"dur" :10,"ts" :1060,"ph" : "X","name" :"relu_kernel_time","args" : {"op_name" : "Relu","input_type_shape" : [{"float":[1,4,16]}],"output_type_shape" : [{"float":[1,4,16]}]}},
{"cat" : "Session","pid" :7,"tid" :7,"dur" :80,"ts" :995,"ph" : "X","name" :"model_run","args" : {}}
])";

TEST(OnnxRuntime, NodesAreOperatorsWithTheWorkOfTheirShapes) {
    Input input = Input::from_memory("ort.json", profile);
    const auto analysis = analyze(input, {});
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(analysis->format, "ONNX Runtime profile");
    ASSERT_EQ(analysis->steps.size(), 1U);  // one model_run
    ASSERT_EQ(analysis->account.stages.size(), 1U);
    const auto& records = analysis->account.stages[0].records;
    ASSERT_GE(records.size(), 2U);
    EXPECT_EQ(records[0].name, "onnx::MatMul [1x4x8] [8x16]");
    EXPECT_EQ(records[0].work.flops.value, 2.0 * 4 * 8 * 16);
    EXPECT_EQ(records[0].weights.value, 4.0 * 8 * 16);
    EXPECT_DOUBLE_EQ(records[0].times.measured->value, 50e-6);
    EXPECT_EQ(records[1].work.at(Level::memory).value, 2.0 * 4 * 64);  // read and written, in fp32
    ASSERT_EQ(analysis->streams.size(), 1U);
    EXPECT_DOUBLE_EQ(analysis->streams[0].idle.value, 10e-6);  // 1050 to 1060
}

// Weights are packed when the model is loaded and no inputs any more. Three runs of 128 rows through 2 blocks (four
// products of 256 x 256, two of 256 x 1024) and a head of 1,000; scores and mixing of 2 x 4 heads over 64 x 64 pairs
// of 64.
TEST(OnnxRuntime, APackedWeightIsToldByWhatIsWritten) {
    auto input = open_input(ROOFLINE_SOURCE_DIR "/tests/analyze/data/onnxruntime_small.json.gz");
    ASSERT_TRUE(input) << input.error().text;
    const auto analysis = analyze(*input, {});
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(analysis->explained_time, analysis->kernel_time);
    EXPECT_EQ(analysis->steps.size(), 3U);
    EXPECT_EQ(analysis->layers, 2.0);
    EXPECT_EQ(analysis->steps[0].kernels, 46.0);
    double flops = 0.0;
    for (const AccountStage& stage : analysis->by_operator) {
        for (const Record& record : stage.records) {
            if (record.name.starts_with("onnx::MatMul")) flops += record.work.flops.value * stage.repetitions;
        }
    }
    const double weights = 2.0 * (4 * 256 * 256 + 2 * 256 * 1024) + 256.0 * 1000;
    EXPECT_EQ(flops, 3 * (2.0 * 128 * weights + 2 * 2 * 2.0 * 8 * 64 * 64 * 64));
    for (const std::string& note : analysis->account.notes) EXPECT_EQ(note.find("graph"), std::string::npos) << note;
}

}  // namespace
}  // namespace roofline::analyze
