// What went wrong with an input, as a value. One line for the user: file, place, what was found, what was expected.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace roofline {

struct Problem {
    std::string text;          // "config.json: num_key_value_heads is 6, but 32 heads cannot be shared evenly by 6"
    bool unavailable = false;  // nothing is wrong with the input, but what it names is not on this machine
};

template <class T>
using Result = std::expected<T, Problem>;

inline std::unexpected<Problem> fail(std::string text) {
    return std::unexpected(Problem{std::move(text)});
}

}  // namespace roofline
