#include "roofline/render/chart/tornado.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/render/chart/marks.hpp"
#include "roofline/render/chart/scale.hpp"
#include "roofline/render/chart/svg.hpp"
#include "roofline/render/chart/text_width.hpp"
#include "roofline/render/chart/theme.hpp"

namespace roofline::render::chart {

std::string tornado_chart(std::vector<TornadoBar> bars, const std::string& title, const std::string& subtitle) {
    constexpr double width = 960.0;
    constexpr double row = 28.0;
    constexpr double left = 300.0;
    std::stable_sort(bars.begin(), bars.end(), [](const TornadoBar& a, const TornadoBar& b) {
        if (a.instead.empty() != b.instead.empty()) return a.instead.empty();
        return a.gain > b.gain;
    });
    double most = 1.25;
    double least = 1.0;
    for (const TornadoBar& bar : bars) {
        most = std::max(most, bar.gain);
        least = std::min(least, bar.gain);
    }
    const double height = 112.0 + row * static_cast<double>(std::max<std::size_t>(1, bars.size()));
    Svg svg(width, height, title, fmt::format("{} changes by what each would buy", bars.size()));
    const double top = draw_heading(svg, title, {subtitle}) + 8.0;
    const Scale x{least, most, left, width - 90.0, false};
    const double bottom = top + row * static_cast<double>(bars.size());
    for (const Tick& tick : linear_ticks(least, most, 5)) {
        svg.line({x.at(tick.value), top}, {x.at(tick.value), bottom}, "grid");
        svg.text({x.at(tick.value), bottom + 18.0}, tick.label + "x", "small", Anchor::middle);
    }
    double y = top;
    for (const TornadoBar& bar : bars) {
        const double end = x.at(bar.gain);
        const double zero = x.at(1.0);
        svg.text({left - 10.0, y + row / 2.0 + 4.0}, shortened(bar.name, left - 40.0, text_size),
                 bar.gain > 1.005 ? "label-text" : "soft", Anchor::end);
        svg.rectangle({std::min(zero, end), y + 5.0, std::max(zero, end), y + row - 5.0},
                      bar.gain >= 1.0 ? "bar good" : "bar bad",
                      fmt::format("{}: {:.2f} times{}{}", bar.name, bar.gain, bar.note.empty() ? "" : "\n", bar.note));
        if (!bar.instead.empty()) {
            svg.text({zero + 8.0, y + row / 2.0 + 4.0}, shortened(bar.instead, width - zero - 32.0, text_size), "soft");
            y += row;
            continue;
        }
        svg.text({std::max(zero, end) + 8.0, y + row / 2.0 + 4.0},
                 bar.gain > 1.0005 || bar.gain < 0.9995 ? fmt::format("{:.2f}x", bar.gain) : "nothing",
                 bar.gain > 1.005 ? "strong" : "soft");
        y += row;
    }
    svg.line({x.at(1.0), top - 4.0}, {x.at(1.0), bottom + 4.0}, "axis");
    return svg.finish();
}

}  // namespace roofline::render::chart
