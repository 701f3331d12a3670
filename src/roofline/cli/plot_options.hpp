// An answer to look at: --plot FILE, its kind by the end of the name, and --format html. A verb says once what it can
// show and how it reads:
//
//   options->plot.add_to(verb);                                     // where it adds its options
//   const Shown shown{command, [&] { return Drawing{...}; }, [&] { return markdown(...); }};
//   text = options.output.format == "html" ? shown.page() : ...
//   if (auto drawn = options.plot.write(shown); !drawn) ...         // after its answer; nothing where none is asked
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/cli/verb.hpp"
#include "roofline/core/account.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/render/chart/account_charts.hpp"

namespace roofline::cli {

/// What can be drawn of an answer: accounts, of which there are charts, and charts of its own.
struct Drawing {
    std::string title = {};  // of a page; empty: the first heading of its report
    std::vector<Account> accounts = {};
    std::vector<std::string> charts =
        {};                              // SVG, for a page; in a picture, under each other where there are no accounts
    std::vector<std::string> more = {};  // likewise; on a page after the report
    std::string chart = "roofline";      // the one of the accounts that a picture shows; a page shows all of them
    render::chart::RooflineOptions look = {};
    bool report_first = false;  // on a page: charts of accounts after the report
};

struct Shown {
    std::string command;
    std::function<Drawing()> drawing;
    std::function<std::string()> report;  // Markdown

    /// All of it in one file.
    std::string page() const;
};

struct PlotOptions {
    std::string file;

    void add_to(const Verb& verb);
    bool asked() const { return !file.empty(); }
    /// A name nobody can draw to is refused before anything is computed.
    Result<void> check(std::string_view option = "--plot") const;
    Result<void> write(const Shown& shown) const;
};

}  // namespace roofline::cli
