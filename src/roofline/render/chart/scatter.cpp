#include "roofline/render/chart/scatter.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/render/chart/marks.hpp"
#include "roofline/render/chart/scale.hpp"
#include "roofline/render/chart/svg.hpp"
#include "roofline/render/chart/text_width.hpp"
#include "roofline/render/chart/theme.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::render::chart {

std::string scatter_chart(const std::vector<ScatterSeries>& series, const std::string& title,
                          const std::string& subtitle) {
    constexpr double width = 960.0;
    constexpr double height = 720.0;
    double low = 1e300;
    double high = 0.0;
    std::size_t all = 0;
    std::size_t near = 0;
    for (const ScatterSeries& one : series) {
        for (const ScatterPoint& point : one.points) {
            if (!(point.measured > 0.0 && point.predicted > 0.0)) continue;
            low = std::min({low, point.measured, point.predicted});
            high = std::max({high, point.measured, point.predicted});
            ++all;
            const double ratio = point.predicted / point.measured;
            near += ratio >= 0.8 && ratio <= 1.2 ? 1 : 0;
        }
    }
    if (all == 0) {
        low = 1e-6;
        high = 1.0;
    }
    std::vector<LegendItem> legend;
    for (std::size_t i = 0; i < series.size(); ++i)
        legend.push_back({LegendItem::Kind::mark, Shape::circle, fmt::format("fill {}", series_class(i)),
                          fmt::format("{} ({})", series[i].name, series[i].points.size())});
    legend.push_back({LegendItem::Kind::area, Shape::circle, "band", "within a fifth"});
    Svg svg(width, height, title, fmt::format("{} predictions against measurements, {} within a fifth", all, near));
    std::vector<std::string> lines = {subtitle};
    if (all > 0)
        lines.push_back(fmt::format("{} of {} within a fifth of the measurement",
                                    percent(static_cast<double>(near) / static_cast<double>(all)),
                                    grouped(static_cast<double>(all))));
    double top = draw_heading(svg, title, lines);
    top += draw_legend(svg, {24.0, top}, width - 48.0, legend) + 8.0;
    Frame frame;
    frame.plot = {82.0, top, width - 24.0, height - 52.0};
    frame.x = {low / 1.5, high * 1.5, frame.plot.left, frame.plot.right, true, "s"};
    frame.y = {low / 1.5, high * 1.5, frame.plot.bottom, frame.plot.top, true, "s"};
    frame.x_name = "measured time";
    frame.y_name = "predicted time";
    draw_frame(svg, frame);
    svg.open_clipped(frame.plot, "inside");
    const double from = frame.x.low / 2.0;
    const double to = frame.x.high * 2.0;
    svg.area({frame.at(from, from * 0.8), frame.at(to, to * 0.8), frame.at(to, to * 1.2), frame.at(from, from * 1.2)},
             "band");
    svg.line(frame.at(from, from), frame.at(to, to), "axis");
    for (std::size_t i = series.size(); i-- > 0;) {  // the first lie on top
        std::vector<Point> dots;
        for (const ScatterPoint& point : series[i].points) {
            if (point.measured > 0.0 && point.predicted > 0.0)
                dots.push_back(frame.at(point.measured, point.predicted));
        }
        svg.dots(dots, fmt::format("dots stroke {}", series_class(i)));
    }
    svg.text({frame.plot.left + 12.0, frame.plot.top + 22.0}, "predicted slower than measured", "halo soft");
    svg.text({frame.plot.right - 12.0, frame.plot.bottom - 14.0}, "predicted faster than measured", "halo soft",
             Anchor::end);
    svg.close();
    return svg.finish();
}

}  // namespace roofline::render::chart
