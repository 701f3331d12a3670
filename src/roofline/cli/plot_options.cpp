#include "roofline/cli/plot_options.hpp"

#include <fmt/format.h>

#include "roofline/cli/files.hpp"
#include "roofline/cli/raster.hpp"
#include "roofline/io/tensors.hpp"
#include "roofline/render/page/page.hpp"

namespace roofline::cli {

void PlotOptions::add_to(CLI::App& app) {
    app.add_option("--plot", file, "Also draw it to this file: .svg, .png, .pdf, or .html to look around in")
        ->type_name("FILE");
}

Result<void> PlotOptions::check(std::string_view option) const {
    if (file.empty()) return {};
    for (const char* ending : {".svg", ".png", ".pdf", ".html"}) {
        if (file.ends_with(ending)) return {};
    }
    return fail(fmt::format("{}: found \"{}\", expected a name that ends in .svg, .png, .pdf or .html", option,
                            io::printable(file)));
}

Result<void> PlotOptions::write(std::span<const Account> accounts) const {
    return write(accounts, *render::chart::find_account_chart("roofline"), {});
}

Result<void> PlotOptions::write(std::span<const Account> accounts, const render::chart::AccountChart& chart,
                                const render::chart::RooflineOptions& look) const {
    if (!asked()) return {};
    if (auto good = check(); !good) return good;
    if (file.ends_with(".html")) return write_whole(file, render::account_page(accounts, ""));
    return write_svg(chart.draw(accounts, look), "");
}

Result<void> PlotOptions::write_svg(const std::string& svg, const std::string& title) const {
    if (!asked()) return {};
    if (auto good = check(); !good) return good;
    if (file.ends_with(".svg")) return write_whole(file, svg);
    if (file.ends_with(".html")) return write_whole(file, render::chart_page({svg}, title, ""));
    const auto bytes = file.ends_with(".png") ? png_of(svg) : pdf_of(svg);
    if (!bytes) return std::unexpected(bytes.error());
    return write_whole(file, *bytes);
}

}  // namespace roofline::cli
