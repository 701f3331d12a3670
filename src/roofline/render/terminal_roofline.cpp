#include "roofline/render/terminal_roofline.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "roofline/core/roof.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::render {
namespace {

constexpr std::size_t columns = 64;  // of the drawing: four for each doubling of the intensity
constexpr std::size_t most_rows = 18;
constexpr double first_intensity = 1.0 / 64.0;
constexpr std::array<double, 4> quarters = {1.0, 1.189207115002721, 1.4142135623730951,
                                            1.6817928305074292};  // of an octave
constexpr double row_step = 2.0;

struct Roof {
    std::string label;
    double rate = 0.0;
};

/// Rows above `bottom`, by counting: the last digit of a logarithm differs between C libraries.
long row_of(double rate, double bottom) {
    long row = 0;
    double edge = bottom * 1.4142135623730951;  // half a row up: to the nearest
    while (rate >= edge && row < 200) {
        edge *= row_step;
        ++row;
    }
    return rate < bottom / 1.4142135623730951 ? -1 : row;
}

/// Number types whose roofs fall on the same line share it.
std::vector<Roof> roofs_of(const Device& device, const Roofs& roofs) {
    std::vector<Roof> result;
    for (const Engine engine : {Engine::matrix, Engine::vector}) {
        for (const DType type : all_dtypes) {
            const double cost = roofs.flop_cost(engine, type);
            if (!device.rate(engine, type) || cost <= 0.0) continue;
            result.push_back({fmt::format("{} {}", name(engine), name(type)), 1.0 / cost});
        }
    }
    std::stable_sort(result.begin(), result.end(), [](const Roof& a, const Roof& b) { return a.rate > b.rate; });
    return result;
}

}  // namespace

std::string terminal_roofline(const Device& device) {
    const Roofs roofs = attainable_roofs(device);
    const double memory_cost = roofs.seconds_per_byte[index(Level::memory)];
    const std::vector<Roof> flat = roofs_of(device, roofs);
    if (memory_cost <= 0.0 || flat.empty()) return "";
    const double memory = 1.0 / memory_cost;
    const double cache_cost = roofs.seconds_per_byte[index(Level::cache)];
    const double highest = flat.front().rate;

    double bottom = highest;
    for (std::size_t row = 1; row < most_rows; ++row) {
        if (bottom <= memory * first_intensity) break;
        bottom /= row_step;
    }
    const auto rows = static_cast<std::size_t>(row_of(highest, bottom)) + 1;
    std::vector<std::string> canvas(rows, std::string(columns, ' '));
    const auto put = [&](std::size_t column, double rate, char mark) {
        const long row = row_of(rate, bottom);
        if (row >= 0 && static_cast<std::size_t>(row) < rows && canvas[static_cast<std::size_t>(row)][column] == ' ')
            canvas[static_cast<std::size_t>(row)][column] = mark;
    };
    double octave = first_intensity;  // a power of two, so that a ridge at one is met exactly
    for (std::size_t column = 0; column < columns; ++column) {
        if (column > 0 && column % quarters.size() == 0) octave *= 2.0;
        const double intensity = octave * quarters[column % quarters.size()];
        if (memory * intensity < highest) put(column, memory * intensity, '/');
        if (cache_cost > 0.0 && intensity / cache_cost < highest) put(column, intensity / cache_cost, ':');
        for (const Roof& roof : flat) {
            if (memory * intensity >= roof.rate) put(column, roof.rate, '-');
        }
    }

    std::string text = fmt::format("FLOP/s over FLOP/byte; / memory {}", with_unit(memory, "B/s"));
    if (cache_cost > 0.0) text += fmt::format(", : cache {}", with_unit(1.0 / cache_cost, "B/s"));
    text += "\n";
    for (std::size_t row = rows; row-- > 0;) {
        std::string line = canvas[row];
        // The names of the roofs on this row stand where the line has room: at its left end.
        std::string label;
        for (const Roof& roof : flat) {
            if (row_of(roof.rate, bottom) != static_cast<long>(row)) continue;
            const std::string word = label.empty() ? roof.label : ", " + roof.label;
            if (label.size() + word.size() <= 44) label += word;
        }
        if (!label.empty()) {
            const std::size_t start = std::min(line.find_first_not_of(' '), columns);
            if (start > label.size() + 1) {
                line.replace(start - label.size() - 1, label.size(), label);
            } else {
                const std::size_t at = columns - label.size();
                line.replace(at, label.size(), label);
            }
        }
        double rate = bottom;
        for (std::size_t i = 0; i < row; ++i) rate *= row_step;
        while (!line.empty() && line.back() == ' ') line.pop_back();
        text += fmt::format("{:>13} |{}\n", with_unit(rate, "FLOP/s"), line);
    }
    text += std::string(14, ' ') + '+' + std::string(columns, '-') + "\n";
    std::string axis(15 + columns, ' ');
    double mark = first_intensity;
    for (std::size_t column = 0; column < columns; column += 8, mark *= 4.0) {
        const std::string number = mark < 1.0 ? fmt::format("1/{:.0f}", 1.0 / mark) : fmt::format("{:.0f}", mark);
        axis.replace(15 + column, number.size(), number);
    }
    while (!axis.empty() && axis.back() == ' ') axis.pop_back();
    return text + axis + "\n";
}

}  // namespace roofline::render
