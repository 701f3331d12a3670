#include <gtest/gtest.h>

#include "core/devices.hpp"
#include "roofline/assess/measured.hpp"

namespace roofline::assess {

extern const RowReader batched_rows;

namespace {

using namespace testing;

Measurement read(const std::string& op, const std::string& type, const std::string& sizes, std::string& refused) {
    const auto table = CsvTable::parse("op,heads,tokens,framework\n" + op + "," + sizes + ",SGLang\n", "t.csv");
    EXPECT_TRUE(table.has_value());
    Device device = exact_device();
    set_rate(device, Engine::matrix, DType::fp8, 2048.0);
    Measurement row;
    row.kind = op;
    row.type = row.fit_type = type;
    refused = batched_rows.read({*table, table->rows().front(), device}, row);
    return row;
}

TEST(BatchedRows, QueriesIntoTheLatentByHand) {
    std::string refused;
    const Measurement row = read("mla_gen_pre", "bf16", "16,3", refused);
    ASSERT_EQ(refused, "");
    const predict::Kernel& kernel = row.calls.at(0).kernel;
    // 16 heads: 3 x 128 times 128 x 512 gives 3 x 512.
    EXPECT_EQ(kernel.copies, 16.0);
    EXPECT_EQ(kernel.rows, 3.0);
    EXPECT_EQ(kernel.inner, 128.0);
    EXPECT_EQ(kernel.cols, 512.0);
    EXPECT_EQ(kernel.flops, 6291456.0);
    EXPECT_EQ(kernel.weight_bytes, 2097152.0);
    EXPECT_EQ(kernel.input_bytes, 12288.0);
    EXPECT_EQ(kernel.output_bytes, 49152.0);
    EXPECT_EQ(row.stack, "sglang");
    EXPECT_EQ(row.family, "16");
}

TEST(BatchedRows, LatentIntoValuesInEightBits) {
    std::string refused;
    const Measurement row = read("mla_gen_post", "fp8", "16,3", refused);
    ASSERT_EQ(refused, "");
    const predict::Kernel& kernel = row.calls.at(0).kernel;
    EXPECT_EQ(row.calls.at(0).type, DType::fp8);
    EXPECT_EQ(kernel.inner, 512.0);
    EXPECT_EQ(kernel.cols, 128.0);
    EXPECT_EQ(kernel.flops, 6291456.0);
    EXPECT_EQ(kernel.weight_bytes, 1048576.0);
    EXPECT_EQ(kernel.input_bytes, 24576.0);
    EXPECT_EQ(kernel.output_bytes, 12288.0) << "results are bf16";
}

TEST(BatchedRows, WhatCannotBeReadIsRefusedWithItsReason) {
    std::string refused;
    read("mla_gen_pre", "bf16", ",3", refused);
    EXPECT_EQ(refused, "heads or tokens are missing or zero");
    read("mla_gen_pre", "fp3", "16,3", refused);
    EXPECT_EQ(refused, "unknown number type");
}

}  // namespace
}  // namespace roofline::assess
