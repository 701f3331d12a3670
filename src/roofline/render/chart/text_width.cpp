#include "roofline/render/chart/text_width.hpp"

#include <array>
#include <cstddef>

namespace roofline::render::chart {
namespace {

// Thousandths of the size, from the space to the tilde.
constexpr std::array<short, 95> widths = {
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333,  278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,  611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278,  556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500,  500, 334, 260, 334, 584};
constexpr double generous = 1.16;

/// Bytes of the character that begins here, as its first byte says.
std::size_t bytes_at(std::string_view text, std::size_t at) {
    const auto first = static_cast<unsigned char>(text[at]);
    const std::size_t wanted = first < 0x80U ? 1 : first < 0xe0U ? 2 : first < 0xf0U ? 3 : 4;
    return at + wanted <= text.size() ? wanted : text.size() - at;
}

double character_width(std::string_view text, std::size_t at, std::size_t bytes) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (first >= 0x20U && first < 0x7fU) return widths[first - 0x20U];
    return bytes >= 3 && first >= 0xe3U ? 1000.0 : 600.0;  // ideographs are square
}

}  // namespace

double text_width(std::string_view text, double size, bool bold) {
    double sum = 0.0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t bytes = bytes_at(text, at);
        sum += character_width(text, at, bytes);
        at += bytes;
    }
    return sum * size * generous * (bold ? 1.13 : 1.0) / 1000.0;
}

std::size_t length_of(std::string_view text) {
    std::size_t count = 0;
    for (std::size_t at = 0; at < text.size(); at += bytes_at(text, at)) ++count;
    return count;
}

std::string shortened(std::string_view text, double width, double size, bool bold) {
    if (text_width(text, size, bold) <= width) return std::string(text);
    const double room = width - text_width("\u2026", size, bold);
    std::size_t end = 0;
    while (end < text.size()) {
        const std::size_t next = end + bytes_at(text, end);
        if (text_width(text.substr(0, next), size, bold) > room) break;
        end = next;
    }
    while (end > 0 && text[end - 1] == ' ') --end;
    return std::string(text.substr(0, end)) + "\u2026";
}

}  // namespace roofline::render::chart
