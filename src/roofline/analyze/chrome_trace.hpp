// Chrome trace JSON as a stream of events: what PyTorch's profiler, ONNX Runtime and many others write.
//
//   { "deviceProperties": [...], ..., "traceEvents": [ EVENT, EVENT, ... ], "traceName": ... }
//   or only  [ EVENT, EVENT, ...          (the closing bracket may be missing)
//   EVENT: { "ph": "X", "cat": ..., "name": ..., "pid": ..., "tid": ..., "ts": microseconds, "dur": microseconds,
//            "args": { ... } }
//
// Read in windows that end between events, so a file of any size takes a few megabytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "roofline/analyze/input.hpp"

namespace roofline::analyze {

/// Values as they are written, quotes included; empty where the event has none. Valid during the call only.
struct ChromeEvent {
    std::string_view phase;
    std::string_view category;
    std::string_view name;
    std::string_view process;
    std::string_view thread;
    std::string_view time;
    std::string_view duration;
    std::vector<std::pair<std::string_view, std::string_view>> arguments;
    bool passed_over = false;  // its arguments were not wanted

    std::string_view argument(std::string_view key) const;  // empty: there is none
};

struct ChromeReader {
    std::function<void(const ChromeEvent&)> event;
    /// Asked when arguments come and name and category are known: most events of a trace are of no use to anyone, and
    /// arguments are most of an event. Empty: always.
    std::function<bool(const ChromeEvent&)> wants_arguments;
    std::function<void(std::string_view key, std::string_view value)> header;  // of the outer object, but its events
    std::function<void(double)> progress;
};

struct ChromeEnd {
    bool cut = false;  // the file ends in the middle
    std::uint64_t bytes = 0;
    std::uint64_t events = 0;
};

/// Anything that is not JSON is a problem with its byte offset; a file that simply stops is not.
Result<ChromeEnd> read_chrome_trace(Input& input, const ChromeReader& reader);

/// Small enough to be still in a cache when it is read.
inline constexpr std::size_t window_bytes = std::size_t{512} << 10U;
inline constexpr std::size_t largest_event = std::size_t{256} << 20U;

}  // namespace roofline::analyze
