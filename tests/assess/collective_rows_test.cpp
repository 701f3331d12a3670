// Rows of collectives: what their columns mean, and which are refused.
#include <gtest/gtest.h>

#include "roofline/assess/measured.hpp"

namespace roofline::assess {
namespace {

constexpr const char* header = "gpu,op,dtype,num_gpus,devices_per_node,topology,message_bytes,time_us,framework,note\n";

Measurements read(const std::string& rows) {
    Measurements measured;
    const auto done = read_measured(header + rows, "t.csv", measured);
    EXPECT_TRUE(done.has_value());
    return measured;
}

TEST(CollectiveRows, ALibrarysSumOnOneNode) {
    const Measurements measured = read("h100_sxm,all_reduce,fp16,8,,,1048576,25.4,nccl,\n");
    ASSERT_EQ(measured.rows.size(), 1U);
    const Measurement& row = measured.rows[0];
    const predict::Kernel& kernel = row.calls.at(0).kernel;
    EXPECT_EQ(row.calls[0].kernel_class->name, "all_reduce");
    EXPECT_EQ(kernel.ranks, 8.0);
    EXPECT_EQ(kernel.nodes, 1.0);
    EXPECT_EQ(kernel.message_bytes, 1048576.0);
    EXPECT_EQ(kernel.link_bytes, 1048576.0) << "the switch adds: sent once";
    EXPECT_EQ(kernel.network_bytes, 0.0);
    EXPECT_EQ(row.calls[0].machine.link, 450e9);
    EXPECT_EQ(row.fit_type, "message");
    EXPECT_EQ(row.stack, "nccl");
    EXPECT_EQ(row.family, "1048576/8/8");
    EXPECT_EQ(row.label, "8 ranks, 1048576 B");
    // 1,048,576 B / 450 GB/s.
    EXPECT_DOUBLE_EQ(row.limit, 1048576.0 / 450e9);
    EXPECT_DOUBLE_EQ(row.attainable, row.limit);
}

TEST(CollectiveRows, EachOperationHasItsClassAndItsShare) {
    const Measurements measured = read(
        "a100_sxm,custom_all_reduce,bf16,4,,,4000000,69,trtllm,\n"
        "a100_sxm,all_gather,fp16,4,,,4000000,60,nccl,\n"
        "a100_sxm,reduce_scatter,fp16,4,,,4000000,60,nccl,\n"
        "a100_sxm,alltoall,fp16,4,,,4000000,60,nccl,\n"
        "a100,send_recv,fp16,2,2,a100_dgx,4000000,60,NCCL via torch.distributed,\n");
    ASSERT_EQ(measured.rows.size(), 5U);
    const std::vector<std::pair<std::string_view, double>> expected = {
        {"all_reduce", 6e6}, {"all_gather", 3e6}, {"reduce_scatter", 3e6}, {"all_to_all", 3e6}, {"send_receive", 4e6}};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(measured.rows[i].calls.at(0).kernel_class->name, expected[i].first);
        EXPECT_EQ(measured.rows[i].calls.at(0).kernel.link_bytes, expected[i].second) << expected[i].first;
        EXPECT_DOUBLE_EQ(measured.rows[i].limit, expected[i].second / 300e9);
    }
    EXPECT_EQ(measured.rows[0].stack, "trtllm");
    EXPECT_EQ(measured.rows[4].stack, "torch_distributed");
}

TEST(CollectiveRows, AcrossNodesARowMustSayWhatJoinsThem) {
    const Measurements measured = read("a100,all_reduce,fp16,16,8,a100_dgx,8000000,2000,NCCL,\n");
    EXPECT_TRUE(measured.rows.empty());
    ASSERT_EQ(measured.refused.size(), 1U);
    EXPECT_EQ(measured.refused[0].reason, "the network between its nodes is not stated");
}

TEST(CollectiveRows, CardsBridgedInPairsCrossTheHostBeyond) {
    const Measurements measured = read(
        "a100,all_reduce,fp16,2,2,a100_pairwise_nvlink,8000000,75,NCCL,\n"
        "a100,all_reduce,fp16,4,4,a100_pairwise_nvlink,8000000,614,NCCL,\n"
        "l40s,all_reduce,fp16,4,,,8000000,2538,nccl,\n");
    ASSERT_EQ(measured.rows.size(), 3U);
    EXPECT_EQ(measured.rows[0].device->name, "a100-pcie-80gb") << "the topology names the card";
    EXPECT_EQ(measured.rows[0].fit_type, "message");
    EXPECT_DOUBLE_EQ(measured.rows[0].limit, 8e6 / 300e9);
    EXPECT_EQ(measured.rows[1].fit_type, "message, host");
    EXPECT_DOUBLE_EQ(measured.rows[1].limit, 4e6 / 32e9) << "half of the vector leaves each pair, over two hosts links";
    EXPECT_DOUBLE_EQ(measured.rows[2].limit, 12e6 / 32e9) << "no peer link: 6/4 of the vector over PCIe";
}

TEST(CollectiveRows, WhatCannotBeUsedIsRefusedWithItsReason) {
    const Measurements measured = read(
        "h100_sxm,all_reduce,fp16,1,,,1024,5,nccl,\n"
        "h100_sxm,all_reduce,fp16,8,,,,5,nccl,\n"
        "h100_sxm,all_reduce,fp16,8,3,,1024,5,nccl,\n"
        "h100_sxm,all_reduce,fp16,8,16,,1024,5,nccl,\n"
        "h100_sxm,all_reduce,fp16,8,0,,1024,5,nccl,\n"
        "h100,send_recv,fp16,2,2,h100_pairwise_nvlink,1024,5,nccl,SUSPECT: copied from elsewhere\n"
        "h100_sxm,all_gather,fp16,8,,,450000000,800,nccl,\n");
    EXPECT_TRUE(measured.rows.empty());
    ASSERT_EQ(measured.refused.size(), 7U);
    EXPECT_EQ(measured.refused[0].reason, "num_gpus below 2, or no message_bytes");
    EXPECT_EQ(measured.refused[1].reason, "num_gpus below 2, or no message_bytes");
    for (const std::size_t i : {2U, 3U, 4U})
        EXPECT_EQ(measured.refused[i].reason, "devices_per_node does not divide num_gpus");
    EXPECT_EQ(measured.refused[5].reason, "marked as suspect in its note");
    // 7/8 of 450 MB at 450 GB/s take 875 us.
    EXPECT_EQ(measured.refused[6].reason, "faster than the limit");
}

}  // namespace
}  // namespace roofline::assess
