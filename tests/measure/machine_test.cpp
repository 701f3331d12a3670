// The files in which a machine describes itself, as text.
#include "roofline/measure/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace roofline::measure {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Machine, AnX86ProcessorSaysItsName) {
    const std::string text =
        "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 143\n"
        "model name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz\n";
    EXPECT_EQ(cpu_name(text), "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz");
    EXPECT_EQ(cpu_vendor(text), "Intel");
}

TEST(Machine, AnArmProcessorIsKnownByItsNumbers) {
    EXPECT_EQ(cpu_name("CPU implementer\t: 0x41\nCPU part\t: 0xd40\n"), "Arm Neoverse-V1");
    EXPECT_EQ(cpu_vendor("CPU implementer\t: 0x41\nCPU part\t: 0xd40\n"), "Arm");
    EXPECT_EQ(cpu_name("CPU implementer\t: 0x99\nCPU part\t: 0x123\n"), "AArch64 processor 0x99:0x123");
    EXPECT_EQ(cpu_name(""), "unknown processor");
}

TEST(Machine, ProcessorsAreListedByRanges) {
    EXPECT_THAT(processor_list("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
    EXPECT_THAT(processor_list("5"), ElementsAre(5));
    EXPECT_THAT(processor_list(""), IsEmpty());
    EXPECT_THAT(processor_list("2-"), IsEmpty());
}

TEST(Machine, AContainersShareOfProcessors) {
    EXPECT_DOUBLE_EQ(processor_quota("150000 100000\n"), 1.5);
    EXPECT_EQ(processor_quota("max 100000\n"), 0.0);
    EXPECT_EQ(processor_quota(""), 0.0);
    EXPECT_EQ(processor_quota("x y"), 0.0);
}

TEST(Machine, MemoryIsGivenInKibibytes) {
    EXPECT_EQ(meminfo_bytes("MemTotal:       16 kB\nMemAvailable:   8 kB\n", "MemAvailable"), 8192.0);
    EXPECT_EQ(meminfo_bytes("MemTotal:       16 kB\n", "MemAvailable"), 0.0);
}

TEST(Machine, TheChosenWordStandsInBrackets) {
    EXPECT_EQ(chosen_word("always [madvise] never\n"), "madvise");
    EXPECT_EQ(chosen_word("nothing"), "");
}

TEST(Machine, OnlyOurProcessorsTimeIsAddedUp) {
    const std::string stat =
        "cpu  600 60 60 6000 60 0 0 6 0 0\n"
        "cpu0 100 10 10 1000 10 1 2 5 0 0\n"
        "cpu1 500 50 50 5000 50 0 0 1 0 0\n"
        "intr 1 2 3\n";
    const auto found = processor_time(stat, {0});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->busy, 100.0 + 10.0 + 10.0 + 1.0 + 2.0);
    EXPECT_EQ(found->idle, 1010.0);
    EXPECT_EQ(found->stolen, 5.0);
    EXPECT_FALSE(processor_time(stat, {7}));
    EXPECT_FALSE(processor_time("", {0}));
}

TEST(Machine, ThisOneHasAProcessor) {
    const Machine machine = this_machine();
    EXPECT_FALSE(machine.cpu.empty());
    EXPECT_FALSE(machine.processors.empty());
    EXPECT_FALSE(machine.nodes.empty());
}

}  // namespace
}  // namespace roofline::measure
