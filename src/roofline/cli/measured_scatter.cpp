#include "roofline/cli/measured_scatter.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "roofline/render/chart/scatter.hpp"

namespace roofline::cli {
namespace {

constexpr std::size_t most_kinds = 8;  // more colours than that cannot be told apart

}  // namespace

std::string measured_scatter(std::span<const assess::Measurement> rows, std::span<const assess::Expected> expected,
                             const std::string& how) {
    std::map<std::string, render::chart::ScatterSeries> kinds;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::string kind = rows[i].stage.empty() ? rows[i].kind : rows[i].kind + " " + rows[i].stage;
        kinds[kind].name = kind;
        kinds[kind].points.push_back({rows[i].seconds, expected[i].seconds});
    }
    std::vector<render::chart::ScatterSeries> series;
    for (auto& [kind, one] : kinds) series.push_back(std::move(one));
    std::stable_sort(series.begin(), series.end(),
                     [](const auto& a, const auto& b) { return a.points.size() > b.points.size(); });
    while (series.size() > most_kinds) {
        render::chart::ScatterSeries& rest = series[most_kinds - 1];
        rest.name = "others";
        rest.points.insert(rest.points.end(), series.back().points.begin(), series.back().points.end());
        series.pop_back();
    }
    return render::chart::scatter_chart(series, "Predicted against measured", how);
}

}  // namespace roofline::cli
