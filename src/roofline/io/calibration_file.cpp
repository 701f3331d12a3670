#include "roofline/io/calibration_file.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/io/embedded.hpp"
#include "roofline/io/fields.hpp"

namespace roofline::io {
namespace {

std::optional<predict::Scope> parse_scope(std::string_view text) {
    for (const predict::Scope scope :
         {predict::Scope::device, predict::Scope::generation, predict::Scope::everything}) {
        if (predict::name(scope) == text) return scope;
    }
    return std::nullopt;
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
    Fields constants = line.child("constants");
    for (std::size_t i = 0; i < fitted.kernel_class->constants.size(); ++i) {
        const predict::Constant& constant = fitted.kernel_class->constants[i];
        fitted.constants[i] = constants.positive(constant.name);
        // Written with five digits: a bound may have been rounded past.
        if (fitted.constants[i] < 0.9999 * constant.low || fitted.constants[i] > 1.0001 * constant.high) {
            constants.complain(constant.name,
                               fmt::format("expected a number from {} to {}", constant.low, constant.high));
        }
        fitted.constants[i] = std::clamp(fitted.constants[i], constant.low, constant.high);
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
        text += fmt::format(
            "{}\n    {{\"class\": {}, \"type\": {}, \"stack\": {}, \"scope\": {}, \"of\": {}, {}\"rows\": {:.0f}, "
            "\"error\": "
            "{:.4f}, \"range\": [{:.4g}, {:.4g}], \"constants\": {{",
            first ? "" : ",", quoted(fitted.kernel_class->name), quoted(fitted.type), quoted(fitted.stack),
            quoted(predict::name(fitted.scope)), quoted(fitted.of), vendors, fitted.rows, fitted.error, fitted.low,
            fitted.high);
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
            fit = fit.substr(0, fit.rfind("}}") + 2);
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
