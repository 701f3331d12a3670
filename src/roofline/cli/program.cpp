#include "roofline/cli/program.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "roofline/io/names.hpp"

namespace roofline::cli {

#define ROOFLINE_ENTRY(name) void name##_verb(Program& program);
#include "roofline/cli/verbs.inc"
#undef ROOFLINE_ENTRY

namespace {

/// Bad input gets one line, whatever a library would have printed.
std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

/// One line, whatever a file name or a value held: control characters would break the line or the terminal.
int complain(std::string text, int code) {
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
    fmt::print(stderr, "roofline: {}\n", text);
    return code;
}

std::vector<std::string> verb_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
    return names;
}

/// The option that nobody knows, with the nearest one that exists.
std::string unknown_option(const CLI::App& app) {
    const auto parsed = app.get_subcommands();
    std::vector<std::string> known;
    for (const CLI::App* verb : parsed) {
        for (const CLI::Option* option : verb->get_options()) {
            for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
        }
    }
    const auto words = app.remaining(true);
    for (const std::string& word : words) {
        if (!word.starts_with("-")) continue;
        const std::string name = word.substr(0, word.find('='));
        return fmt::format("unknown option {}{}", name, io::suggestion(name, known));
    }
    return words.empty() ? "too many arguments" : fmt::format("one argument too many: \"{}\"", words.front());
}

}  // namespace

int run(int argc, char** argv) {
    CLI::App app{"How fast a language model can run on a machine, what holds it back, and what to change.", "roofline"};
    Program program{.app = app, .command = {}, .action = {}};
    for (int i = 0; i < argc; ++i) program.command += (i > 0 ? " " : "") + std::string(i == 0 ? "roofline" : argv[i]);
    app.set_version_flag("--version", "roofline " ROOFLINE_VERSION);
    app.require_subcommand(1);
    app.get_formatter()->column_width(34);
    app.footer(
        "Exit codes: 0 done, 1 the question has no answer, 2 bad input, 3 internal fault, 4 the device is not here.");
#define ROOFLINE_ENTRY(name) name##_verb(program);
#include "roofline/cli/verbs.inc"
#undef ROOFLINE_ENTRY

    if (argc > 1 && std::string_view(argv[1]) == "help") {
        fmt::print("{}", app.help());
        return done;
    }
    if (argc > 1 && argv[1][0] != '-') {
        const auto verbs = verb_names(app);
        if (std::find(verbs.begin(), verbs.end(), argv[1]) == verbs.end()) {
            return complain(
                fmt::format("no verb is called \"{}\"{} (--help lists them)", argv[1], io::suggestion(argv[1], verbs)),
                bad_input);
        }
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return done;
    } catch (const CLI::CallForVersion& version) {
        fmt::print("{}\n", version.what());
        return done;
    } catch (const CLI::ExtrasError&) {
        return complain(unknown_option(app) + " (--help shows the options)", bad_input);
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
