// What every target does: read bytes as one format, and look at what comes out as those who print it do.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "roofline/analyze/format.hpp"

namespace roofline::analyze {

inline void fail_unless(bool holds) {
    if (!holds) std::abort();
}

inline int read_as(std::string_view format, const std::uint8_t* data, std::size_t size) {
    std::string text(reinterpret_cast<const char*>(data), size);
    for (const Format& each : formats()) (void)each.recognises(text);
    Input input = Input::from_memory("fuzzed", std::move(text));
    const auto result = analyze(input, {}, format);
    if (!result) {
        fail_unless(!result.error().text.empty());
        return 0;
    }
    for (const AccountStage& stage : result->account.stages) {
        fail_unless(!stage.times.measured || !std::isnan(stage.times.measured->value));
        for (const Record& record : stage.records) {
            fail_unless(!std::isnan(record.work.flops.value));
            fail_unless(!record.times.measured || !std::isnan(record.times.measured->value));
        }
    }
    return 0;
}

}  // namespace roofline::analyze
