// A file format that `analyze` reads: how its files are recognised and what they become. One file in formats/ a format;
// the folder is the registry.
#pragma once

#include <span>
#include <string_view>

#include "roofline/analyze/analysis.hpp"
#include "roofline/analyze/input.hpp"
#include "roofline/core/problem.hpp"

namespace roofline::analyze {

struct Format {
    std::string_view name;        // "PyTorch profiler trace": what a message calls it
    std::string_view short_name;  // "kineto": what --from takes
    /// By content, from the first bytes (recognition_bytes of them, fewer if the file is shorter).
    bool (*recognises)(std::string_view first_bytes) = nullptr;
    Result<Analysis> (*read)(Input& input, const Options& options) = nullptr;
};

inline constexpr std::size_t recognition_bytes = std::size_t{256} << 10U;

/// All of formats/, by name. Formats are made to exclude one another; the first that recognises a file reads it.
std::span<const Format> formats();

/// The format of a file, by content, or the one called `wanted`. The problem says what was found instead.
Result<const Format*> recognise(Input& input, std::string_view wanted = {});

/// Recognises and reads.
Result<Analysis> analyze(Input& input, const Options& options, std::string_view wanted = {});

}  // namespace roofline::analyze
