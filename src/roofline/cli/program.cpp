#include "roofline/cli/program.hpp"

#include <cstdio>
#include <exception>

#include <fmt/format.h>

namespace roofline::cli {

#define ROOFLINE_ENTRY(name) void name##_verb(Program& program);
#include "roofline/cli/verbs.inc"
#undef ROOFLINE_ENTRY

namespace {

/// Bad input gets one line, whatever a library would have printed.
std::string first_line(std::string text) {
    return text.substr(0, text.find('\n'));
}

int complain(const std::string& text, int code) {
    fmt::print(stderr, "roofline: {}\n", text);
    return code;
}

}  // namespace

int run(int argc, char** argv) {
    Program program;
    for (int i = 0; i < argc; ++i) program.command += (i > 0 ? " " : "") + std::string(i == 0 ? "roofline" : argv[i]);
    CLI::App& app = program.app;
    app.set_version_flag("--version", "roofline " ROOFLINE_VERSION);
    app.require_subcommand(1);
    app.get_formatter()->column_width(34);
    app.footer(
        "Exit codes: 0 done, 1 the question has no answer, 2 bad input, 3 internal fault, 4 the device is not here.");
#define ROOFLINE_ENTRY(name) name##_verb(program);
#include "roofline/cli/verbs.inc"
#undef ROOFLINE_ENTRY

    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return done;
    } catch (const CLI::CallForVersion& version) {
        fmt::print("{}\n", version.what());
        return done;
    } catch (const CLI::ParseError& error) {
        if (argc == 1) {
            fmt::print(stderr, "{}", app.help());
            return bad_input;
        }
        return complain(first_line(error.what()) + " (--help shows the options)", bad_input);
    }
    try {
        const Result<int> result = program.action();
        if (!result) return complain(result.error().text, result.error().unavailable ? not_here : bad_input);
        return *result;
    } catch (const std::exception& error) {
        return complain(fmt::format("internal fault: {}", error.what()), internal_fault);
    }
}

}  // namespace roofline::cli
