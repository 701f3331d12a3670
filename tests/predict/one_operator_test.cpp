#include "roofline/predict/one_operator.hpp"

#include <gtest/gtest.h>

#include "core/devices.hpp"
#include "model/scenarios.hpp"

namespace roofline::predict {
namespace {

using testing::exact_device;
using testing::format;

double memory(const OneOperator& op) {
    return op.work.at(Level::memory).value;
}

TEST(OneGemm, CountsTwoFlopsAMultiplyAddAndEveryOperandOnce) {
    // [3 x 4096] x [4096 x 1000] in bf16
    const OneOperator op = gemm({.m = 3, .n = 1000, .k = 4096});
    EXPECT_EQ(op.work.flops.value, 2.0 * 3.0 * 1000.0 * 4096.0);
    EXPECT_EQ(memory(op), 2.0 * (4096.0 * 1000.0 + 3.0 * 4096.0 + 3.0 * 1000.0));
    EXPECT_EQ(op.work.type, DType::bf16);
}

TEST(OneGemm, ExactCountsNeedOneAdditionLess) {
    EXPECT_EQ(gemm({.m = 3, .n = 5, .k = 7, .count = FlopCount::exact}).work.flops.value, 3.0 * 5.0 * 13.0);
}

TEST(OneGemm, TrafficMayBeLoadsOrWeightsAlone) {
    EXPECT_EQ(memory(gemm({.m = 3, .n = 5, .k = 7, .traffic = Traffic::weights})), 2.0 * 35.0);
    EXPECT_EQ(memory(gemm({.m = 3, .n = 5, .k = 7, .traffic = Traffic::loads})), 2.0 * (35.0 + 21.0));
    EXPECT_EQ(memory(gemm({.m = 3, .n = 5, .k = 7})), 2.0 * (35.0 + 21.0 + 15.0));
}

TEST(OneGemm, PackedWeightsShrinkBytesAndNotFlops) {
    const OneOperator op = gemm({.m = 1, .n = 100, .k = 1280, .weights = format("awq")});
    EXPECT_EQ(op.work.flops.value, 2.0 * 128000.0);
    EXPECT_EQ(op.work.type, DType::bf16);
    EXPECT_EQ(memory(op), 128000.0 * 4.15625 / 8.0 + 2.0 * 1380.0);
    // fp8 in, bf16 out
    const OneOperator narrow = gemm({.m = 1, .n = 100, .k = 1280, .weights = format("fp8"), .activation = DType::fp8});
    EXPECT_EQ(narrow.work.type, DType::fp8);
    EXPECT_EQ(memory(narrow), 128000.0 + 1280.0 + 200.0);
}

TEST(OneAttention, AgreesWithTheOperatorOfAModel) {
    // Llama-3-8B's core, as in tests/model/llama_golden_test.cpp
    const OneOperator decode = attention({.batch = 1, .query_length = 1, .kv_length = 4096});
    EXPECT_EQ(decode.work.flops.value, 67108864.0);
    EXPECT_EQ(memory(decode), 16777216.0 + 16384.0);
    const OneOperator prefill = attention({.batch = 1, .query_length = 512, .kv_length = 512});
    EXPECT_EQ(prefill.work.flops.value, 2151677952.0);
    EXPECT_EQ(memory(prefill), 2097152.0 + 8388608.0);
}

TEST(OneAttention, WithoutAMaskOrUnfusedComputesTheRectangle) {
    const double square = 4.0 * 32.0 * 128.0 * 512.0 * 512.0;
    EXPECT_EQ(attention({.query_length = 512, .kv_length = 512, .causal = false}).work.flops.value, square);
    const OneOperator unfused = attention({.query_length = 512, .kv_length = 512, .scores_in_memory = true});
    EXPECT_EQ(unfused.work.flops.value, square);
    // 32 x 512 x 512 scores of 2 B, four times
    EXPECT_EQ(memory(unfused), 2097152.0 + 8388608.0 + 4.0 * 2.0 * 32.0 * 512.0 * 512.0);
}

TEST(JudgeOn, HoldsWorkAgainstTheEngineThatRunsIt) {
    const Judgement same = judge_on(bare_work(65536, 256, DType::bf16), exact_device());
    EXPECT_EQ(same.times.limit.value, 64.0);
    EXPECT_EQ(same.verdict.bound, Bound::compute);
    EXPECT_EQ(same.verdict.intensity.value, 256.0);
    EXPECT_FALSE(same.stand_in.has_value());
    const Judgement other = judge_on(bare_work(65536, 256, DType::fp8), exact_device());
    EXPECT_EQ(other.work.type, DType::bf16);
    EXPECT_EQ(other.times.limit.value, 64.0);
    EXPECT_TRUE(other.stand_in.has_value());
    const Judgement unknown = judge_on(bare_work(65536, 256, DType::bf16), Device{});
    EXPECT_EQ(unknown.times.limit.value, 0.0);
    EXPECT_TRUE(unknown.stand_in.has_value());
}

TEST(JudgeOn, MeasuredCeilingsAreNeverBelowTheLimitInTime) {
    Device device = exact_device();
    device.ceilings["memory.bandwidth"] = Figure{2.0, "bench", ""};
    const Judgement slow = judge_on(bare_work(0, 256, DType::bf16), device);
    EXPECT_EQ(slow.times.limit.value, 64.0);
    EXPECT_EQ(slow.times.attainable.value, 128.0);
    EXPECT_EQ(slow.times.expected.value, 128.0);
}

}  // namespace
}  // namespace roofline::predict
