// Reports as they are written in Markdown, for a page. Only what our own reports use is known: headings, tables, lists,
// fenced text, paragraphs and `code`. Nothing in a report is taken for HTML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace roofline::render {

/// What stands below one heading.
struct Section {
    std::string html;
    std::size_t longest_table = 0;  // rows
};

struct ReadMarkdown {
    std::string title;              // of a "# heading" in the first line; empty where there is none
    std::vector<Section> sections;  // the first: what stands before any other heading; may be empty
};

ReadMarkdown read_markdown(std::string_view text);

}  // namespace roofline::render
