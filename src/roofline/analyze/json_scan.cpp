#include "roofline/analyze/json_scan.hpp"

#include <cstdlib>
#include <cstring>

#include "roofline/analyze/json_block.hpp"

namespace roofline::analyze {
namespace {

/// Brackets and braces that are open, each by what closes it.
class Open {
  public:
    /// What should have been there instead; null where all is well.
    const char* take(char c) {
        if (c == '{' || c == '[') {
            if (depth_ == JsonScan::deepest) return "no more than 256 levels of nesting";
            closing_[depth_++] = c == '{' ? '}' : ']';
            return nullptr;
        }
        if (closing_[depth_ - 1] != c) return closing_[depth_ - 1] == ']' ? "a closing bracket" : "a closing brace";
        --depth_;
        return nullptr;
    }
    bool none() const { return depth_ == 0; }

  private:
    std::array<char, JsonScan::deepest> closing_;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled as it grows
    std::size_t depth_ = 0;
};

}  // namespace

/// In blocks as long as there are whole ones and nothing is escaped, then byte by byte.
std::string_view JsonScan::nested() {
    const char* const begin = at_;
    const char* at = at_;
    Open open;
    std::uint64_t inside = 0;                    // of a string: all ones
    const auto taken = [&](const char* place) {  // whether the value ends here, for better or worse
        if (const char* wrong = open.take(*place)) {
            at_ = place;
            fail_here(wrong);
            return true;
        }
        if (!open.none()) return false;
        at_ = place + 1;
        return true;
    };
    const auto result = [&] {
        return good() ? std::string_view(begin, static_cast<std::size_t>(at_ - begin)) : std::string_view();
    };
    while (end_ - at >= scanning::block_bytes) {
        const scanning::BlockMasks masks = scanning::masks_of(at);
        if (masks.slashes != 0) break;
        const std::uint64_t strings = scanning::between(masks.quotes) ^ inside;
        for (std::uint64_t left = masks.brackets & ~strings; left != 0; left &= left - 1) {
            if (taken(at + std::countr_zero(left))) return result();
        }
        inside = std::uint64_t{0} - (strings >> 63U);
        at += scanning::block_bytes;
    }
    if (inside != 0) {
        at = scanning::closing_quote(at, end_);
        if (at < end_) ++at;
    }
    for (; at < end_; ++at) {
        if (!scanning::in(scanning::is_structure, *at)) continue;
        if (*at == '"') {
            at = scanning::closing_quote(at + 1, end_);
            if (at >= end_) break;
        } else if (taken(at)) {
            return result();
        }
    }
    at_ = end_;
    run_out();
    return {};
}

std::string_view unquoted(std::string_view value) {
    if (value.size() >= 2 && value.front() == '"') return value.substr(1, value.size() - 2);
    return value;
}

namespace {

/// Bytes of the UTF-8 character that begins here, or zero where none does.
std::size_t character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    const std::size_t size = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
    if (size == 0 || size > text.size()) return 0;
    for (std::size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xC0U) != 0x80U) return 0;
    }
    return size;
}

void append_code_point(std::string& text, unsigned code) {
    if (code < 0x80) {
        text += code < 0x20 || code == 0x7F ? '?' : static_cast<char>(code);
    } else if (code < 0x800) {
        text += static_cast<char>(0xC0U | (code >> 6U));
        text += static_cast<char>(0x80U | (code & 0x3FU));
    } else if (code < 0xD800 || code > 0xDFFF) {
        text += static_cast<char>(0xE0U | (code >> 12U));
        text += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
        text += static_cast<char>(0x80U | (code & 0x3FU));
    } else {
        text += '?';
    }
}

}  // namespace

std::string readable(std::string_view raw) {
    std::string text;
    text.reserve(raw.size());
    for (std::size_t i = 0; i < raw.size();) {
        const char c = raw[i];
        if (c == '\\' && i + 1 < raw.size()) {
            const char escaped = raw[i + 1];
            i += 2;
            if (escaped == 'u' && i + 4 <= raw.size()) {
                const std::string digits(raw.substr(i, 4));
                append_code_point(text, static_cast<unsigned>(std::strtoul(digits.c_str(), nullptr, 16)));
                i += 4;
            } else if (escaped == 'n' || escaped == 't' || escaped == 'r') {
                text += ' ';
            } else if (escaped == '"' || escaped == '\\' || escaped == '/') {
                text += escaped;
            } else {
                text += '?';
            }
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        const std::size_t size = byte < 0x20 || byte == 0x7F ? 0 : character(raw.substr(i));
        if (size == 0) {
            text += '?';
            ++i;
        } else {
            text += raw.substr(i, size);
            i += size;
        }
    }
    return text;
}

std::int64_t whole(std::string_view value, std::int64_t otherwise) {
    value = unquoted(value);
    bool negative = false;
    if (!value.empty() && value.front() == '-') {
        negative = true;
        value.remove_prefix(1);
    }
    if (value.empty() || value.size() > 18) return otherwise;
    std::int64_t sum = 0;
    for (const char c : value) {
        if (c < '0' || c > '9') return otherwise;
        sum = sum * 10 + (c - '0');
    }
    return negative ? -sum : sum;
}

double number(std::string_view value, double otherwise) {
    value = unquoted(value);
    if (value.empty() || value.size() > 40) return otherwise;
    std::array<char, 41> text{};
    std::memcpy(text.data(), value.data(), value.size());
    char* end = nullptr;
    const double result = std::strtod(text.data(), &end);
    if (end != text.data() + value.size() || !(result > -1e300 && result < 1e300)) return otherwise;
    return result;
}

bool nanoseconds(std::string_view value, std::int64_t& result) {
    value = unquoted(value);
    bool negative = false;
    std::size_t i = 0;
    if (i < value.size() && value[i] == '-') {
        negative = true;
        ++i;
    }
    std::int64_t sum = 0;
    std::size_t digits = 0;
    for (; i < value.size() && value[i] >= '0' && value[i] <= '9'; ++i) {
        if (++digits > 15) return false;  // before it can overflow
        sum = sum * 10 + (value[i] - '0') * 1000;
    }
    if (digits == 0) return false;
    if (i < value.size() && value[i] == '.') {
        std::int64_t unit = 100;
        std::int64_t rounding = 0;
        for (++i; i < value.size() && value[i] >= '0' && value[i] <= '9'; ++i) {
            if (unit > 0) {
                sum += (value[i] - '0') * unit;
                unit /= 10;
                if (unit == 0) rounding = 1;
            } else if (rounding == 1) {
                sum += value[i] >= '5' ? 1 : 0;
                rounding = 0;
            }
        }
    }
    if (i != value.size()) {  // an exponent
        const double plain = number(value, -1e299) * 1000.0;
        if (plain < -9e18 || plain > 9e18) return false;
        result = static_cast<std::int64_t>(plain + (plain < 0 ? -0.5 : 0.5));
        return true;
    }
    result = negative ? -sum : sum;
    return true;
}

}  // namespace roofline::analyze
