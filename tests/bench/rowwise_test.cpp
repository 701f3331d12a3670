// What is done row by row, against fp64.
#include "roofline/bench/kernels/rowwise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "bench/team.hpp"
#include "roofline/bench/backend.hpp"

namespace roofline::bench {
namespace {

using testing::team;

TEST(Rowwise, TheGateIsThatOfFp64OverAllThatAFloatCanBe) {
    const auto threads = team(2);
    std::vector<float> gates;
    for (float gate = 1e-6F; gate < 1e30F; gate *= 1.07F) {
        gates.push_back(gate);
        gates.push_back(-gate);
    }
    gates.push_back(0.0F);
    const auto width = static_cast<std::int64_t>(gates.size());
    std::vector<float> x = gates;
    x.resize(2 * gates.size(), 2.0F);
    std::vector<float> y(gates.size());
    silu_multiply(x.data(), y.data(), 1, width, *threads);
    for (std::size_t i = 0; i < gates.size(); ++i) {
        const double gate = gates[i];
        const double exact = 2.0 * gate / (1.0 + std::exp(-gate));
        // Below -87, where the exact one is smaller than 1e-35, what is left may be larger: gate times e^-87.
        EXPECT_NEAR(y[i], exact, 4e-6 * std::fabs(exact) + 4e-38 * std::fabs(gate)) << gate;
    }
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> none = {nan, 1.0F, 2.0F, 2.0F};
    silu_multiply(none.data(), y.data(), 1, 2, *threads);
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_FLOAT_EQ(y[1], 2.0F / (1.0F + std::exp(-1.0F)));
}

TEST(Rowwise, ActivationsWithoutAGateAreThoseOfFp64) {
    std::vector<float> x;
    for (float value = -40.0F; value <= 40.0F; value += 0.0131F) x.push_back(value);
    for (const float large : {0.0F, -0.0F, 1e-30F, -1e-30F, 1e6F, -1e6F, 1e20F}) x.push_back(large);
    std::vector<float> y(x.size());
    gelu(x.data(), y.data(), 1, static_cast<std::int64_t>(x.size()), *team());
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double value = x[i];
        const double u = std::sqrt(2.0 / std::numbers::pi) * (value + 0.044715 * value * value * value);
        EXPECT_NEAR(y[i], 0.5 * value * (1.0 + std::tanh(u)), 1e-6 + 1e-5 * std::abs(value)) << value;
    }
}

TEST(Rowwise, TheLargestLogitIsTheFirstOfItsLikeAndWhatIsNoNumberIsPassedOver) {
    const auto threads = team(3);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    const auto held_against = [&](const std::vector<float>& logits, std::int64_t rows) {
        const std::int64_t width = static_cast<std::int64_t>(logits.size()) / rows;
        std::vector<std::int32_t> best(static_cast<std::size_t>(rows), -1);
        argmax(logits.data(), best.data(), rows, width, *threads);
        for (std::int64_t row = 0; row < rows; ++row) {
            const auto first = logits.begin() + row * width;
            EXPECT_EQ(best[static_cast<std::size_t>(row)], std::max_element(first, first + width) - first)
                << row << " of " << rows << " x " << width;
        }
    };
    for (const std::size_t width : {1U, 63U, 64U, 1024U, 1025U, 10'007U}) {
        std::vector<float> logits(3 * width);
        for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = random_value(i);
        held_against(logits, 3);
        for (const std::size_t place : {width / 3, width / 2, width - 1}) logits[width + place] = 7.0F;  // ties
        held_against(logits, 3);
        logits[width / 2] = nan;  // the first and last are passed over, a row that begins with it ends there
        logits[width] = nan;
        logits[3 * width - 1] = nan;
        held_against(logits, 3);
        held_against(std::vector<float>(width, -infinity), 1);
        held_against(std::vector<float>(width, nan), 1);
        std::vector<float> zeros(width, -0.0F);
        zeros[width / 2] = 0.0F;  // no larger than the first
        held_against(zeros, 1);
    }
}

}  // namespace
}  // namespace roofline::bench
