// roofline compare: reports or devices side by side; what got better or worse, what appeared or vanished.
#include "roofline/assess/compare.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "roofline/analyze/format.hpp"
#include "roofline/cli/compare_chart.hpp"
#include "roofline/cli/compare_text.hpp"
#include "roofline/cli/files.hpp"
#include "roofline/cli/load.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/plot_options.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/io/account_json.hpp"
#include "roofline/io/device_file.hpp"
#include "roofline/render/chart/spots.hpp"

namespace roofline::cli {
namespace {

struct Options {
    std::vector<std::string> files;
    std::string by = "record";
    std::string time = "best-known";
    std::string fail_above;
    std::string top = "20";
    OutputOptions output;
    PlotOptions plot;
};

struct Loaded {
    std::vector<Account> accounts;
    std::vector<Device> devices;
};

Result<void> load_one(const std::string& typed, Loaded& loaded) {
    if (!exists(typed)) {
        // Not a file: a device that we know, or nothing.
        auto device = load_device(typed);
        if (!device) {
            return fail(
                fmt::format("{}: no such file, and no device of that name; expected a report (--format json of "
                            "predict, bench or analyze), a trace or a device",
                            typed));
        }
        loaded.devices.push_back(std::move(*device));
        return {};
    }
    // What a profiler recorded is analysed first: two traces stand side by side as they are.
    if (auto input = analyze::open_input(typed); input && analyze::recognise(*input)) {
        auto analysis = analyze::analyze(*input, {});
        if (!analysis) return std::unexpected(analysis.error());
        loaded.accounts.push_back(std::move(analysis->account));
        return {};
    }
    constexpr std::size_t largest = std::size_t{256} << 20U;
    const auto text = read_text(typed, largest);
    if (!text) return std::unexpected(text.error());
    // A device file says so early; a report holds a device of its own, after its schema.
    const auto json = io::parse_json(*text, typed);
    if (!json) return std::unexpected(json.error());
    const bool is_device =
        json->is_object() && json->contains("schema") && json->at("schema") == io::Json("roofline.device/1");
    if (is_device) {
        auto device = io::read_device(*text, typed);
        if (!device) return std::unexpected(device.error());
        loaded.devices.push_back(std::move(*device));
        return {};
    }
    auto account = io::read_account(*text, typed);
    if (!account) return std::unexpected(account.error());
    loaded.accounts.push_back(std::move(*account));
    return {};
}

/// "5%", "0.05" or "5 %"; a bare number above one could mean either and is refused.
Result<double> parse_percent(const std::string& text) {
    const bool percent = text.ends_with('%');
    std::string digits = percent ? text.substr(0, text.size() - 1) : text;
    while (digits.ends_with(' ')) digits.pop_back();
    const auto zero = digits == "0";
    const auto value = zero ? Result<double>(0.0) : parse_positive("--fail-above", digits);
    if (!value || (!percent && *value > 1.0))
        return fail(fmt::format("--fail-above: found \"{}\", expected a percentage such as 5%", text));
    return percent ? *value / 100.0 : *value;
}

/// Runs of several batches have several stages of one name: then what else they are is part of it, on all sides.
void tell_stages_apart(std::vector<Account>& accounts) {
    std::set<std::string> unclear;
    for (const Account& account : accounts) {
        std::set<std::string> seen;
        for (const AccountStage& stage : account.stages) {
            if (!seen.insert(stage.name).second) unclear.insert(stage.name);
        }
    }
    for (Account& account : accounts) {
        for (AccountStage& stage : account.stages) {
            if (!unclear.contains(stage.name)) continue;
            const std::string whole = render::chart::describe_stage(stage);  // "decode bf16, batch 8, context 1,024"
            if (whole.size() > stage.name.size() + 2) stage.name += " (" + whole.substr(stage.name.size() + 2) + ")";
        }
    }
}

/// Titles that tell the sides apart: the file where two are called the same, without its folder where that is enough.
template <class Thing, class Title>
void tell_apart(std::vector<Thing>& things, const std::vector<std::string>& files, Title title) {
    std::vector<std::string> before;
    for (Thing& thing : things) before.push_back(title(thing));
    for (std::size_t i = 0; i < things.size(); ++i) {
        bool alone = !before[i].empty();
        for (std::size_t j = 0; j < things.size(); ++j) alone = alone && (i == j || before[i] != before[j]);
        const bool by_name = std::count_if(files.begin(), files.end(), [&](const std::string& file) {
                                 return file_name(file) == file_name(files[i]);
                             }) == 1;
        const std::string file = by_name ? file_name(files[i]) : files[i];
        if (!alone) title(things[i]) = before[i].empty() ? file : fmt::format("{} ({})", before[i], file);
    }
}

Result<int> run(const Options& options, const std::string& command) {
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    if (options.files.size() < 2)
        return fail(fmt::format("compare: found {} of at least two reports or devices", options.files.size()));
    const auto by = assess::find_by(options.by);
    const auto time = assess::find_time_kind(options.time);
    Judgement judgement;
    if (!options.fail_above.empty()) {
        const auto fraction = parse_percent(options.fail_above);
        if (!fraction) return std::unexpected(fraction.error());
        judgement.fail_above = *fraction;
    }
    const auto top = options.top == "0" ? Result<double>(0.0) : parse_whole("--top", options.top, 1.0, 1e6);
    if (!top) return std::unexpected(top.error());

    Loaded loaded;
    for (const std::string& file : options.files) {
        if (auto read = load_one(file, loaded); !read) return std::unexpected(read.error());
    }
    if (!loaded.accounts.empty() && !loaded.devices.empty())
        return fail("compare: found reports and devices, expected all of one kind");
    tell_stages_apart(loaded.accounts);
    tell_apart(loaded.accounts, options.files, [](Account& account) -> std::string& { return account.title; });
    tell_apart(loaded.devices, options.files, [](Device& device) -> std::string& { return device.name; });
    const auto comparison =
        loaded.devices.empty() ? assess::compare(loaded.accounts, *by, *time) : assess::compare_devices(loaded.devices);
    if (!comparison) return std::unexpected(comparison.error());
    if (judgement.fail_above) judgement.failures = comparison->worse_than(*judgement.fail_above);

    const std::size_t rows = comparison->devices ? 0 : static_cast<std::size_t>(*top);
    for (Device& device : loaded.devices) loaded.accounts.push_back({device.title, "", device, "", {}, {}});
    const Shown shown{command,
                      [&] {
                          return Drawing{.title = "Side by side: " + render::chart::common_title(loaded.accounts),
                                         .accounts = loaded.accounts,
                                         .charts = compare_charts(*comparison),
                                         .report_first = true};
                      },
                      [&] { return compare_text(*comparison, judgement, 0, true); }};
    const std::string& format = options.output.format;
    const std::string text = format == "json"
                                 ? io::dump(compare_json(*comparison, judgement, options.files, {command, now_iso()}))
                             : format == "csv"  ? compare_csv(*comparison)
                             : format == "html" ? shown.page()
                                                : compare_text(*comparison, judgement, rows, format == "md");
    if (auto written = options.output.write(text); !written) return std::unexpected(written.error());
    if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
    return judgement.failures.empty() ? done : no_answer;
}

}  // namespace

void compare_verb(Program& program) {
    auto options = std::make_shared<Options>();
    const Verb verb =
        program.verb("compare", "Reports or devices side by side: what got better or worse, what appeared or vanished");
    verb.add("files", options->files,
             "Reports (--format json of predict, bench or analyze), or devices; the first is what the others "
             "are held against")
        .type("A B [C...]");
    verb.add("--by", options->by, "Rows: record, group or stage").one_of({"record", "group", "stage"});
    verb.add("--time", options->time,
             "Which time: best-known (measured where it was, else expected), measured, expected, attainable or "
             "limit")
        .one_of({"best-known", "measured", "expected", "attainable", "limit"});
    verb.add("--fail-above", options->fail_above,
             "Exit with 1 if a stage, or a row of at least 1% of its stage, is worse by more than this (5%)");
    verb.add("--top", options->top, "Rows a stage, largest differences first; 0 for all");
    options->output.add_to(verb, {"table", "md", "csv", "json", "html"});
    options->plot.add_to(verb);
    verb.runs([&program, options] { return run(*options, program.command); });
}

}  // namespace roofline::cli
