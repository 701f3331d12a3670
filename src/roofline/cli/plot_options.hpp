// --plot FILE: the answer as a picture, its kind by the end of the name. A verb adds the option in one line and writes
// in another:
//
//   options->plot.add_to(*verb);                                    // where it adds its options
//   if (auto drawn = options.plot.write(accounts); !drawn) ...      // after its answer; does nothing where none is
//   asked
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "roofline/core/account.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/render/chart/account_charts.hpp"

namespace roofline::cli {

struct PlotOptions {
    std::string file;

    void add_to(CLI::App& app);
    bool asked() const { return !file.empty(); }
    /// A name nobody can draw to is refused before anything is computed.
    Result<void> check(std::string_view option = "--plot") const;

    /// The roofline of accounts; as HTML with everything else that can be drawn of them.
    Result<void> write(std::span<const Account> accounts) const;
    /// One chart of them; a page shows all of them whichever is named.
    Result<void> write(std::span<const Account> accounts, const render::chart::AccountChart& chart,
                       const render::chart::RooflineOptions& look) const;
    /// A chart that was drawn already; the title is that of a page.
    Result<void> write_svg(const std::string& svg, const std::string& title) const;
};

}  // namespace roofline::cli
