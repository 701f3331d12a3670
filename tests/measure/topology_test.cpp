// What hwloc writes, read. The texts are what hwloc 2.9 writes for HWLOC_SYNTHETIC="node:2 core:2 pu:2" and
// "core:2 pu:1", less the attributes that are not read.
#include "roofline/measure/topology.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace roofline::measure {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* two_nodes = R"(<?xml version="1.0" encoding="UTF-8"?>
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x000000ff" complete_cpuset="0x000000ff">
    <object type="Group" cpuset="0x0000000f" complete_cpuset="0x0000000f" gp_index="9">
      <object type="NUMANode" os_index="0" cpuset="0x0000000f" complete_cpuset="0x0000000f" local_memory="1073741824">
        <page_type size="4096" count="262144"/>
      </object>
      <object type="Core" os_index="0" cpuset="0x00000003" complete_cpuset="0x00000003"/>
      <object type="Core" os_index="1" cpuset="0x0000000c" complete_cpuset="0x0000000c"/>
    </object>
    <object type="Group" cpuset="0x000000f0" complete_cpuset="0x000000f0" gp_index="17">
      <object type="NUMANode" os_index="1" cpuset="0x000000f0" complete_cpuset="0x000000f0" local_memory="1073741824">
        <page_type size="4096" count="262144"/>
      </object>
      <object type="Core" os_index="2" cpuset="0x00000030" complete_cpuset="0x00000030"/>
      <object type="Core" os_index="3" cpuset="0x000000c0" complete_cpuset="0x000000c0"/>
    </object>
  </object>
</topology>
)";

TEST(Topology, ACpusetIsBitsInWordsWithTheHighestFirst) {
    EXPECT_THAT(processors_in("0x0000000c"), ElementsAre(2, 3));
    EXPECT_THAT(processors_in("0x00000001,0x80000001"), ElementsAre(0, 31, 32));
    EXPECT_THAT(processors_in("0x1,0x0,0x0"), ElementsAre(64));
    EXPECT_THAT(processors_in(""), IsEmpty());
    EXPECT_THAT(processors_in("0xf...f,0x1"), IsEmpty());
    EXPECT_THAT(processors_in("0x100000000"), IsEmpty());
}

TEST(Topology, NodesAndCoresHoldTheirProcessors) {
    const auto topology = read_topology(two_nodes, {0, 1, 2, 3, 4, 5, 6, 7});
    ASSERT_TRUE(topology);
    EXPECT_THAT(topology->nodes, ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
    EXPECT_THAT(topology->cores,
                ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5), ElementsAre(6, 7)));
}

TEST(Topology, OnlyProcessorsThatMayBeUsedCount) {
    const auto topology = read_topology(two_nodes, {1, 2});
    ASSERT_TRUE(topology);
    EXPECT_THAT(topology->nodes, ElementsAre(ElementsAre(1, 2)));
    EXPECT_THAT(topology->cores, ElementsAre(ElementsAre(1), ElementsAre(2)));
    EXPECT_FALSE(read_topology(two_nodes, {99}));
    EXPECT_FALSE(read_topology("", {0}));
    EXPECT_FALSE(read_topology("<object type=\"Core\" cpuset=\"0x", {0}));
}

TEST(Topology, HwlocsOwnTextIsReadWhereItIsHere) {
    ::setenv("HWLOC_SYNTHETIC", "node:2 core:2 pu:2", 1);
    const auto xml = hwloc_xml();
    ::unsetenv("HWLOC_SYNTHETIC");
    if (!xml) GTEST_SKIP() << "no libhwloc.so.15 on this machine";
    const auto topology = read_topology(*xml, {0, 1, 2, 3, 4, 5, 6, 7});
    ASSERT_TRUE(topology);
    EXPECT_THAT(topology->nodes, ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
    EXPECT_EQ(topology->cores.size(), 4U);
}

}  // namespace
}  // namespace roofline::measure
