#include "roofline/ask/parse.hpp"

#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "roofline/io/tensors.hpp"

namespace roofline::ask {
namespace {

double number_in(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || *end != '\0' || text.find_first_not_of("0123456789.eE+-") != std::string::npos)
        return std::nan("");
    return value;
}

}  // namespace

Result<double> parse_whole(std::string_view option, const std::string& text, double least, double most) {
    const double value = number_in(text);
    if (!(value >= least && value <= most && value == std::floor(value))) {
        return fail(fmt::format("{}: found \"{}\", expected a whole number from {:g} to {:g}", option,
                                io::printable(text), least, most));
    }
    return value;
}

Result<double> parse_positive(std::string_view option, const std::string& text) {
    const double value = number_in(text);
    if (!(value > 0.0 && value < 1e30))
        return fail(fmt::format("{}: found \"{}\", expected a number above zero", option, io::printable(text)));
    return value;
}

Result<double> parse_duration(std::string_view option, const std::string& text) {
    struct Unit {
        std::string_view text;
        double seconds;
    };
    for (const auto& [suffix, factor] : {Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"s", 1.0}}) {
        if (!text.ends_with(suffix)) continue;
        const std::string_view number = std::string_view(text).substr(0, text.size() - suffix.size());
        const auto value = parse_positive(option, std::string(number.substr(0, number.find_last_not_of(' ') + 1)));
        if (!value)
            return fail(fmt::format("{}: found \"{}\", expected a time above zero such as 500ms or 0.5s", option,
                                    io::printable(text)));
        return *value * factor;
    }
    return fail(fmt::format("{}: found \"{}\", expected a time with its unit: us, ms or s, such as 500ms", option,
                            io::printable(text)));
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::size_t from = 0;
    while (true) {
        const std::size_t to = text.find(separator, from);
        parts.push_back(text.substr(from, to == std::string::npos ? to : to - from));
        if (to == std::string::npos) return parts;
        from = to + 1;
    }
}

}  // namespace roofline::ask
