// The drawing of a device made by hand: memory 64 GB/s, fp32 at 1024 GFLOP/s, fp64 at half of it.
#include "roofline/render/terminal_roofline.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace roofline::render {
namespace {

Device device() {
    Device result;
    result.levels[index(Level::memory)].emplace().bandwidth = Figure{64e9, "", ""};
    result.rates[index(Engine::vector)][index(DType::fp32)] = Figure{1024e9, "", ""};
    result.rates[index(Engine::vector)][index(DType::fp64)] = Figure{512e9, "", ""};
    return result;
}

std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> result(1);
    for (const char c : text) {
        if (c == '\n') {
            result.emplace_back();
        } else {
            result.back() += c;
        }
    }
    result.pop_back();
    return result;
}

TEST(TerminalRoofline, TheSlopeMeetsTheRoofAtTheRidge) {
    const auto drawn = lines(terminal_roofline(device()));
    ASSERT_GT(drawn.size(), 4U);
    EXPECT_EQ(drawn[0], "FLOP/s over FLOP/byte; / memory 64.00 GB/s");
    // The ridge is 1024 / 64 = 16 FLOP/byte: 10 doublings right of 1/64, 40 columns right of the axis at column 15.
    EXPECT_NE(drawn[1].find("vector fp32"), std::string::npos) << drawn[1];
    EXPECT_EQ(drawn[1].find('-'), 15U + 40U) << drawn[1];
    // fp64 reaches its roof a doubling earlier: 36 columns right of the axis.
    EXPECT_NE(drawn[2].find("vector fp64"), std::string::npos) << drawn[2];
    EXPECT_EQ(drawn[2].substr(15 + 36).find_first_of("-/"), 0U) << drawn[2];
}

TEST(TerminalRoofline, FitsIntoEightyColumns) {
    for (const std::string& line : lines(terminal_roofline(device()))) EXPECT_LE(line.size(), 80U) << line;
}

TEST(TerminalRoofline, RateLabelsDoubleFromRowToRow) {
    const auto drawn = lines(terminal_roofline(device()));
    EXPECT_TRUE(drawn[1].starts_with("1.024 TFLOP/s |")) << drawn[1];
    EXPECT_TRUE(drawn[2].starts_with("512.0 GFLOP/s |")) << drawn[2];
}

TEST(TerminalRoofline, WithoutABandwidthOrARateThereIsNothingToDraw) {
    Device no_rate = device();
    no_rate.rates = {};
    EXPECT_EQ(terminal_roofline(no_rate), "");
    EXPECT_EQ(terminal_roofline(Device{}), "");
}

}  // namespace
}  // namespace roofline::render
