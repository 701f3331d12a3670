// Collectives: seconds by hand from the start values, and what must hold for any constants.
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/devices.hpp"
#include "roofline/io/calibration_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/predict/execution.hpp"

namespace roofline::predict {
namespace {

using Values = std::array<double, max_constants>;

Device builtin(std::string_view name) {
    auto device = io::builtin_device(name);
    EXPECT_TRUE(device.has_value()) << name;
    return device ? *device : Device{};
}

const KernelClass& class_of(Collective collective) {
    const KernelClass* found = kernel_class(name(collective));
    EXPECT_NE(found, nullptr) << name(collective);
    return found != nullptr ? *found : *kernel_classes().front();
}

Values start_values(const KernelClass& kernel_class) {
    Values values{};
    for (std::size_t i = 0; i < kernel_class.constants.size(); ++i) values[i] = kernel_class.constants[i].start;
    return values;
}

double seconds(Collective collective, const RankGroup& group, double bytes, const Device& device,
               const Values& values) {
    const Machine machine = machine_of(device, Engine::matrix, DType::bf16, group.per_node());
    return class_of(collective).seconds(collective_kernel(collective, group, bytes, device), machine, values);
}

double microseconds(Collective collective, const RankGroup& group, double bytes, const char* device) {
    return 1e6 * seconds(collective, group, bytes, builtin(device), start_values(class_of(collective)));
}

constexpr double mebi = 1024.0 * 1024.0;

// An H100 sends 450 GB/s to its peers and, by assumption, 50 GB/s to other nodes. Eight of them crowd their links by
// 1 + 0.1 x 6 / 14 = 1.04286: 431.507 GB/s each; four by 1.02: 441.176 GB/s.

TEST(CollectiveTimes, ASmallSumTakesTheQuickWay) {
    // 8 KiB: start 4 + 0.6 x 14 = 12.4 us; 1 + 0.3 x 6 = 2.8 copies of 8192 B at 0.4 x 431.507 GB/s = 0.1329 us.
    EXPECT_NEAR(microseconds(Collective::all_reduce, {8, 1}, 8192.0, "h100-sxm"), 12.5329, 1e-4);
}

TEST(CollectiveTimes, ALargeSumIsAddedUpInTheSwitch) {
    // 64 MiB = 67,108,864 B. In the switch: (67,108,864 / 0.75 + 0.4 x 67,108,864) / 431.507 GB/s = 269.572 us, less
    // than the 334.4 us of a ring. Through the pipeline: 269.572 + 2 sqrt(269.572 x 4) + 4 = 339.246 us.
    EXPECT_NEAR(microseconds(Collective::all_reduce, {8, 1}, 64.0 * mebi, "h100-sxm"), 12.4 + 339.2462, 1e-3);
}

TEST(CollectiveTimes, ALargeSumGoesRoundARingWhereTheSwitchDoesNotAdd) {
    // A100, 300 / 1.04286 = 287.671 GB/s: (14/8 + 0.4) x 67,108,864 B take 501.559 us; + 2 sqrt(501.559 x 4) + 4.
    EXPECT_NEAR(microseconds(Collective::all_reduce, {8, 1}, 64.0 * mebi, "a100-sxm-80gb"), 12.4 + 595.1409, 1e-3);
}

TEST(CollectiveTimes, ASumOverTwoNodesWaitsForTheNetwork) {
    // A ring over 16 passes 30/16 of 67,108,864 B between nodes, over 8 adapters of 0.7 x 50 GB/s: 449.390 us, more
    // than the 269.6 us within a node. start 12.4 + 15; 449.390 + 2 sqrt(449.390 x 4) + 4 = 538.185.
    EXPECT_NEAR(microseconds(Collective::all_reduce, {16, 2}, 64.0 * mebi, "h100-sxm"), 27.4 + 538.1850, 1e-3);
}

TEST(CollectiveTimes, AGatherAndAScatterByHand) {
    // 16 MiB on four: start 5 + 0.7 x 3 = 7.1; (0.75 + 0.35) x 16,777,216 B at 441.176 GB/s = 41.8312 us;
    // + 2 sqrt(41.8312 x 3) + 3 = 67.2360 us, less than 114.1 us the quick way.
    EXPECT_NEAR(microseconds(Collective::all_gather, {4, 1}, 16.0 * mebi, "h100-sxm"), 74.3360, 1e-3);
    EXPECT_NEAR(microseconds(Collective::reduce_scatter, {4, 1}, 16.0 * mebi, "h100-sxm"), 74.3360, 1e-3);
    // 4 KiB: 0.75 x 4096 B at 0.25 x 441.176 GB/s = 0.0279 us.
    EXPECT_NEAR(microseconds(Collective::all_gather, {4, 1}, 4096.0, "h100-sxm"), 7.1279, 1e-4);
}

TEST(CollectiveTimes, AnExchangeBetweenNodesByHand) {
    // 16 MiB on 2 x 8: start 5 + 0.7 x 7 + 15 = 24.9. Half of it leaves the node: 8,388,608 B at 35 GB/s = 239.675 us;
    // what stays takes 30.6 us. 239.675 + 2 sqrt(239.675 x 3) + 3 = 296.304.
    EXPECT_NEAR(microseconds(Collective::all_to_all, {16, 2}, 16.0 * mebi, "h100-sxm"), 321.2037, 1e-3);
}

TEST(CollectiveTimes, ASendByHand) {
    // 1 MiB: 1 + 1.3 x 1,048,576 B / 450 GB/s = 4.0292 us in bulk, 9.32 us the quick way; and 5 us of start.
    EXPECT_NEAR(microseconds(Collective::send_receive, {2, 1}, mebi, "h100-sxm"), 9.0292, 1e-4);
    // To another node: 1,048,576 x (1 + 0.05 x 1,048,576 / 9,048,576) B / 35 GB/s = 30.1329 us; start 5 + 15.
    EXPECT_NEAR(microseconds(Collective::send_receive, {2, 2}, mebi, "h100-sxm"), 50.1329, 1e-4);
}

TEST(CollectiveTimes, OneRankOnlyStarts) {
    EXPECT_NEAR(microseconds(Collective::all_reduce, {1, 1}, mebi, "h100-sxm"), 4.0, 1e-9);
    EXPECT_NEAR(microseconds(Collective::all_gather, {1, 1}, mebi, "h100-sxm"), 5.0, 1e-9);
}

/// Start values, and every constant at a bound while the others start.
std::vector<Values> many_values(const KernelClass& kernel_class) {
    std::vector<Values> result = {start_values(kernel_class)};
    for (std::size_t i = 0; i < kernel_class.constants.size(); ++i) {
        for (const double bound : {kernel_class.constants[i].low, kernel_class.constants[i].high}) {
            result.push_back(start_values(kernel_class));
            result.back()[i] = bound;
        }
    }
    return result;
}

const std::vector<std::string> wirings = {"h100-sxm", "a100-sxm-80gb", "a40", "l40s", "gb200", "tpu-v5p"};
constexpr std::array<double, 6> rank_counts = {2, 3, 4, 8, 16, 72};

TEST(CollectiveTimes, NeverGrowShorterWithTheMessage) {
    for (const std::string& device_name : wirings) {
        const Device device = builtin(device_name);
        for (const Collective collective : all_collectives) {
            for (const Values& values : many_values(class_of(collective))) {
                for (const RankGroup group : {RankGroup{2, 1}, RankGroup{8, 1}, RankGroup{16, 2}}) {
                    double before = 0.0;
                    for (double bytes = 1.0; bytes < 4e9; bytes *= 1.5) {
                        const double now = seconds(collective, group, bytes, device, values);
                        ASSERT_TRUE(std::isfinite(now));
                        EXPECT_GE(now, before) << name(collective) << " on " << device_name << ", " << bytes;
                        before = now;
                    }
                }
            }
        }
    }
}

TEST(CollectiveTimes, NeverGrowShorterWithTheRanksOfANode) {
    for (const std::string& device_name : wirings) {
        const Device device = builtin(device_name);
        for (const Collective collective : all_collectives) {
            for (const Values& values : many_values(class_of(collective))) {
                for (const double bytes : {4096.0, mebi, 256.0 * mebi}) {
                    double before = 0.0;
                    for (const double ranks : rank_counts) {
                        const double now = seconds(collective, {ranks, 1}, bytes, device, values);
                        EXPECT_GE(now, before * (1.0 - 1e-12))
                            << name(collective) << " on " << device_name << ", " << ranks;
                        before = now;
                    }
                }
            }
        }
    }
}

TEST(CollectiveTimes, AreNeverBelowWhatTheLinksAllow) {
    for (const std::string& device_name : wirings) {
        const Device device = builtin(device_name);
        for (const Collective collective : all_collectives) {
            for (const Values& values : many_values(class_of(collective))) {
                for (const double nodes : {1.0, 2.0, 4.0}) {
                    for (const double ranks : rank_counts) {
                        const RankGroup group{ranks * nodes, nodes};
                        const double bytes = 512.0 * mebi;
                        const LinkTraffic traffic = compulsory_traffic(collective, group, wiring_of(device));
                        const Level level = link_within(device, ranks);
                        const Figure* link = device.bandwidth(level);
                        ASSERT_NE(link, nullptr);
                        const double time = seconds(collective, group, bytes, device, values);
                        EXPECT_GE(time, bytes * traffic.at(level) / link->value) << name(collective) << device_name;
                        EXPECT_GE(time, bytes * traffic.network / 50e9) << name(collective) << device_name;
                    }
                }
            }
        }
    }
}

TEST(Machines, KnowTheSlowestLinkThatAGroupNeeds) {
    const auto link = [](const char* device, double devices) {
        return machine_of(builtin(device), Engine::matrix, DType::bf16, devices).link;
    };
    EXPECT_EQ(link("h100-sxm", 8.0), 450e9);
    EXPECT_EQ(link("l40s", 2.0), 32e9) << "no peer link: PCIe";
    EXPECT_EQ(link("a40", 2.0), 56.25e9) << "two cards and a bridge";
    EXPECT_EQ(link("a40", 4.0), 32e9) << "beyond the bridge: PCIe";
    EXPECT_EQ(machine_of(builtin("h100-sxm"), Engine::matrix, DType::bf16).network, 50e9) << "assumed";
    Device networked = builtin("h100-sxm");
    roofline::testing::set_bandwidth(networked, Level::network, 100e9);
    EXPECT_EQ(machine_of(networked, Engine::matrix, DType::bf16).network, 100e9);
}

TEST(CollectiveTypes, TellTheHostLinkFromThePeerLink) {
    EXPECT_EQ(collective_type({8, 1}, builtin("h100-sxm")), "message");
    EXPECT_EQ(collective_type({2, 1}, builtin("a40")), "message");
    EXPECT_EQ(collective_type({4, 1}, builtin("a40")), "message, host");
    EXPECT_EQ(collective_type({2, 1}, builtin("l40s")), "message, host");
    EXPECT_EQ(collective_type({2, 2}, builtin("l40s")), "message") << "nobody to share the host with";
}

/// The constants that a profile finds in the shipped calibration.
Choice shipped(const char* profile, Collective collective, const RankGroup& group, const char* device) {
    auto calibration = io::builtin_calibration();
    auto found = io::builtin_profile(profile);
    EXPECT_TRUE(calibration && found);
    Execution execution;
    execution.profile = *found;
    execution.calibration = std::make_shared<const Calibration>(std::move(*calibration));
    const Device machine = builtin(device);
    return execution.choose(class_of(collective), collective_type(group, machine), machine);
}

TEST(CollectiveChoice, AnEngineSumsWithItsOwnKernelAndALibraryWithItsRing) {
    const Choice engine = shipped("engine", Collective::all_reduce, {8, 1}, "h100-sxm");
    const Choice library = shipped("graph+fused", Collective::all_reduce, {8, 1}, "h100-sxm");
    EXPECT_EQ(engine.source, "h100-sxm");
    EXPECT_EQ(library.source, "h100-sxm");
    const auto time = [](const Choice& choice, double bytes) {
        return 1e6 * seconds(Collective::all_reduce, {8, 1}, bytes, builtin("h100-sxm"), choice.constants);
    };
    // Rows of the tables: 3.9 us for 32 KiB with TensorRT-LLM's kernel; 19 us for 16 KiB with NCCL.
    EXPECT_NEAR(time(engine, 32768.0), 3.9, 0.8);
    EXPECT_GT(time(library, 32768.0), 3.0 * time(engine, 32768.0));
    // Large messages are the library's in both: 1,090 us for 256 MiB.
    EXPECT_NEAR(time(engine, 256.0 * mebi), 1090.0, 110.0);
    EXPECT_NEAR(time(library, 256.0 * mebi), 1090.0, 110.0);
}

TEST(CollectiveChoice, ConstantsOfTheHostLinkAreThoseOfDevicesWithoutAnother) {
    const Choice own = shipped("engine", Collective::all_reduce, {4, 1}, "l40s");
    EXPECT_EQ(own.source, "l40s");
    // Two cards without a peer link that nobody timed: not the constants of a switch.
    const Choice other = shipped("engine", Collective::all_gather, {2, 1}, "rtx-4090");
    EXPECT_EQ(other.source, "ada, transferred");
}

TEST(CollectiveChoice, AnotherClustersNetworkIsNotCarriedOver) {
    // 0.7 of the link, not the 0.15 of the cluster whose rows are shipped.
    for (const Collective collective : {Collective::all_reduce, Collective::send_receive}) {
        const Choice choice = shipped("engine", collective, {16, 2}, "a100-sxm-80gb");
        const auto& constants = class_of(collective).constants;
        for (std::size_t i = 0; i < constants.size(); ++i) {
            if (constants[i].name != "network") continue;
            EXPECT_DOUBLE_EQ(choice.constants[i], 0.7) << name(collective);
        }
    }
}

}  // namespace
}  // namespace roofline::predict
