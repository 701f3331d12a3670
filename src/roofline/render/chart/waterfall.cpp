#include "roofline/render/chart/waterfall.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/render/chart/marks.hpp"
#include "roofline/render/chart/scale.hpp"
#include "roofline/render/chart/svg.hpp"
#include "roofline/render/chart/text_width.hpp"
#include "roofline/render/chart/theme.hpp"

namespace roofline::render::chart {

std::string waterfall_chart(const std::vector<WaterfallStep>& steps, const std::string& title,
                            const std::string& subtitle) {
    constexpr double width = 960.0;
    constexpr double row = 40.0;
    constexpr double left = 300.0;  // as in the tornado, which stands below it
    double most = 0.0;
    for (const WaterfallStep& step : steps) most = std::max(most, step.value);
    if (!(most > 0.0)) most = 1.0;
    const double height = 96.0 + row * static_cast<double>(steps.size() + 1);
    Svg svg(width, height, title, fmt::format("{} steps one after another", steps.empty() ? 0 : steps.size() - 1));
    const double top = draw_heading(svg, title, {subtitle}) + 8.0;
    const Scale x{0.0, most, left, width - 140.0, false};
    double y = top;
    const auto name_row = [&](const std::string& name, const char* classes) {
        svg.text({left - 10.0, y + row / 2.0 + 4.0}, shortened(name, left - 40.0, text_size), classes, Anchor::end);
    };
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const WaterfallStep& step = steps[i];
        const double end = x.at(step.value);
        if (i == 0) {
            svg.rectangle({x.from, y + 7.0, end, y + row - 7.0}, "bar fill s7", step.name + "\n" + step.text);
            svg.text({end + 8.0, y + row / 2.0 + 4.0}, step.text, "strong");
        } else {
            const double before = x.at(steps[i - 1].value);
            const bool better = step.value <= steps[i - 1].value;
            svg.line({before, y - 7.0}, {before, y + row - 7.0}, "ridge");
            svg.rectangle({std::min(before, end), y + 7.0, std::max(before, end), y + row - 7.0},
                          better ? "bar good" : "bar bad", step.name + "\n" + step.text);
            const double change = steps[i - 1].value > 0.0 ? step.value / steps[i - 1].value - 1.0 : 0.0;
            svg.text({std::max(before, end) + 8.0, y + row / 2.0 + 4.0},
                     fmt::format("{} ({:+.0f}%)", step.text, 100.0 * change), "soft");
        }
        name_row(step.name, "label-text");
        y += row;
    }
    if (steps.size() > 1) {
        const double end = x.at(steps.back().value);
        svg.line({end, y - 7.0}, {end, y + row - 7.0}, "ridge");
        svg.rectangle({x.from, y + 7.0, end, y + row - 7.0}, "bar fill s0", steps.back().text);
        svg.text({end + 8.0, y + row / 2.0 + 4.0},
                 fmt::format("{} ({:.2f}x)", steps.back().text, steps.front().value / steps.back().value), "strong");
        name_row("all together", "strong");
    }
    svg.line({x.from, top}, {x.from, y + row}, "axis");
    return svg.finish();
}

}  // namespace roofline::render::chart
