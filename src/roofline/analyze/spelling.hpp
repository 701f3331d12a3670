// Tables, headings and lines of an analysis as text or Markdown. On a terminal they keep to its width: lines are
// broken, and tables leave out what can be spared.
#pragma once

#include <string>

#include "roofline/analyze/text.hpp"
#include "roofline/render/table.hpp"

namespace roofline::analyze {

std::string spelt(render::Table table, const TextOptions& options);
std::string line(const std::string& text, const TextOptions& options);

inline std::string heading(const std::string& title, const TextOptions& options) {
    return options.markdown ? "## " + title + "\n\n" : title + "\n";
}

}  // namespace roofline::analyze
