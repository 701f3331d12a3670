#include "roofline/analyze/json_text.hpp"

#include <cmath>

#include <fmt/format.h>

#include "roofline/analyze/csv_rows.hpp"

namespace roofline::analyze {

Result<Documents> read_documents(Input& input) {
    const auto text = input.rest(largest_document);
    if (!text) return std::unexpected(text.error());
    Documents documents;
    std::string_view left = *text;
    if (left.starts_with("\xEF\xBB\xBF")) left.remove_prefix(3);
    auto whole = io::parse_json(left, input.name());
    if (whole) {
        if (whole->is_array()) {
            for (io::Json& entry : *whole) documents.all.push_back(std::move(entry));
        } else {
            documents.all.push_back(std::move(*whole));
        }
        return documents;
    }
    long line = 0;
    while (!left.empty()) {
        const std::size_t end = left.find('\n');
        const std::string_view part = left.substr(0, end);
        left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
        ++line;
        if (part.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        auto one = io::parse_json(part, fmt::format("{}:{}", input.name(), line));
        if (one && one->is_object()) {
            documents.all.push_back(std::move(*one));
            continue;
        }
        if (documents.all.empty()) return std::unexpected(whole.error());
        if (!left.empty()) return std::unexpected(one ? whole.error() : one.error());
        documents.cut = fmt::format("line {} is cut off", line);
    }
    if (documents.all.empty()) return std::unexpected(whole.error());
    return documents;
}

std::optional<double> number_at(const io::Json& object, std::string_view key) {
    if (!object.is_object()) return std::nullopt;
    const auto found = object.find(key);
    if (found == object.end()) return std::nullopt;
    if (found->is_number()) {
        const double value = found->get<double>();
        return std::isfinite(value) ? std::optional(value) : std::nullopt;
    }
    if (found->is_string()) return number_of(found->get_ref<const std::string&>());
    return std::nullopt;
}

std::string text_at(const io::Json& object, std::string_view key) {
    if (!object.is_object()) return "";
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace roofline::analyze
