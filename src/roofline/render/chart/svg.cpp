#include "roofline/render/chart/svg.hpp"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "roofline/render/chart/theme.hpp"

namespace roofline::render::chart {
namespace {

/// Bytes of the well-formed character that begins here; 0 where there is none.
std::size_t well_formed(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(0) < 0x80U) return 1;
    const std::size_t size = (byte(0) & 0xe0U) == 0xc0U   ? 2
                             : (byte(0) & 0xf0U) == 0xe0U ? 3
                             : (byte(0) & 0xf8U) == 0xf0U ? 4
                                                          : 0;
    if (size == 0 || text.size() < size) return 0;
    unsigned code = byte(0) & (0x7fU >> size);
    for (std::size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xc0U) != 0x80U) return 0;
        code = code << 6U | (byte(i) & 0x3fU);
    }
    const unsigned least = size == 2 ? 0x80U : size == 3 ? 0x800U : 0x10000U;
    const bool surrogate = code >= 0xd800U && code <= 0xdfffU;
    const bool no_character = code == 0xfffeU || code == 0xffffU;
    return code < least || code > 0x10ffffU || surrogate || no_character ? 0 : size;
}

/// FNV-1a: short, and the same everywhere.
std::uint32_t hash_of(std::string_view text) {
    std::uint32_t hash = 2166136261U;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    return hash;
}

std::string place_of(Point point) {
    return coordinate(point.x) + " " + coordinate(point.y);
}

std::string points_of(const std::vector<Point>& points) {
    std::string text;
    for (const Point& point : points)
        text += (text.empty() ? "" : " ") + coordinate(point.x) + "," + coordinate(point.y);
    return text;
}

std::string spelt(Attributes attributes) {
    std::string text;
    for (const auto& [key, value] : attributes) {
        if (!value.empty()) text += fmt::format(" {}=\"{}\"", key, escaped(value));
    }
    return text;
}

}  // namespace

std::string escaped(std::string_view text) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = well_formed(text.substr(at));
        if (size == 0) {
            result += "\uFFFD";
            ++at;
            continue;
        }
        const char c = text[at];
        if (c == '&')
            result += "&amp;";
        else if (c == '<')
            result += "&lt;";
        else if (c == '>')
            result += "&gt;";
        else if (c == '"')
            result += "&quot;";
        else if (c == '\'')
            result += "&#39;";
        else if (c == '\n')
            result += "&#10;";
        else if (static_cast<unsigned char>(c) < 0x20U || c == 0x7f)
            result += ' ';
        else
            result += text.substr(at, size);
        at += size;
    }
    return result;
}

std::string coordinate(double value) {
    std::string text = fmt::format("{:.2f}", value);
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text == "-0" ? "0" : text;
}

Svg::Svg(double width, double height, std::string_view title, std::string_view description)
    : width_(width),
      height_(height),
      identity_(fmt::format("c{:08x}", hash_of(std::string(title) + "|" + std::string(description)))) {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" "
        "role=\"img\" aria-labelledby=\"{2}-title {2}-description\">\n"
        "<title id=\"{2}-title\">{3}</title>\n<desc id=\"{2}-description\">{4}</desc>\n<style>\n{5}</style>\n",
        coordinate(width), coordinate(height), identity_, escaped(title), escaped(description), style_sheet());
    rectangle({0.0, 0.0, width, height}, "paper");
}

void Svg::open(std::string_view classes, Attributes attributes) {
    text_ += fmt::format("<g class=\"{}\"{}>\n", classes, spelt(attributes));
}

void Svg::open_at(Point place, std::string_view classes, Attributes attributes) {
    text_ +=
        fmt::format("<g class=\"{}\" transform=\"translate({})\"{}>\n", classes, place_of(place), spelt(attributes));
}

void Svg::close() {
    text_ += "</g>\n";
}

void Svg::line(Point a, Point b, std::string_view classes) {
    text_ += fmt::format("<path class=\"{}\" d=\"M{} L{}\"/>\n", classes, place_of(a), place_of(b));
}

void Svg::lines(const std::vector<Point>& points, std::string_view classes) {
    text_ += fmt::format("<polyline class=\"{}\" points=\"{}\"/>\n", classes, points_of(points));
}

void Svg::area(const std::vector<Point>& corners, std::string_view classes, std::string_view tooltip) {
    text_ += fmt::format("<polygon class=\"{}\" points=\"{}\"", classes, points_of(corners));
    text_ += tooltip.empty() ? "/>\n" : fmt::format("><title>{}</title></polygon>\n", escaped(tooltip));
}

void Svg::rectangle(const Box& box, std::string_view classes, std::string_view tooltip, double round) {
    text_ += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", classes,
                         coordinate(box.left), coordinate(box.top), coordinate(box.width()), coordinate(box.height()));
    if (round > 0.0) text_ += fmt::format(" rx=\"{}\"", coordinate(round));
    text_ += tooltip.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", escaped(tooltip));
}

void Svg::circle(Point centre, double radius, std::string_view classes) {
    text_ += fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>\n", classes, coordinate(centre.x),
                         coordinate(centre.y), coordinate(radius));
}

void Svg::dots(const std::vector<Point>& centres, std::string_view classes) {
    if (centres.empty()) return;
    text_ += fmt::format("<path class=\"{}\" d=\"", classes);
    for (const Point& centre : centres) text_ += "M" + place_of(centre) + "h0";
    text_ += "\"/>\n";
}

void Svg::text(Point place, std::string_view words, std::string_view classes, Anchor anchor, Point along) {
    const char* side = anchor == Anchor::middle ? " text-anchor=\"middle\""
                       : anchor == Anchor::end  ? " text-anchor=\"end\""
                                                : "";
    if (along.y == 0.0) {
        text_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\"{}>{}</text>\n", classes, coordinate(place.x),
                             coordinate(place.y), side, escaped(words));
        return;
    }
    // A matrix needs no angle, and so no trigonometry; square roots are rounded alike everywhere.
    const double length = std::sqrt(along.x * along.x + along.y * along.y);
    const std::string c = fmt::format("{:.4f}", along.x / length);
    const std::string s = fmt::format("{:.4f}", along.y / length);
    const std::string opposite = fmt::format("{:.4f}", -along.y / length);
    text_ += fmt::format("<text class=\"{}\" transform=\"matrix({} {} {} {} {})\"{}>{}</text>\n", classes, c, s,
                         opposite, c, place_of(place), side, escaped(words));
}

void Svg::tooltip(std::string_view words) {
    text_ += fmt::format("<title>{}</title>\n", escaped(words));
}

void Svg::open_clipped(const Box& box, std::string_view classes) {
    const std::string name = fmt::format("{}-clip{}", identity_, ++clips_);
    text_ += fmt::format("<clipPath id=\"{}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n", name,
                         coordinate(box.left), coordinate(box.top), coordinate(box.width()), coordinate(box.height()));
    text_ += fmt::format("<g class=\"{}\" clip-path=\"url(#{})\">\n", classes, name);
}

std::string Svg::finish() {
    return text_ + "</svg>\n";
}

}  // namespace roofline::render::chart
