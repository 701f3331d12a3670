#include "roofline/render/chart/figure.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "roofline/render/chart/svg.hpp"

namespace roofline::render::chart {
namespace {

double size_in(const std::string& svg, std::string_view key) {
    const std::size_t at = svg.find(key);
    return at == std::string::npos ? 0.0 : std::strtod(svg.c_str() + at + key.size(), nullptr);
}

}  // namespace

std::string stacked(const std::vector<std::string>& charts, const std::string& title) {
    if (charts.size() == 1) return charts.front();
    double width = 0.0;
    double height = 0.0;
    std::string inside;
    for (const std::string& chart : charts) {
        constexpr std::string_view begin = "<svg ";
        inside += fmt::format("<svg x=\"0\" y=\"{}\" {}", coordinate(height), chart.substr(begin.size()));
        width = std::max(width, size_in(chart, " width=\""));
        height += size_in(chart, " height=\"");
    }
    Svg svg(width, height, title, fmt::format("{} charts under each other", charts.size()));
    std::string text = svg.finish();
    text.insert(text.rfind("</svg>"), inside);
    return text;
}

}  // namespace roofline::render::chart
