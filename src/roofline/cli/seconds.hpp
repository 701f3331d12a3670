// An option called --seconds: its name is unit enough, others may be said.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "roofline/ask/parse.hpp"
#include "roofline/io/names.hpp"

namespace roofline::cli {

/// "2", "0.5", "500ms".
inline Result<double> parse_seconds(std::string_view option, const std::string& text, double least, double most) {
    const bool bare = !text.empty() && (text.back() == '.' || (text.back() >= '0' && text.back() <= '9'));
    const auto seconds = ask::parse_duration(option, bare ? text + "s" : text);
    if (seconds && *seconds >= least && *seconds <= most) return *seconds;
    return fail(fmt::format("{}: found \"{}\", expected a time from {:g} to {:g} s, such as 500ms or 2s", option,
                            io::printable(text), least, most));
}

}  // namespace roofline::cli
