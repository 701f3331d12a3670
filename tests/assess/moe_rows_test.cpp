#include <gtest/gtest.h>

#include "core/devices.hpp"
#include "roofline/assess/measured.hpp"

namespace roofline::assess {

extern const RowReader moe_rows;

namespace {

using namespace testing;

constexpr std::string_view header =
    "gpu,op,dtype,tokens,hidden,inter,topk,experts,moe_tp,moe_ep,distribution,framework,kernel\n";

struct Reading {
    std::string refused;
    Measurement row;
    const predict::Kernel& up() const { return row.calls[0].kernel; }
    const predict::Kernel& down() const { return row.calls[1].kernel; }
};

/// `sizes`: tokens, hidden, inter, topk, experts, moe_tp, moe_ep, distribution.
Reading read(const std::string& sizes, const std::string& kernel, const std::string& type = "bf16",
             const Device& device = exact_device()) {
    const auto table = CsvTable::parse(
        std::string(header) + "exact,moe_ffn," + type + "," + sizes + ",VLLM," + kernel + "\n", "t.csv");
    EXPECT_TRUE(table.has_value());
    Reading reading;
    reading.row.kind = "moe_ffn";
    reading.row.type = reading.row.fit_type = type;
    reading.refused = moe_rows.read({*table, table->rows().front(), device}, reading.row);
    if (reading.refused.empty()) {
        EXPECT_EQ(reading.row.calls.size(), 2u);
    }
    return reading;
}

// Token t takes experts t and t + 4. The first of two ranks has experts 0 to 3: one row for each. Half of the width of
// 8 is here: 4, or 8 columns for gate and up together.
constexpr const char* small = "4,16,8,2,8,2,2,balanced";

TEST(MoeRows, ABalancedRowByHand) {
    const Reading reading = read(small, "some_experts");
    ASSERT_EQ(reading.refused, "");
    const predict::Kernel& up = reading.up();
    EXPECT_EQ(up.pattern, Pattern::experts);
    EXPECT_EQ(up.copies, 4.0);
    EXPECT_EQ(up.rows, 1.0);
    EXPECT_EQ(up.cols, 8.0);
    EXPECT_EQ(up.inner, 16.0);
    EXPECT_EQ(up.queries, 1.0);
    EXPECT_EQ(up.flops, 2.0 * 4 * 8 * 16);
    EXPECT_EQ(up.weight_bytes, 2.0 * 4 * 8 * 16);
    EXPECT_EQ(up.input_bytes, 128.0 + 128.0) << "4 tokens of 16, and 4 gathered rows of 16";
    EXPECT_EQ(up.output_bytes, 64.0) << "4 rows of 8";
    const predict::Kernel& down = reading.down();
    EXPECT_EQ(down.copies, 4.0);
    EXPECT_EQ(down.rows, 1.0);
    EXPECT_EQ(down.cols, 16.0);
    EXPECT_EQ(down.inner, 4.0);
    EXPECT_EQ(down.flops, 2.0 * 4 * 16 * 4);
    EXPECT_EQ(down.weight_bytes, 2.0 * 4 * 16 * 4);
    EXPECT_EQ(down.input_bytes, 32.0) << "4 rows of 4";
    EXPECT_EQ(down.output_bytes, 128.0 + 128.0) << "4 rows of 16, summed to 4 tokens of 16";
    EXPECT_EQ(reading.row.stack, "vllm/cutlass");
    EXPECT_EQ(reading.row.fit_type, "bf16");
    EXPECT_EQ(reading.row.family, "16x8x8");
    EXPECT_EQ(reading.row.label, "4 tokens, 16 x 8, 2 of 8 experts, tp 2, ep 2, balanced");
}

TEST(MoeRows, TritonMakesRoomForSlotsOfOtherRanks) {
    const Reading reading = read(small, "vllm_fused_moe");
    ASSERT_EQ(reading.refused, "");
    EXPECT_EQ(reading.row.stack, "vllm/triton");
    EXPECT_EQ(reading.up().flops, 1024.0) << "but computes its own";
    EXPECT_EQ(reading.up().queries, 2.0) << "8 slots offered to 4 experts";
    EXPECT_EQ(reading.up().output_bytes, 128.0) << "8 slots of 8";
    EXPECT_EQ(reading.down().input_bytes, 64.0);
    EXPECT_EQ(reading.down().output_bytes, 256.0 + 128.0);
}

TEST(MoeRows, RawKernelsComputeWholeTokens) {
    const Reading reading = read(small, "sglang_fused_moe_triton");
    ASSERT_EQ(reading.refused, "");
    EXPECT_EQ(reading.up().copies, 4.0);
    EXPECT_EQ(reading.up().rows, 2.0) << "4 tokens of 2 slots over 4 experts";
    EXPECT_EQ(reading.up().queries, 2.0);
    EXPECT_EQ(reading.up().flops, 2048.0);
    EXPECT_EQ(reading.up().input_bytes, 128.0 + 256.0);
    const Reading four_bits = read(small, "sglang_fused_moe_triton", "w4a16_mxfp4");
    EXPECT_EQ(four_bits.up().flops, 1024.0) << "another path of the benchmark leaves them out";
}

TEST(MoeRows, WeightsThatFitTheCacheArePartlyWarm) {
    // 1024 + 512 bytes of weights in 3072 of cache: half of it is free, so 0.7 / 2 of them do not come from memory.
    Device device = exact_device();
    set_capacity(device, Level::cache, 3072.0);
    const Reading reading = read(small, "some_experts", "bf16", device);
    EXPECT_DOUBLE_EQ(reading.up().weight_bytes, 1024.0 * 0.65);
    EXPECT_DOUBLE_EQ(reading.down().weight_bytes, 512.0 * 0.65);
    set_capacity(device, Level::cache, 1536.0);
    EXPECT_EQ(read(small, "some_experts", "bf16", device).up().weight_bytes, 1024.0);
}

TEST(MoeRows, TypesHaveTheirBytesAndEngines) {
    Device device = exact_device();
    set_rate(device, Engine::matrix, DType::fp8, 2048.0);
    set_rate(device, Engine::matrix, DType::fp4, 4096.0);
    struct Expected {
        std::string type, fit_type;
        DType engine;
        double weight, activation;  // bytes of one number
    };
    for (const Expected& expected : {Expected{"bf16", "bf16", DType::bf16, 2.0, 2.0},
                                     {"fp8", "fp8", DType::fp8, 1.0, 1.0},
                                     {"fp8_block", "fp8_block", DType::fp8, 1.0 + 4.0 / 128 / 128, 1.0},
                                     {"int4_wo", "int4", DType::bf16, 0.5 + 2.0 / 32, 2.0},
                                     {"w4a16_mxfp4", "mxfp4/bf16", DType::bf16, 0.5 + 1.0 / 32, 2.0},
                                     {"w4a8_mxfp4_mxfp8", "mxfp4/fp8", DType::fp8, 0.5 + 1.0 / 32, 1.0 + 1.0 / 32},
                                     {"nvfp4", "nvfp4", DType::fp4, 0.5 + 1.0 / 16, 0.5 + 1.0 / 16}}) {
        const Reading reading = read(small, "some_experts", expected.type, device);
        ASSERT_EQ(reading.refused, "") << expected.type;
        EXPECT_EQ(reading.row.fit_type, expected.fit_type);
        EXPECT_EQ(reading.row.calls[0].type, expected.engine) << expected.type;
        EXPECT_EQ(reading.row.calls[1].type, expected.engine) << expected.type;
        EXPECT_DOUBLE_EQ(reading.up().weight_bytes, 512.0 * expected.weight) << expected.type;
        EXPECT_DOUBLE_EQ(reading.up().input_bytes, 128.0 + 64.0 * expected.activation) << expected.type;
        EXPECT_EQ(reading.up().output_bytes, 64.0) << expected.type;
    }
}

TEST(MoeRows, SomeModelsHaveNoGate) {
    EXPECT_EQ(read("4,16,8,22,44,1,1,balanced", "some_experts").up().cols, 8.0);
    EXPECT_EQ(read("4,2688,1856,6,128,2,1,balanced", "some_experts").up().cols, 928.0);
    EXPECT_EQ(read("4,2688,1856,6,128,2,1,balanced", "vllm_fused_moe").up().cols, 1856.0) << "knows no other";
    EXPECT_EQ(read("4,2688,1920,6,128,2,1,balanced", "some_experts").up().cols, 1920.0);
}

TEST(MoeRows, KernelsByNameAndGeneration) {
    Device device = exact_device();
    const auto stack = [&](const std::string& kernel) { return read(small, kernel, "bf16", device).row.stack; };
    EXPECT_EQ(stack("vllm_xpu_moe"), "vllm/xpu");
    EXPECT_EQ(stack("sglang_marlin_moe"), "vllm/marlin");
    EXPECT_EQ(stack("sglang_flashinfer_trtllm_moe"), "vllm/gen");
    EXPECT_EQ(stack("vllm_fp8moe_triton_tritonexperts"), "vllm/triton");
    EXPECT_EQ(stack("moe_torch_flow_cutlass"), "vllm/cutlass");
    EXPECT_EQ(stack("moe_torch_flow"), "vllm/gen");
    device.generation = "ampere";
    EXPECT_EQ(stack("moe_torch_flow"), "vllm/cutlass");
    device.generation = "hopper";
    EXPECT_EQ(stack("moe_torch_flow"), "vllm/triton");
}

TEST(MoeRows, PowerLawsLoadTheTimedRankMore) {
    const Reading even = read("512,64,32,8,128,1,8,balanced", "some_experts");
    const Reading skewed = read("512,64,32,8,128,1,8,power_law_1.2", "some_experts");
    ASSERT_EQ(skewed.refused, "");
    EXPECT_GT(skewed.up().flops, even.up().flops);
    EXPECT_LE(skewed.up().weight_bytes, even.up().weight_bytes);
}

TEST(MoeRows, WhatCannotBeReadIsRefusedWithItsReason) {
    const auto reason = [](const std::string& sizes, const std::string& type = "bf16") {
        return read(sizes, "some_experts", type).refused;
    };
    EXPECT_EQ(reason(",16,8,2,8,2,2,balanced"), "a size is missing, or is no whole number up to a billion");
    EXPECT_EQ(reason("4,16,8,2,8,2,0,balanced"), "a size is missing, or is no whole number up to a billion");
    EXPECT_EQ(reason("4,16,8,2,8,-2,2,balanced"), "a size is missing, or is no whole number up to a billion");
    EXPECT_EQ(reason("4.5,16,8,2,8,2,2,balanced"), "a size is missing, or is no whole number up to a billion");
    EXPECT_EQ(reason("4,16,8,2,8192,2,2,balanced"), "more experts or tokens than can be meant");
    EXPECT_EQ(reason("1e300,16,8,2,8,2,2,balanced"), "a size is missing, or is no whole number up to a billion");
    EXPECT_EQ(reason("4,16,8,9,8,2,2,balanced"), "a token goes through more experts than there are");
    EXPECT_EQ(reason("4,16,8,2,8,2,3,balanced"), "the experts cannot be shared evenly by moe_ep ranks");
    EXPECT_EQ(reason("4,16,8,2,8,2,16,balanced"), "the experts cannot be shared evenly by moe_ep ranks");
    EXPECT_EQ(reason("4,16,8,2,8,2,2,zipf"), "unknown distribution of tokens over experts");
    EXPECT_EQ(reason("4,16,8,2,8,2,2,power_law_"), "unknown distribution of tokens over experts");
    EXPECT_EQ(reason(small, "fp3"), "unknown number type");
}

}  // namespace
}  // namespace roofline::assess
