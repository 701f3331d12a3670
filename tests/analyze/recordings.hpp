// Recordings kept as tests, and what is asked of them again and again.
#pragma once

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

}  // namespace roofline::analyze
