#include "roofline/cli/plot_options.hpp"

#include <fmt/format.h>

#include "roofline/cli/files.hpp"
#include "roofline/cli/raster.hpp"
#include "roofline/io/tensors.hpp"
#include "roofline/render/chart/figure.hpp"
#include "roofline/render/page/page.hpp"

namespace roofline::cli {

void PlotOptions::add_to(const Verb& verb) {
    verb.add("--plot", file, "Also draw it to this file: .svg, .png, .pdf, or .html to look around in").type("FILE");
}

Result<void> PlotOptions::check(std::string_view option) const {
    if (file.empty()) return {};
    for (const char* ending : {".svg", ".png", ".pdf", ".html"}) {
        if (file.ends_with(ending)) return can_be_written(file);
    }
    return fail(fmt::format("{}: found \"{}\", expected a name that ends in .svg, .png, .pdf or .html", option,
                            io::printable(file)));
}

std::string Shown::page() const {
    const Drawing drawn = drawing();
    return render::write_page({.title = drawn.title,
                               .report = report(),
                               .charts = drawn.charts,
                               .more = drawn.more,
                               .accounts = drawn.accounts,
                               .look = drawn.look,
                               .command = command,
                               .report_first = drawn.report_first});
}

Result<void> PlotOptions::write(const Shown& shown) const {
    if (!asked()) return {};
    if (auto good = check(); !good) return good;
    if (file.ends_with(".html")) return write_whole(file, shown.page());
    Drawing drawn = shown.drawing();
    drawn.charts.insert(drawn.charts.end(), drawn.more.begin(), drawn.more.end());
    const std::string svg = drawn.accounts.empty()
                                ? render::chart::stacked(drawn.charts, drawn.title)
                                : render::chart::find_account_chart(drawn.chart)->draw(drawn.accounts, drawn.look);
    if (file.ends_with(".svg")) return write_whole(file, svg);
    const auto bytes = file.ends_with(".png") ? png_of(svg) : pdf_of(svg);
    if (!bytes) return std::unexpected(bytes.error());
    return write_whole(file, *bytes);
}

}  // namespace roofline::cli
