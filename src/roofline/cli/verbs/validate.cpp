// roofline validate: our own report card.
#include "roofline/assess/validate.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "roofline/assess/in_parallel.hpp"
#include "roofline/cli/files.hpp"
#include "roofline/cli/measured_files.hpp"
#include "roofline/cli/measured_scatter.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/plot_options.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/io/calibration_file.hpp"
#include "roofline/io/report_json.hpp"
#include "roofline/render/table.hpp"

namespace roofline::cli {
namespace {

using assess::Card;
using assess::Errors;
using render::Align;

struct Options {
    std::vector<std::string> files;
    std::string calibration;
    std::string leave_out = "family";
    std::vector<std::string> by;  // tables to print; none: all
    bool per_row = false;
    OutputOptions output;
    PlotOptions plot;
};

/// Predictions and how they were come by.
struct Judged {
    assess::Measurements measured;
    std::vector<assess::Expected> expected;
    std::string how;
};

/// Rows that the built-in constants were fitted to must not count as a test of them: they get the prediction of a fit
/// that left their family out. Returns how many there are. Nothing is ever fitted to served rates, and they take
/// longest.
Result<int> replace_fitted_rows(Judged& judged) {
    const auto served = [](const assess::Measurement& row) { return row.served != nullptr; };
    if (std::ranges::all_of(judged.measured.rows, served)) return 0;
    const auto shipped = load_measured({});
    if (!shipped) return std::unexpected(shipped.error());
    const auto key = [](const assess::Measurement& row) {
        return fmt::format("{}|{}|{}|{}|{}|{}|{:.6g}", row.device->name, row.kind, row.fit_type, row.stack, row.stage,
                           row.label, row.seconds);
    };
    std::map<std::string, std::size_t> known;
    for (std::size_t i = 0; i < shipped->rows.size(); ++i) known.emplace(key(shipped->rows[i]), i);
    std::vector<assess::Expected> left_out;  // takes seconds: only where it is needed
    int found = 0;
    for (std::size_t i = 0; i < judged.measured.rows.size(); ++i) {
        if (served(judged.measured.rows[i])) continue;
        const auto same = known.find(key(judged.measured.rows[i]));
        if (same == known.end()) continue;
        if (left_out.empty()) left_out = assess::expect_left_out(shipped->rows);
        judged.expected[i] = left_out[same->second];
        ++found;
    }
    return found;
}

Result<Judged> judge(const Options& options) {
    Judged judged;
    auto measured = load_measured(options.files);
    if (!measured) return std::unexpected(measured.error());
    judged.measured = std::move(*measured);
    if (options.leave_out == "device") {
        if (!options.files.empty() || !options.calibration.empty())
            return fail("--leave-out device judges the shipped tables: it takes no files and no --calibration");
        judged.expected = assess::expect_left_out(judged.measured.rows, assess::LeftOut::device);
        judged.how = "each row predicted as if nothing had been measured on its device: by constants of its relatives";
        return judged;
    }
    if (options.files.empty() && options.calibration.empty()) {
        judged.expected = assess::expect_left_out(judged.measured.rows);
        judged.how =
            "each row predicted with constants fitted without its family of shapes (kernels) or its model (steps)";
        return judged;
    }
    auto calibration = io::builtin_calibration();
    if (!options.calibration.empty()) {
        const auto text = read_text(options.calibration);
        if (!text) return std::unexpected(text.error());
        calibration = io::read_calibration(*text, options.calibration);
    }
    if (!calibration) return std::unexpected(calibration.error());
    const auto shared = std::make_shared<const predict::Calibration>(std::move(*calibration));
    judged.expected.resize(judged.measured.rows.size());
    assess::in_parallel(judged.expected.size(),
                        [&](std::size_t i) { judged.expected[i] = assess::expect(judged.measured.rows[i], shared); });
    if (!options.calibration.empty()) {
        judged.how = "predicted with the constants of " + options.calibration;
        return judged;
    }
    judged.how = "predicted with the constants the program carries";
    const auto fitted = replace_fitted_rows(judged);
    if (!fitted) return std::unexpected(fitted.error());
    if (*fitted > 0) {
        judged.how += fmt::format(
            ", but {} rows are among those they were fitted to: these are predicted by fits that left them out",
            *fitted);
    }
    return judged;
}

std::string percent(double fraction) {
    return fmt::format("{:.1f}%", 100.0 * fraction);
}
std::string signed_percent(double fraction) {
    return fmt::format("{:+.1f}%", 100.0 * fraction);
}

render::Table table_of(const std::vector<Card>& cards, assess::Grouping grouping) {
    const bool full = grouping == assess::Grouping::full;
    const bool by_device = grouping == assess::Grouping::device;
    const bool by_size = grouping == assess::Grouping::size;
    render::Table table;
    if (!by_device) table.columns = {{"kind", Align::left}, {"stage", Align::left}};
    if (full) table.columns.push_back({"type", Align::left});
    if (full || by_device) table.columns.push_back({"device", Align::left});
    if (by_size) table.columns.push_back({"size", Align::left});
    for (const char* title :
         {"rows", "refused", "limit", "attainable", "expected", "median", "p95", "worst", "bias", "in range"})
        table.columns.push_back({title});
    for (const Card& card : cards) {
        const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
        std::vector<std::string> cells;
        if (!by_device) cells = {card.kind, or_dash(card.stage)};
        if (full) cells.push_back(or_dash(card.type));
        if (full || by_device) cells.push_back(or_dash(card.device));
        if (by_size) cells.push_back(card.size);
        cells.push_back(std::to_string(card.rows));
        cells.push_back(by_size ? "-" : std::to_string(card.refused));
        if (card.rows == 0) {
            cells.insert(cells.end(), 8, "-");
        } else {
            for (const Errors* errors : {&card.limit, &card.attainable, &card.expected})
                cells.push_back(percent(errors->mean));
            cells.push_back(percent(card.expected.median));
            cells.push_back(percent(card.expected.p95));
            cells.push_back(percent(card.expected.worst));
            cells.push_back(signed_percent(card.expected.bias));
            cells.push_back(percent(card.coverage));
        }
        table.rows.push_back(std::move(cells));
    }
    return table;
}

/// Of no rows there is no error: null, and not a perfect zero.
io::OrderedJson errors_json(const Errors& errors, const std::function<io::OrderedJson(double)>& figure) {
    return {{"mean", figure(errors.mean)},
            {"median", figure(errors.median)},
            {"p95", figure(errors.p95)},
            {"bias", figure(errors.bias)},
            {"worst", figure(errors.worst)}};
}

io::OrderedJson json_of(const Judged& judged, bool per_row) {
    io::OrderedJson json = {
        {"schema", "roofline.validate/1"}, {"how", judged.how}, {"groups", io::OrderedJson::array()}};
    for (const Card& card : assess::cards(judged.measured, judged.expected, assess::Grouping::full)) {
        const auto figure = [&](double value) {
            return card.rows > 0 ? io::OrderedJson(value) : io::OrderedJson(nullptr);
        };
        json["groups"].push_back(
            {{"device", card.device},
             {"kind", card.kind},
             {"dtype", card.type},
             {"stage", card.stage.empty() ? io::OrderedJson(nullptr) : io::OrderedJson(card.stage)},
             {"rows", card.rows},
             {"refused", card.refused},
             {"mape",
              {{"limit", figure(card.limit.mean)},
               {"attainable", figure(card.attainable.mean)},
               {"expected", figure(card.expected.mean)}}},
             {"median", figure(card.expected.median)},
             {"p95", figure(card.expected.p95)},
             {"bias", figure(card.expected.bias)},
             {"coverage", figure(card.coverage)},
             {"errors",
              {{"limit", errors_json(card.limit, figure)},
               {"attainable", errors_json(card.attainable, figure)},
               {"expected", errors_json(card.expected, figure)}}}});
    }
    json["refused"] = io::OrderedJson::array();
    for (const assess::RefusedCount& count : assess::count_refused(judged.measured.refused)) {
        json["refused"].push_back({{"reason", count.reason}, {"rows", count.rows}, {"places", count.places}});
    }
    if (per_row) {
        json["rows"] = io::OrderedJson::array();
        for (std::size_t i = 0; i < judged.measured.rows.size(); ++i) {
            const assess::Measurement& row = judged.measured.rows[i];
            const assess::Expected& expected = judged.expected[i];
            json["rows"].push_back(
                {{"file", row.file},
                 {"line", row.line},
                 {"device", row.device->name},
                 {"kind", row.kind},
                 {"dtype", row.type},
                 {"stage", row.stage.empty() ? io::OrderedJson(nullptr) : io::OrderedJson(row.stage)},
                 {"stack", row.stack},
                 {"what", row.label},
                 {"time_s",
                  {{"limit", row.limit},
                   {"attainable", row.attainable},
                   {"expected", expected.seconds},
                   {"expected_low", expected.low},
                   {"expected_high", expected.high},
                   {"measured", row.seconds}}},
                 {"error", assess::signed_error(row, expected.seconds)},
                 {"calibration", expected.source}});
        }
    }
    if (per_row) {
        json["refused_rows"] = io::OrderedJson::array();
        for (const assess::Refusal& row : judged.measured.refused) {
            json["refused_rows"].push_back({{"file", row.file},
                                            {"line", row.line},
                                            {"device", row.device},
                                            {"kind", row.kind},
                                            {"dtype", row.type},
                                            {"reason", row.reason}});
        }
    }
    json["notes"] = judged.measured.notes;
    return json;
}

render::Table rows_table(const Judged& judged) {
    render::Table table{{{"place", Align::left},
                         {"device", Align::left},
                         {"kind", Align::left},
                         {"type", Align::left},
                         {"what", Align::left},
                         {"stack", Align::left},
                         {"limit us"},
                         {"attainable us"},
                         {"expected us"},
                         {"low us"},
                         {"high us"},
                         {"measured us"},
                         {"error"},
                         {"calibration", Align::left}},
                        {}};
    for (std::size_t i = 0; i < judged.measured.rows.size(); ++i) {
        const assess::Measurement& row = judged.measured.rows[i];
        const assess::Expected& expected = judged.expected[i];
        const auto us = [](double seconds) { return fmt::format("{:.3f}", 1e6 * seconds); };
        table.rows.push_back({fmt::format("{}:{}", row.file, row.line), row.device->name,
                              row.stage.empty() ? row.kind : row.kind + " " + row.stage, row.type, row.label, row.stack,
                              us(row.limit), us(row.attainable), us(expected.seconds), us(expected.low),
                              us(expected.high), us(row.seconds),
                              signed_percent(assess::signed_error(row, expected.seconds)), expected.source});
    }
    return table;
}

/// What `--by` names.
struct Tables {
    const char* option;
    const char* title;
    assess::Grouping grouping;
};
constexpr std::array<Tables, 4> all_tables = {{{"kind", "By kind", assess::Grouping::kind},
                                               {"size", "By kind and size", assess::Grouping::size},
                                               {"device", "By device", assess::Grouping::device},
                                               {"type", "By kind, type and device", assess::Grouping::full}}};

std::string text_of(const Judged& judged, const Options& options, bool markdown) {
    const auto spell = [&](const render::Table& table) {
        return markdown ? render::as_markdown(table) : render::as_text(table);
    };
    const auto title = [&](std::string_view text) {
        return markdown ? fmt::format("\n## {}\n\n", text) : fmt::format("\n{}\n", text);
    };
    if (options.output.format == "csv") {
        return render::as_csv(options.per_row
                                  ? rows_table(judged)
                                  : table_of(assess::cards(judged.measured, judged.expected, assess::Grouping::full),
                                             assess::Grouping::full));
    }
    std::string text = fmt::format("{} rows used, {} refused; {}.\n", judged.measured.rows.size(),
                                   judged.measured.refused.size(), judged.how);
    text +=
        "Errors are |predicted / measured - 1|: means of limit, attainable and expected, then more about expected.\n";
    for (const Tables& tables : all_tables) {
        if (!options.by.empty() && std::find(options.by.begin(), options.by.end(), tables.option) == options.by.end())
            continue;
        text += title(tables.title);
        text += spell(table_of(assess::cards(judged.measured, judged.expected, tables.grouping), tables.grouping));
    }
    const auto refused = assess::count_refused(judged.measured.refused);
    if (!refused.empty() && options.by.empty()) {
        text += title("Rows refused");
        render::Table table{{{"rows"}, {"why", Align::left}, {"where", Align::left}}, {}};
        for (const auto& count : refused)
            table.rows.push_back({std::to_string(count.rows), count.reason, count.places});
        text += spell(table);
    }
    if (options.per_row) {
        text += title("Row by row");
        text += spell(rows_table(judged));
        text += title("Each row refused");
        render::Table table{
            {{"place", Align::left}, {"device", Align::left}, {"kind", Align::left}, {"why", Align::left}}, {}};
        for (const assess::Refusal& row : judged.measured.refused)
            table.rows.push_back({fmt::format("{}:{}", row.file, row.line), row.device, row.kind, row.reason});
        text += spell(table);
    }
    if (!judged.measured.notes.empty()) text += "\n";
    for (const std::string& note : judged.measured.notes)
        text += fmt::format("{}{}\n", markdown ? "- " : "note: ", note);
    return text;
}

Result<int> validate(const Options& options, const std::string& command) {
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    const auto judged = judge(options);
    if (!judged) return std::unexpected(judged.error());
    const Shown shown{command,
                      [&] {
                          return Drawing{
                              .title = "Predicted against measured",
                              .charts = {measured_scatter(judged->measured.rows, judged->expected, judged->how)}};
                      },
                      [&] { return text_of(*judged, options, true); }};
    const std::string text = options.output.format == "json" ? io::dump(json_of(*judged, options.per_row))
                             : options.output.format == "html"
                                 ? shown.page()
                                 : text_of(*judged, options, options.output.format == "md");
    if (auto written = options.output.write(text); !written) return std::unexpected(written.error());
    if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
    return judged->measured.rows.empty() ? no_answer : done;
}

}  // namespace

void validate_verb(Program& program) {
    auto options = std::make_shared<Options>();
    const Verb verb = program.verb("validate", "How far predictions are from measurements");
    verb.add("files,--data", options->files,
             "Measured tables (CSV, JSON) or folders of them, reports of bench or analyze, device files of measure; "
             "without any, the tables shipped with the program")
        .type("FILE");
    verb.add("--calibration", options->calibration, "Constants written by calibrate, instead of the built-in ones")
        .type("FILE");
    verb.add("--leave-out", options->leave_out,
             "What the constants have not seen of a row: its family of shapes, or all of its device")
        .one_of({"family", "device"});
    verb.add("--by", options->by, "Only these tables: by kind; with size; by device; with type and device")
        .separated_by(',')
        .one_of({"kind", "size", "device", "type"});
    verb.add("--per-row", options->per_row, "Each row with its prediction");
    options->output.add_to(verb, {"table", "md", "csv", "json", "html"});
    options->plot.add_to(verb);
    verb.runs([&program, options] { return validate(*options, program.command); });
}

}  // namespace roofline::cli
