// What the readers of weight files have in common: a tensor as it lies in a file, and the answer of a reader that
// was given only the beginning of one. Readers take bytes, never a path: the command line maps a file, the page
// feeds a dropped file piece by piece.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "roofline/core/problem.hpp"

namespace roofline::io {

struct StoredTensor {
    std::string name;
    std::string type;                  // as the format spells it: "Q4_K", "BF16", "F8_E4M3"
    std::vector<std::uint64_t> shape;  // slowest dimension first (rows, columns), whatever the file's own order
    std::uint64_t elements = 0;        // as stored: of a packed matrix (eight weights in an int32) the int32
    std::uint64_t bytes = 0;
};

// The prefix given was too short: come back with at least this many bytes of the file. The number is at least twice
// the prefix wherever the file is that long, so that a header of any size is read in a few rounds.
struct NeedMore {
    std::uint64_t bytes = 0;
};

template <class T>
using HeaderResult = std::expected<T, std::variant<Problem, NeedMore>>;

inline std::unexpected<std::variant<Problem, NeedMore>> fail_header(std::string text) {
    return std::unexpected(std::variant<Problem, NeedMore>{Problem{std::move(text)}});
}

// A name out of a hostile file, made fit for one line on a terminal or in JSON: plain ASCII and not endless.
inline std::string printable(std::string_view text) {
    constexpr std::size_t longest = 80;
    std::string shown;
    for (char c : text.substr(0, longest)) {
        shown += c >= 0x20 && c < 0x7f ? c : '?';
    }
    if (text.size() > longest) {
        shown += "...";
    }
    return shown;
}

}  // namespace roofline::io
