// How the parts of an answer are spelt, as plain text or as Markdown.
#pragma once

#include <string>

#include "roofline/analyze/text.hpp"
#include "roofline/render/table.hpp"

namespace roofline::analyze {

inline std::string spelt(const render::Table& table, const TextOptions& options) {
    return options.markdown ? render::as_markdown(table) + "\n" : render::as_text(table, "  ");
}

inline std::string heading(const std::string& title, const TextOptions& options) {
    return options.markdown ? "## " + title + "\n\n" : title + "\n";
}

inline std::string line(const std::string& text, const TextOptions& options) {
    if (!options.markdown) return "  " + text + "\n";
    const std::size_t begin = text.find_first_not_of(' ');  // what is indented belongs to the line above
    return (begin > 0 && begin != std::string::npos ? "  - " + text.substr(begin) : "- " + text) + "\n";
}

}  // namespace roofline::analyze
