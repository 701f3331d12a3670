#include "roofline/render/page/markdown.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/render/chart/svg.hpp"

namespace roofline::render {
namespace {

using chart::escaped;

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// Words with their `code`.
std::string words(std::string_view text) {
    std::string html;
    while (true) {
        const std::size_t from = text.find('`');
        const std::size_t to = from == std::string_view::npos ? from : text.find('`', from + 1);
        if (to == std::string_view::npos) return html + escaped(text);
        html += escaped(text.substr(0, from));
        html += fmt::format("<code>{}</code>", escaped(text.substr(from + 1, to - from - 1)));
        text.remove_prefix(to + 1);
    }
}

/// "| a | b |"; a bar inside a cell is written \|.
std::vector<std::string> cells_of(std::string_view line) {
    std::vector<std::string> cells;
    std::string cell;
    for (std::size_t i = 1; i < line.size(); ++i) {
        if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
            cell += line[++i];
        } else if (line[i] == '|') {
            cells.emplace_back(trimmed(cell));
            cell.clear();
        } else {
            cell += line[i];
        }
    }
    return cells;
}

bool is_table(std::string_view line) {
    return line.starts_with('|');
}
bool is_item(std::string_view line) {
    return trimmed(line).starts_with("- ");
}
bool is_fence(std::string_view line) {
    return line.starts_with("```");
}
std::size_t heading_level(std::string_view line) {
    const std::size_t level = std::min(line.find_first_not_of('#'), line.size());
    return level > 0 && level < 4 && line.substr(level).starts_with(' ') ? level : 0;
}

/// Where the words of a line begin, so that on a narrow page they go on below themselves: "  runs    up to 96 ..."
/// hangs by ten. Words far to the right are a column of a table, which has no such place.
std::size_t hanging(std::string_view line) {
    constexpr std::size_t furthest = 16;
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t gap = line.find("  ", begin);
    const std::size_t text = gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
    return text <= furthest ? text : std::min(begin, furthest);
}

class Reader {
  public:
    explicit Reader(std::string_view text) : lines_(lines_of(text)) {}

    ReadMarkdown read() && {
        ReadMarkdown report;
        if (!lines_.empty() && heading_level(lines_[0]) == 1) report.title = trimmed(lines_[at_++].substr(1));
        report.sections.emplace_back();
        while (at_ < lines_.size()) {
            const std::string_view line = lines_[at_];
            if (const std::size_t level = heading_level(line)) {
                report.sections.push_back({fmt::format("<h2>{}</h2>\n", words(trimmed(line.substr(level)))), 0});
                ++at_;
            } else if (is_fence(line)) {
                report.sections.back().html += fenced();
            } else if (is_table(line)) {
                add_table(report.sections.back());
            } else if (is_item(line)) {
                report.sections.back().html += list();
            } else if (trimmed(line).empty()) {
                ++at_;
            } else {
                report.sections.back().html += paragraph();
            }
        }
        return report;
    }

  private:
    std::string fenced() {
        std::string html = "<pre>";
        for (++at_; at_ < lines_.size() && !is_fence(lines_[at_]); ++at_)
            html += fmt::format("<span style=\"--hang:{}ch\">{}\n</span>", hanging(lines_[at_]), escaped(lines_[at_]));
        ++at_;
        return html + "</pre>\n";
    }

    std::string list() {
        std::string html = "<ul>\n";
        for (; at_ < lines_.size() && is_item(lines_[at_]); ++at_) {
            const bool below = lines_[at_].starts_with(' ');
            html += fmt::format("<li{}>{}</li>\n", below ? " class=\"below\"" : "",
                                words(trimmed(trimmed(lines_[at_]).substr(1))));
        }
        return html + "</ul>\n";
    }

    /// Lines stay lines: each of a report says a thing of its own.
    std::string paragraph() {
        std::string html;
        for (; at_ < lines_.size(); ++at_) {
            const std::string_view line = lines_[at_];
            if (trimmed(line).empty() || heading_level(line) > 0 || is_fence(line) || is_table(line) || is_item(line))
                break;
            html += (html.empty() ? "" : "<br>\n") + words(trimmed(line));
        }
        return "<p>" + html + "</p>\n";
    }

    void add_table(Section& section) {
        const std::vector<std::string> titles = cells_of(lines_[at_++]);
        std::vector<std::string> sides;
        if (at_ < lines_.size() && is_table(lines_[at_])) sides = cells_of(lines_[at_++]);
        const auto of_words = [&](std::size_t column) {
            return column >= sides.size() || !sides[column].ends_with(':') ? " class=\"words\"" : "";
        };
        std::string& html = section.html;
        html += "<div class=\"table\"><table>\n<thead><tr>";
        for (std::size_t i = 0; i < titles.size(); ++i)
            html += fmt::format("<th scope=\"col\"{}><button type=\"button\">{}</button></th>", of_words(i),
                                words(titles[i]));
        html += "</tr></thead>\n<tbody>\n";
        std::size_t rows = 0;
        for (; at_ < lines_.size() && is_table(lines_[at_]); ++at_, ++rows) {
            html += "<tr>";
            const std::vector<std::string> cells = cells_of(lines_[at_]);
            for (std::size_t i = 0; i < cells.size(); ++i)
                html += fmt::format("<td{}>{}</td>", of_words(i), words(cells[i]));
            html += "</tr>\n";
        }
        html += "</tbody>\n</table></div>\n";
        section.longest_table = std::max(section.longest_table, rows);
    }

    std::vector<std::string_view> lines_;
    std::size_t at_ = 0;
};

}  // namespace

ReadMarkdown read_markdown(std::string_view text) {
    return Reader(text).read();
}

}  // namespace roofline::render
