// Recordings kept as tests, and what is asked of them again and again.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/analyze/format.hpp"

namespace roofline::analyze {

inline Analysis analysis_of(const std::string& file) {
    auto input = open_input(ROOFLINE_SOURCE_DIR "/tests/analyze/data/" + file + ".json.gz");
    EXPECT_TRUE(input) << (input ? "" : input.error().text);
    if (!input) return {};
    auto analysis = analyze(*input, {});
    EXPECT_TRUE(analysis) << (analysis ? "" : analysis.error().text);
    return analysis ? std::move(*analysis) : Analysis{};
}

inline double steps_of(const Analysis& analysis, const std::string& stage) {
    for (const AccountStage& one : analysis.account.stages) {
        if (one.name == stage) return one.repetitions;
    }
    return 0.0;
}

/// What a recording holds by another count than ours: kernels are the sum of "dur" in nanoseconds, by a script of its
/// own.
struct Recorded {
    const char* file;
    std::int64_t kernels;
    const char* stage;
    double steps;
    double layers;
};

inline void expect_found(const Recorded& one) {
    const Analysis analysis = analysis_of(one.file);
    EXPECT_EQ(std::llround(analysis.kernel_time.value * 1e9), one.kernels) << one.file;
    EXPECT_GE(analysis.explained_time / analysis.kernel_time, 0.97) << one.file;
    EXPECT_EQ(steps_of(analysis, one.stage), one.steps) << one.file;
    EXPECT_EQ(analysis.layers, one.layers) << one.file;
}

}  // namespace roofline::analyze
