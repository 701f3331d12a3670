#include "roofline/io/json_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace roofline::io {
namespace {

/// Most texts are names: nothing in them needs an escape, and they are copied as they are.
bool is_plain(std::string_view text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; });
}

}  // namespace

void JsonText::separate() {
    if (text_.capacity() == 0) text_.reserve(std::size_t{1} << 16U);
    if (indent_ == 0) return;
    text_ += first_ ? "\n" : ",\n";
    text_.append(2 * indent_, ' ');
    first_ = false;
}

void JsonText::begin(std::string_view key) {
    separate();
    put(key);
    text_ += ": ";
}

void JsonText::open(char bracket) {
    text_ += bracket;
    ++indent_;
    first_ = true;
}

void JsonText::close(char bracket) {
    --indent_;
    if (!first_) {
        text_ += '\n';
        text_.append(2 * indent_, ' ');
    }
    text_ += bracket;
    first_ = false;
}

void JsonText::put(double value) {
    if (!std::isfinite(value)) return put(nullptr);
    // The digits of the tree's own writer, so that both give the same bytes.
    std::array<char, 64> digits;
    const char* end = nlohmann::detail::to_chars(digits.data(), digits.data() + digits.size(), value);
    text_.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

void JsonText::put_whole(long long value) {
    std::array<char, 24> digits;
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    text_.append(digits.data(), static_cast<std::size_t>(written.ptr - digits.data()));
}

void JsonText::put(std::string_view text) {
    if (is_plain(text)) {
        text_ += '"';
        text_ += text;
        text_ += '"';
    } else {
        text_ += OrderedJson(text).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
    }
}

void JsonText::put(const OrderedJson& json) {
    if (json.is_object()) {
        open('{');
        for (const auto& [key, value] : json.get_ref<const OrderedJson::object_t&>()) add(key, value);
        close('}');
    } else if (json.is_array()) {
        open('[');
        for (const OrderedJson& value : json) add(value);
        close(']');
    } else {
        text_ += json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
    }
}

std::string JsonText::finish() && {
    text_ += '\n';
    return std::move(text_);
}

}  // namespace roofline::io
