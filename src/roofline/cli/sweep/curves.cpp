#include "roofline/cli/sweep/curves.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "roofline/ask/sweep/rows.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::cli {
namespace {

constexpr std::size_t most_points = 5000;
constexpr std::size_t most_curves = 8;

struct Rows {
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> cells;

    std::size_t column(std::string_view name) const {
        return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
    }
    bool varies(std::size_t column) const {
        return std::any_of(cells.begin(), cells.end(),
                           [&](const auto& row) { return row[column] != cells.front()[column]; });
    }
};

/// By the same code that writes them to files.
Result<Rows> rows_of(const ask::Grid& grid, std::size_t first, std::size_t last) {
    auto metrics =
        ask::choose_metrics("fits,max_batch,decode_limit_s,decode_expected_s,decode_tokens_per_s,decode_bound");
    if (!metrics) return std::unexpected(metrics.error());
    const ask::RowLayout layout{&grid, std::move(*metrics), ask::Spelling::cells, false};
    Rows rows;
    rows.columns = layout.column_names();
    ask::RowWriter writer(layout);
    for (std::size_t row = first; row < last; ++row) {
        std::string text;
        writer.append(row, text);
        if (text.ends_with('\n')) text.pop_back();
        auto cells = parts_of(text, ask::cell_separator);
        cells.resize(rows.columns.size());
        rows.cells.push_back(std::move(cells));
    }
    return rows;
}

double number(const std::string& text) {
    return std::strtod(text.c_str(), nullptr);
}

}  // namespace

Result<Curves> curves_of(const ask::Grid& grid, std::size_t first, std::size_t last) {
    if (grid.under_load())
        return fail(
            "--plot: draws decode steps, not requests under load; expected none of --saturated, --rate, --concurrency, "
            "--trace");
    if (last - first > most_points)
        return fail(fmt::format("--plot: {} points are too many for a picture, expected {} at most",
                                render::grouped(static_cast<double>(last - first)), most_points));
    const auto rows = rows_of(grid, first, last);
    if (!rows) return std::unexpected(rows.error());
    Curves result;
    result.along = "batch";
    std::vector<std::string> axes;
    for (const ask::SetupAxis& axis : grid.setup_axes()) axes.push_back(axis.column);
    for (const ask::WorkAxis& axis : grid.work_axes()) {
        if (axis.shown) axes.push_back(axis.column);
    }
    if (!rows->cells.empty() && !rows->varies(rows->column("batch"))) {
        for (const ask::WorkAxis& axis : grid.work_axes()) {
            if (axis.shown && rows->varies(rows->column(axis.column))) result.along = axis.column;
        }
    }
    const std::size_t along = rows->column(result.along);
    const std::size_t fits = rows->column("fits");
    const std::size_t largest = rows->column("max_batch");
    std::map<std::string, std::size_t> known;
    for (const auto& row : rows->cells) {
        std::string name;
        for (const std::string& axis : axes) {
            const std::size_t column = rows->column(axis);
            if (column >= row.size() || column == along || !rows->varies(column)) continue;
            const bool plain_name = axis == "model" || axis == "device";
            name += (name.empty() ? "" : ", ") + (plain_name ? row[column] : axis + " " + row[column]);
        }
        const auto [found, fresh] = known.emplace(name, result.curves.size());
        if (fresh) result.curves.push_back({name, {}, std::nullopt});
        render::chart::LoadCurve& curve = result.curves[found->second];
        render::chart::LoadPoint point;
        point.along = number(row[along]);
        point.seconds = number(row[rows->column("decode_expected_s")]);
        point.rate = number(row[rows->column("decode_tokens_per_s")]);
        point.limit_seconds = number(row[rows->column("decode_limit_s")]);
        // The rate is that of the expected time: the same tokens in less time.
        point.limit_rate = point.limit_seconds > 0.0 ? point.rate * point.seconds / point.limit_seconds : 0.0;
        point.bound = row[rows->column("decode_bound")];
        point.compute_bound = point.bound == "compute";
        point.fits = row[fits] != "no" && row[fits] != "false" && row[fits] != "0";
        if (result.along == "batch" && number(row[largest]) > 0.0) curve.largest = number(row[largest]);
        curve.points.push_back(point);
    }
    if (result.curves.size() > most_curves)
        return fail(
            fmt::format("--plot: {} curves are too many for a picture, expected {} at most: a curve for every "
                        "combination of what is not the {}",
                        result.curves.size(), most_curves, result.along));
    for (const std::string& axis : {std::string("model"), std::string("device")}) {
        const std::size_t column = rows->column(axis);
        if (column < rows->columns.size() && !rows->cells.empty() && !rows->varies(column))
            result.title += (result.title.empty() ? "" : " on ") + rows->cells.front()[column];
    }
    result.title = "Throughput against latency" + (result.title.empty() ? "" : ": " + result.title);
    return result;
}

}  // namespace roofline::cli
