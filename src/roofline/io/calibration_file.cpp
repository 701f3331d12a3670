#include "roofline/io/calibration_file.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/io/embedded.hpp"
#include "roofline/io/fields.hpp"

namespace roofline::io {
namespace {

/// Written with five digits: a bound may have been rounded past.
bool within(const predict::Constant& constant, double value) {
    return value >= 0.9999 * constant.low && value <= 1.0001 * constant.high;
}

std::string bounds_of(const predict::Constant& constant) {
    return fmt::format("expected a number from {} to {}", constant.low, constant.high);
}

std::optional<predict::Scope> parse_scope(std::string_view text) {
    for (const predict::Scope scope :
         {predict::Scope::device, predict::Scope::generation, predict::Scope::everything}) {
        if (predict::name(scope) == text) return scope;
    }
    return std::nullopt;
}

/// By name; in a file that was made small (cmake/Embed.cmake) in the order of their class.
std::vector<double> read_constants(Fields& line, const predict::KernelClass& kernel_class) {
    const std::size_t count = kernel_class.constants.size();
    const Json* found = line.find("constants");
    if (found == nullptr || !found->is_array()) {
        Fields named = line.child("constants");
        std::vector<double> values;
        for (const predict::Constant& constant : kernel_class.constants) {
            values.push_back(named.positive(constant.name));
            if (!within(constant, values.back())) named.complain(constant.name, bounds_of(constant));
        }
        return values;
    }
    std::vector<double> values = line.numbers("constants");
    if (values.size() != count) line.complain("constants", fmt::format("expected {} numbers", count));
    values.resize(count, 0.0);
    for (std::size_t i = 0; i < count; ++i) {
        const predict::Constant& constant = kernel_class.constants[i];
        if (!within(constant, values[i]))
            line.complain("constants", fmt::format("{}: {}", constant.name, bounds_of(constant)));
    }
    return values;
}

void read_fit(Fields& line, predict::Calibration& into) {
    predict::Fitted fitted;
    fitted.kernel_class = predict::kernel_class(line.text("class"));
    if (fitted.kernel_class == nullptr) {
        line.complain("class", "expected a kernel class");
        return;
    }
    fitted.type = line.text_or("type", "");
    fitted.stack = line.text_or("stack", "");
    const auto scope = parse_scope(line.text("scope"));
    if (!scope) line.complain("scope", "expected device, generation or everything");
    fitted.scope = scope.value_or(predict::Scope::everything);
    fitted.of = line.text_or("of", "");
    if (fitted.of.empty() != (fitted.scope == predict::Scope::everything))
        line.complain("of", "expected the name of the device or generation, and nothing for everything");
    if (line.has("vendors")) fitted.vendors = line.texts("vendors");
    fitted.rows = line.number_or("rows", 0.0);
    fitted.error = line.number_or("error", 0.0);
    const std::vector<double> range = line.numbers("range");
    if (range.size() != 2 || range[0] <= 0.0 || range[0] > range[1]) {
        line.complain("range", "expected two positive numbers, the smaller one first");
        return;
    }
    fitted.low = range[0];
    fitted.high = range[1];
    if (line.has("authors")) {
        const std::vector<double> authors = line.numbers("authors");
        if (authors.size() != 2 || authors[0] <= 0.0 || authors[0] > 1.0 || authors[1] < 1.0) {
            line.complain("authors", "expected a positive number up to 1 and one from 1");
            return;
        }
        fitted.authors_low = authors[0];
        fitted.authors_high = authors[1];
    }
    const std::vector<double> constants = read_constants(line, *fitted.kernel_class);
    for (std::size_t i = 0; i < constants.size(); ++i) {
        const predict::Constant& constant = fitted.kernel_class->constants[i];
        fitted.constants[i] = std::clamp(constants[i], constant.low, constant.high);
    }
    into.add(std::move(fitted));
}

}  // namespace

Result<predict::Calibration> read_calibration(std::string_view text, std::string_view file) {
    const auto json = parse_json(text, file);
    if (!json) return std::unexpected(json.error());
    std::optional<Problem> problem;
    Fields fields(*json, std::string(file), "", problem);
    predict::Calibration calibration;
    if (fields.text("schema") != "roofline.calibration/1") fields.complain("schema", "expected roofline.calibration/1");
    if (!fields.has("fits")) fields.complain("fits", "expected a list of fits");
    for (Fields& line : fields.children("fits")) read_fit(line, calibration);
    if (problem) return std::unexpected(*problem);
    return calibration;
}

std::string write_calibration(const predict::Calibration& calibration, const std::vector<std::string>& made_from) {
    std::string text = "{\n  \"schema\": \"roofline.calibration/1\",\n  \"made_from\": [";
    const auto quoted = [](std::string_view value) { return Json(value).dump(); };
    for (std::size_t i = 0; i < made_from.size(); ++i) text += (i > 0 ? ",\n    " : "\n    ") + quoted(made_from[i]);
    text += "\n  ],\n  \"fits\": [";
    bool first = true;
    for (const predict::Fitted& fitted : calibration.all()) {
        const std::string vendors =
            fitted.vendors.empty() ? "" : fmt::format("\"vendors\": {}, ", Json(fitted.vendors).dump());
        const std::string authors =
            fitted.authors_low < 1.0 || fitted.authors_high > 1.0
                ? fmt::format("\"authors\": [{:.4g}, {:.4g}], ", fitted.authors_low, fitted.authors_high)
                : "";
        text += fmt::format(
            "{}\n    {{\"class\": {}, \"type\": {}, \"stack\": {}, \"scope\": {}, \"of\": {}, {}\"rows\": {:.0f}, "
            "\"error\": "
            "{:.4f}, \"range\": [{:.4g}, {:.4g}], {}\"constants\": {{",
            first ? "" : ",", quoted(fitted.kernel_class->name), quoted(fitted.type), quoted(fitted.stack),
            quoted(predict::name(fitted.scope)), quoted(fitted.of), vendors, fitted.rows, fitted.error, fitted.low,
            fitted.high, authors);
        for (std::size_t i = 0; i < fitted.kernel_class->constants.size(); ++i) {
            text += fmt::format("{}{}: {:.5g}", i > 0 ? ", " : "", quoted(fitted.kernel_class->constants[i].name),
                                fitted.constants[i]);
        }
        text += "}}";
        first = false;
    }
    return text + "\n  ]\n}\n";
}

Result<predict::Calibration> builtin_calibration() {
    predict::Calibration all;
    for (const EmbeddedFile& file : embedded_calibrations()) {
        const auto part = read_calibration(file.text, file.name);
        if (!part) return std::unexpected(part.error());
        for (const predict::Fitted& fitted : part->all()) all.add(fitted);
    }
    return all;
}

Result<predict::Calibration> builtin_calibration(const Device& device) {
    // Each fit is an object of its own that begins with its class: those of other devices need not be parsed.
    constexpr std::string_view begins = "{\"class\"";
    std::vector<std::string> wanted = {"\"of\": \"\"", "\"of\": \"" + device.name + "\""};
    if (!device.generation.empty()) wanted.push_back("\"of\": \"" + device.generation + "\"");
    predict::Calibration result;
    for (const EmbeddedFile& file : embedded_calibrations()) {
        std::string chosen = R"({"schema": "roofline.calibration/1", "fits": [)";
        bool first = true;
        std::size_t at = file.text.find(begins);
        while (at != std::string_view::npos) {
            const std::size_t next = file.text.find(begins, at + 1);
            std::string_view fit = file.text.substr(at, next == std::string_view::npos ? next : next - at);
            // Its constants are the last thing in it, in braces or, in order, in brackets.
            fit = fit.substr(0, fit.find_first_of("]}", fit.find("\"constants\"")) + 2);
            const bool applies = std::any_of(wanted.begin(), wanted.end(), [&](const std::string& of) {
                return fit.find(of) != std::string_view::npos;
            });
            if (applies) {
                chosen += (first ? "" : ",") + std::string(fit);
                first = false;
            }
            at = next;
        }
        const auto part = read_calibration(chosen + "]}", file.name);
        if (!part) return std::unexpected(part.error());
        for (const predict::Fitted& fitted : part->all()) result.add(fitted);
    }
    return result;
}

}  // namespace roofline::io
