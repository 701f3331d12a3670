// One file that can be mailed: an answer as it is written for people, the charts of it, and a little script to look
// around with. It loads nothing and sends nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/account.hpp"
#include "roofline/render/chart/roofline.hpp"

namespace roofline::render {

struct Page {
    std::string title = {};                  // empty: the first heading of the report
    std::string report = {};                 // Markdown (page/markdown.hpp); its tables can be sorted and searched
    std::vector<std::string> charts = {};    // SVG
    std::vector<std::string> more = {};      // SVG too: what is too long to stand before the report
    std::span<const Account> accounts = {};  // of these every chart there is (chart/account_charts.hpp)
    chart::RooflineOptions look = {};
    std::string command = {};   // what gave the answer, shown at the foot; may be empty
    bool report_first = false;  // charts of accounts after all of the report; else they follow its first lines
};

std::string write_page(const Page& page);

/// Stages and operators of accounts as Markdown, for who has no report of them.
std::string accounts_markdown(std::span<const Account> accounts);

/// The files beside this one, embedded by the build.
std::string_view page_style();
std::string_view page_script();

}  // namespace roofline::render
