// roofline calibrate: constants of the kernel classes from measured rows.
#include "roofline/assess/calibrate.hpp"

#include <map>
#include <memory>

#include <fmt/format.h>

#include "roofline/assess/row_groups.hpp"
#include "roofline/assess/validate.hpp"
#include "roofline/cli/files.hpp"
#include "roofline/cli/measured_files.hpp"
#include "roofline/cli/measured_scatter.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/plot_options.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/io/calibration_file.hpp"
#include "roofline/render/table.hpp"

namespace roofline::cli {
namespace {

struct Options {
    std::vector<std::string> files;
    std::string output;
    std::string format = "table";
    PlotOptions plot;
};

std::vector<std::string> made_from(const assess::Measurements& measured) {
    std::map<std::string, std::pair<int, int>> rows;
    for (const assess::Measurement& row : measured.rows) ++rows[row.file].first;
    for (const assess::Refusal& row : measured.refused) ++rows[row.file].second;
    std::vector<std::string> lines;
    for (const auto& [file, count] : rows) {
        lines.push_back(fmt::format("{}: {} rows, {} refused", file_name(file), count.first, count.second));
    }
    return lines;
}

render::Table fit_table(const predict::Calibration& calibration) {
    render::Table table{{{"class", render::Align::left},
                         {"type", render::Align::left},
                         {"stack", render::Align::left},
                         {"of", render::Align::left},
                         {"rows"},
                         {"error"},
                         {"range"},
                         {"constants", render::Align::left}},
                        {}};
    for (const predict::Fitted& fitted : calibration.all()) {
        std::string constants;
        for (std::size_t i = 0; i < fitted.kernel_class->constants.size(); ++i) {
            const predict::Constant& constant = fitted.kernel_class->constants[i];
            constants +=
                fmt::format("{}{} {:.4g}{}{}", i > 0 ? ", " : "", constant.name, fitted.constants[i],
                            constant.unit == "fraction" ? "" : " ", constant.unit == "fraction" ? "" : constant.unit);
        }
        table.rows.push_back({std::string(fitted.kernel_class->name), fitted.type, fitted.stack,
                              fitted.scope == predict::Scope::everything ? "all devices" : fitted.of,
                              fmt::format("{:.0f}", fitted.rows),
                              fitted.error > 0.0 ? fmt::format("{:.1f}%", 100.0 * fitted.error) : "-",
                              fmt::format("{:.2f}-{:.2f}", fitted.low, fitted.high), constants});
    }
    return table;
}

/// The rows as the new constants have them. It shows where a formula cannot follow, not how well others are predicted.
Drawing drawing_of(const assess::Measurements& measured, const predict::Calibration& calibration) {
    const auto shared = std::make_shared<const predict::Calibration>(calibration);
    std::vector<assess::Expected> expected;
    for (const assess::Measurement& row : measured.rows) expected.push_back(assess::expect(row, shared));
    const std::string how = "with the constants fitted to these very rows; validate shows rows left out of the fit";
    return {.title = "Constants of expected times", .charts = {measured_scatter(measured.rows, expected, how)}};
}

std::string worded(const assess::Measurements& measured, const predict::Calibration& calibration, bool markdown) {
    const std::string used = fmt::format(
        "{} rows used, {} refused. The error is the mean over rows the fit had not seen: other families of shapes for "
        "a device, other devices for a generation, other generations for all devices.\n",
        measured.rows.size(), measured.refused.size());
    const render::Table fits = fit_table(calibration);
    std::string text =
        markdown ? used + "\n## constants\n\n" + render::as_markdown(fits) : render::as_text(fits) + "\n" + used;
    const auto refused = assess::count_refused(measured.refused);
    if (markdown && !refused.empty()) text += "\n## rows refused\n\n";
    for (const assess::RefusedCount& count : refused)
        text += markdown ? fmt::format("- {}: {} ({})\n", count.rows, count.reason, count.places)
                         : fmt::format("refused {:>5}  {}  ({})\n", count.rows, count.reason, count.places);
    if (markdown && !measured.notes.empty()) text += "\n## notes\n\n";
    for (const std::string& note : measured.notes) text += fmt::format("{}{}\n", markdown ? "- " : "note: ", note);
    return text;
}

Result<int> calibrate(const Options& options, const std::string& command) {
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    auto measured = load_measured(options.files, For::fitting);
    if (!measured) return std::unexpected(measured.error());
    // What no formula was found for cannot be fitted.
    std::erase_if(measured->rows, [](const assess::Measurement& row) { return row.told != nullptr; });
    if (measured->rows.empty())
        return fail("calibrate: found no usable row, expected measured times of kernels or steps");
    const predict::Calibration calibration = assess::calibrate(measured->rows);
    if (calibration.all().empty()) {
        return fail(
            fmt::format("calibrate: found {} usable rows, but no kind, type and engine with at least {} of them",
                        measured->rows.size(), assess::least_rows_of_a_group));
    }
    if (!options.output.empty()) {
        if (auto written = write_whole(options.output, io::write_calibration(calibration, made_from(*measured)));
            !written)
            return std::unexpected(written.error());
    }
    const Shown shown{command, [&] { return drawing_of(*measured, calibration); },
                      [&] { return worded(*measured, calibration, true); }};
    const std::string text =
        options.format == "html" ? shown.page() : worded(*measured, calibration, options.format == "md");
    if (auto written = OutputOptions{}.write(text); !written) return std::unexpected(written.error());
    if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
    return done;
}

}  // namespace

void calibrate_verb(Program& program) {
    auto options = std::make_shared<Options>();
    const Verb verb = program.verb("calibrate", "Fit the constants of expected times to measurements");
    verb.add("files,--data", options->files,
             "Measured tables (CSV, JSON) or folders of them, reports of bench or analyze, device files of measure; "
             "without any, the tables shipped with the program")
        .type("FILE");
    verb.add("-o,--output", options->output, "Write the constants here, for --calibration").type("FILE");
    verb.add("--format", options->format, "How to print what was fitted")
        .one_of({"table", "md", "html"})
        .shows_default();
    options->plot.add_to(verb);
    verb.runs([&program, options] { return calibrate(*options, program.command); });
}

}  // namespace roofline::cli
