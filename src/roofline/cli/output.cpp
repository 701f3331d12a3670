#include "roofline/cli/output.hpp"

#include <ctime>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "roofline/cli/files.hpp"

namespace roofline::cli {
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

std::string now_iso() {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace roofline::cli
