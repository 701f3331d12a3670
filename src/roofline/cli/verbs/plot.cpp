// roofline plot: reports and devices as pictures, in files or in the terminal.
#include <memory>

#include <fmt/format.h>

#include "roofline/cli/colour_options.hpp"
#include "roofline/cli/files.hpp"
#include "roofline/cli/load.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/plot_options.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/io/account_json.hpp"
#include "roofline/io/names.hpp"
#include "roofline/io/tensors.hpp"
#include "roofline/render/chart/account_charts.hpp"
#include "roofline/render/page/page.hpp"
#include "roofline/render/terminal_chart.hpp"

namespace roofline::cli {
namespace {

constexpr std::size_t most_reports = 8;

struct Options {
    std::vector<std::string> reports;
    std::vector<std::string> devices;
    std::string file;
    std::string format;  // html, else by the file's name
    std::string chart = "roofline";
    std::string title;
    std::string levels = "memory,cache";
    bool gaps = false;
    ColourOptions colour;
};

Result<Account> account_of_device(const std::string& typed) {
    auto device = load_device(typed);
    if (!device) return std::unexpected(device.error());
    Account account;
    account.title = device->title;
    account.device = std::move(*device);
    return account;
}

/// A report of any verb that gives accounts, or a device: the name of one, or its file.
Result<Account> load_account(const std::string& typed) {
    if (!typed.ends_with(".json") && !exists(typed)) {
        auto account = account_of_device(typed);
        if (account) return account;
        return fail(fmt::format("{}: neither a report (JSON, of predict, bench or analyze) nor a device",
                                io::printable(typed)));
    }
    const auto text = read_text(typed);
    if (!text) return std::unexpected(text.error());
    const auto json = io::parse_json(*text, typed);
    if (!json) return std::unexpected(json.error());
    const std::string schema = json->is_object() && json->contains("schema") && (*json)["schema"].is_string()
                                   ? (*json)["schema"].get<std::string>()
                                   : "";
    if (schema.starts_with("roofline.device")) return account_of_device(typed);
    for (const char* verb : {"advise", "plan", "sweep", "validate"}) {
        if (schema == fmt::format("roofline.{}/1", verb))
            return fail(fmt::format("{}: is an answer of {}, which has no operators; {} --plot FILE draws it", typed,
                                    verb, verb));
    }
    return io::read_account(*text, typed);
}

Result<std::vector<Level>> read_levels(const std::string& text) {
    std::vector<Level> levels;
    for (const std::string& part : parts_of(text, ',')) {
        bool known = false;
        for (const Level level : all_levels) {
            if (part != name(level) && part != "all") continue;
            levels.push_back(level);
            known = true;
        }
        if (!known)
            return fail(fmt::format("--levels: found \"{}\", expected memory, cache, host, peer, network or all",
                                    io::printable(part)));
    }
    return levels;
}

Result<int> run(const Options& options, const std::string& command) {
    const auto levels = read_levels(options.levels);
    if (!levels) return std::unexpected(levels.error());
    const auto* chart = render::chart::find_account_chart(options.chart);
    if (chart == nullptr) {
        std::vector<std::string> names;
        for (const auto& known : render::chart::account_charts()) names.emplace_back(known.name);
        return fail(fmt::format("--chart: found \"{}\", expected {}{}", io::printable(options.chart),
                                fmt::join(names, ", "), io::suggestion(options.chart, names)));
    }
    PlotOptions plot;
    plot.file = options.file;
    if (options.format == "html" && !plot.file.empty() && !plot.file.ends_with(".html"))
        return fail(
            fmt::format("--format html: found -o {}, expected a name that ends in .html", io::printable(plot.file)));
    if (auto good = plot.check("-o"); !good) return std::unexpected(good.error());
    std::vector<Account> accounts;
    for (const std::string& typed : options.reports) {
        auto account = load_account(typed);
        if (!account) return std::unexpected(account.error());
        accounts.push_back(std::move(*account));
    }
    for (const std::string& typed : options.devices) {
        auto account = account_of_device(typed);
        if (!account) return std::unexpected(account.error());
        accounts.push_back(std::move(*account));
    }
    if (accounts.empty())
        return fail(
            "no REPORT was named: `roofline predict ... --format json -o report.json` writes one; a device's name will "
            "do too");
    if (accounts.size() > most_reports)
        return fail(
            fmt::format("{} reports are too many for one picture: expected {} at most", accounts.size(), most_reports));
    render::chart::RooflineOptions look;
    look.title = options.title;
    look.gaps = options.gaps;
    look.levels = *levels;
    const Shown shown{command, [&] { return Drawing{.accounts = accounts, .chart = options.chart, .look = look}; },
                      [&] { return render::accounts_markdown(accounts); }};
    if (options.format == "html" && options.file.empty()) {
        if (auto written = OutputOptions{}.write(shown.page()); !written) return std::unexpected(written.error());
        return done;
    }
    if (options.file.empty()) {
        const render::TerminalOptions terminal{options.colour.allowed(), std::min(terminal_columns(), 120)};
        const std::string text = options.chart == "time" ? render::terminal_bars(accounts, terminal)
                                                         : render::terminal_roofline(accounts, terminal);
        OutputOptions out;
        if (auto written = out.write(text); !written) return std::unexpected(written.error());
        return done;
    }
    if (auto written = plot.write(shown); !written) return std::unexpected(written.error());
    return done;
}

}  // namespace

void plot_verb(Program& program) {
    auto options = std::make_shared<Options>();
    const Verb verb = program.verb("plot", "Reports as pictures: in the terminal, or as .svg, .png, .pdf or .html");
    verb.add("reports", options->reports, "Reports of predict, bench or analyze (JSON); devices, by name or file")
        .type("REPORT");
    verb.add("-d,--device", options->devices, "Also the roofs of this device").type("DEVICE");
    verb.add("-o,--output", options->file, "Draw to this file: .svg, .png, .pdf or .html (default: in the terminal)")
        .type("FILE");
    verb.add("--format", options->format, "A page without naming a file for it").one_of({"html"});
    std::string charts;
    for (const auto& chart : render::chart::account_charts())
        charts += fmt::format("{}{} ({})", charts.empty() ? "" : "; ", chart.name, chart.shows);
    verb.add("--chart", options->chart, "What to draw: " + charts).shows_default().type("NAME");
    verb.add("--title", options->title, "Of the roofline").type("TEXT");
    verb.add("--levels", options->levels, "Whose bandwidths are drawn: memory, cache, host, peer, network; all")
        .shows_default()
        .type("LIST");
    verb.add("--gaps", options->gaps, "Draw how far each operator is below its roof");
    options->colour.add_to(verb);
    verb.runs([&program, options] { return run(*options, program.command); });
}

}  // namespace roofline::cli
