#include <algorithm>

#include <gtest/gtest.h>

#include "roofline/bench/cuda/attention_division.hpp"

namespace roofline::cuda::kernels {
namespace {

// An H200 with one block a multiprocessor: 132 of them, in groups that hold 15 clusters of eight, 31 of four.
int h200(int blocks) {
    switch (blocks) {
        case 1:
            return 132;
        case 2:
            return 132;
        case 3:
            return 126;
        case 4:
            return 124;
        case 8:
            return 120;
        default:
            return 0;  // sizes that this test leaves out
    }
}

Work work_of(int heads, int context, int query_heads, int dimension) {
    return {heads, context, query_heads * dimension / 4, 256, 128, 128 * 2 * dimension};
}

TEST(CudaDivision, GivesEveryKeyToOneBlockAndNoClusterNothing) {
    for (const int heads : {1, 2, 8, 32, 131, 133, 500, 5000}) {
        for (const int context : {1, 77, 128, 129, 333, 1000, 1024, 8191, 8192, 131072}) {
            for (const int fewest : {1, 2}) {
                for (const Division& one :
                     divisions(work_of(heads, context, 16, 256), fewest, fewest == 1 ? 1 : most_in_cluster, h200)) {
                    const long splits = static_cast<long>(one.clusters) * one.blocks;
                    EXPECT_EQ(one.split_keys % 128, 0);
                    EXPECT_GE(splits * one.split_keys, context) << heads << " heads, context " << context;
                    EXPECT_LT(static_cast<long>(one.clusters - 1) * one.blocks * one.split_keys, context)
                        << heads << " heads, context " << context;
                    EXPECT_LE(one.clusters, most_clusters);
                    if (one.clusters > 1) {
                        EXPECT_LE(heads * splits, most_meeting);
                    }
                }
            }
        }
    }
}

TEST(CudaDivision, DoesNotSplitWhereHeadsFillTheDevice) {
    // 128 heads for 132 multiprocessors: a second round of blocks would take as long as the first.
    const auto found = divisions(work_of(128, 4096, 16, 256), 1, 1, h200);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].clusters, 1);
    EXPECT_EQ(found[0].split_keys, 4096);
}

TEST(CudaDivision, FillsTheDeviceForOneLongSequence) {
    // Two heads of 1,024 units each. Clusters of eight: 7 of a head, 112 blocks, are as many as run at once.
    const auto found = divisions(work_of(2, 131072, 16, 256), 2, most_in_cluster, h200);
    const auto eight = std::ranges::find(found, most_in_cluster, &Division::blocks);
    ASSERT_NE(eight, found.end());
    EXPECT_EQ(eight->clusters, 7);
    EXPECT_EQ(eight->split_keys, 19 * 128);  // ceil(1024 / 56) units
    // By hand: 19 units and one; a ticket, and a turn of 16 parts, which 7 are; 128 fours of 7 clusters in bytes.
    EXPECT_NEAR(eight->cost, 20.0 + 1.0 + 0.25 + 128.0 * 7 * 16 / 65536, 1e-9);
    for (const Division& one : found) EXPECT_GT(2 * one.clusters * one.blocks, 96) << one.blocks;
}

TEST(CudaDivision, KeepsAShortSequenceInOneCluster) {
    // Eight units: a block for each, and nothing to fetch from the L2.
    const auto found = divisions(work_of(2, 1024, 16, 256), 2, most_in_cluster, h200);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].blocks, 8);
    EXPECT_EQ(found[0].clusters, 1);
    EXPECT_EQ(found[0].split_keys, 128);
    EXPECT_NEAR(found[0].cost, 2.0, 1e-9);
}

TEST(CudaDivision, KnowsThatAllPartsThroughOneBlockAreSlow) {
    // Without clusters each split costs the last block 16 KiB more: so there are 8 to 32, and not the 64 that would
    // run.
    const auto found = divisions(work_of(2, 8192, 16, 256), 1, 1, h200);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_GT(found[0].clusters, 8);
    EXPECT_LT(found[0].clusters, 32);
}

TEST(CudaDivision, SkipsSizesThatDoNotRun) {
    for (const Division& one : divisions(work_of(2, 8192, 4, 128), 2, most_in_cluster, h200)) {
        EXPECT_NE(h200(one.blocks), 0);
    }
}

}  // namespace
}  // namespace roofline::cuda::kernels
