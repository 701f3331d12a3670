#include "roofline/cli/output.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <vector>

#include <fmt/format.h>

#include "roofline/cli/files.hpp"

namespace roofline::cli {

std::string number_for_a_file(const std::string& name) {
    if (name.empty() || name.find_first_not_of("0123456789,-*+") != std::string::npos) return {};
    return fmt::format("names a file, and {0} is a number: tokens to write are --output-len {0}, a file is ./{0}",
                       name);
}

void OutputOptions::add_to(const Verb& verb, std::initializer_list<std::string> formats) {
    const Flag said = verb.add("--format", format, "How to print the answer").one_of(formats).shows_default();
    verb.add("-o,--output", file, "Write to this file instead of stdout; its ending says the format")
        .type("FILE")
        .check(number_for_a_file)
        .each([this, said, known = std::vector<std::string>(formats)](const std::string& name) {
            for (const std::string& ending : known) {
                if (!said.given() && name.ends_with("." + ending) && (ending != "json" || json_by_name))
                    format = ending;
            }
        });
}

Result<void> OutputOptions::check() const {
    if (file.empty()) return {};
    return can_be_written(file);
}

Result<void> OutputOptions::write(std::string_view text) const {
    if (!file.empty()) return write_whole(file, text);
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        return fail("stdout: cannot be written");
    return {};
}

std::string now_iso() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::array<char, 32> text{};
    return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace roofline::cli
