#include "roofline/cli/output.hpp"

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "roofline/cli/files.hpp"
#include "roofline/io/tensors.hpp"

namespace roofline::cli {
namespace {

double number_in(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || *end != '\0' || text.find_first_not_of("0123456789.eE+-") != std::string::npos)
        return std::nan("");
    return value;
}

}  // namespace

void OutputOptions::add_to(CLI::App& app, std::initializer_list<std::string> formats) {
    app.add_option("--format", format, "How to print the answer")
        ->check(CLI::IsMember(std::vector<std::string>(formats)))
        ->capture_default_str();
    app.add_option("-o,--output", file, "Write to this file instead of stdout")->type_name("FILE");
}

Result<void> OutputOptions::write(std::string_view text) const {
    if (!file.empty()) return write_whole(file, text);
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        return fail("stdout: cannot be written");
    return {};
}

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
    if (text == "0") return 0.0;
    double factor = 0.0;
    std::string number = text;
    for (const auto& [unit, seconds] : {std::pair{"us", 1e-6}, std::pair{"ms", 1e-3}, std::pair{"s", 1.0}}) {
        if (!text.ends_with(unit)) continue;
        number = text.substr(0, text.size() - std::string_view(unit).size());
        factor = seconds;
        break;
    }
    const auto value = parse_positive(option, number);
    if (factor == 0.0 || !value)
        return fail(fmt::format("{}: found \"{}\", expected a time such as 500ms or 2s", option, io::printable(text)));
    return *value * factor;
}

std::string now_iso() {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace roofline::cli
