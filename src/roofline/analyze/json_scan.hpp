// JSON as it comes: values read one after another from bytes that may end in the middle of one. Nothing is copied and
// no tree is built; a caller asks for members and elements, takes the few values it wants as text and skips the rest.
// Traces are gigabytes of small objects of which a dozen members matter, and this is what makes that affordable.
//
// The first thing that goes wrong is remembered; from then on everything answers with nothing, so a reader is a
// straight list with one check at the end. `ran_out` says that the bytes ended, which is not an error yet: read more,
// try again.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace roofline::analyze {

class JsonScan {
  public:
    JsonScan(const char* begin, const char* end) : begin_(begin), at_(begin), end_(end) {}
    explicit JsonScan(std::string_view text) : JsonScan(text.data(), text.data() + text.size()) {}

    bool good() const { return state_ == State::good; }
    bool ran_out() const { return state_ == State::ran_out; }
    bool failed() const { return state_ == State::failed; }
    const char* expected() const { return expected_; }  // of a failure: what should have been there
    std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }
    const char* at() const { return at_; }

    /// The next byte that is not white space, or zero where there is none.
    char next();
    /// Takes one byte if it is next.
    bool take(char wanted);
    /// Takes it or fails.
    bool require(char wanted, const char* what);

    /// For `{`: opens an object; then `member` gives its keys one by one until it is closed. Likewise for arrays.
    bool open_object() { return require('{', "an object"); }
    bool open_array() { return require('[', "an array"); }
    /// The next key, its colon taken; false at the closing brace (taken too) or when something is wrong.
    bool member(std::string_view& key, bool& first);
    bool element(bool& first);

    /// What stands between the quotes, escapes as they are.
    std::string_view string();
    /// Any value, whole, as it is written.
    std::string_view value();

    static constexpr std::size_t deepest = 256;

  private:
    enum class State : std::uint8_t { good, ran_out, failed };
    void run_out() {
        if (state_ == State::good) state_ = State::ran_out;
    }
    void fail_here(const char* expected) {
        if (state_ != State::good) return;
        state_ = State::failed;
        expected_ = expected;
    }
    std::string_view nested();
    std::string_view scalar();

    const char* begin_;
    const char* at_;
    const char* end_;
    const char* expected_ = "";
    State state_ = State::good;
};

/// Inline, all of it, whatever the compiler thinks of the size: this is where the time of reading a trace goes.
#if defined(__GNUC__)
#define ROOFLINE_INLINE inline __attribute__((always_inline))
#else
#define ROOFLINE_INLINE inline
#endif
namespace scanning {

constexpr std::array<bool, 256> marks(std::string_view characters) {
    std::array<bool, 256> table{};
    for (const char c : characters) table[static_cast<unsigned char>(c)] = true;
    return table;
}
inline constexpr auto is_space = marks(" \t\n\r");
inline constexpr auto is_scalar = marks("+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
inline constexpr auto is_structure = marks("\"[]{}");

inline bool in(const std::array<bool, 256>& table, char c) {
    return table[static_cast<unsigned char>(c)];
}

/// Bytes of a word that equal a character, as the top bits of those bytes. Exact up to and including the lowest that
/// does, which is all that is asked.
constexpr std::uint64_t equal_bytes(std::uint64_t word, char c) {
    constexpr std::uint64_t ones = 0x0101010101010101ULL;
    constexpr std::uint64_t tops = 0x8080808080808080ULL;
    const std::uint64_t difference = word ^ (ones * static_cast<unsigned char>(c));
    return (difference - ones) & ~difference & tops;
}

/// The closing quote of a string, or the end. Eight bytes at a time: most strings are short, so wider steps gain
/// little.
inline const char* closing_quote(const char* at, const char* end) {
    static_assert(std::endian::native == std::endian::little, "the first byte is taken to be the lowest");
    while (true) {
        bool met = false;
        while (end - at >= 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, at, 8);
            const std::uint64_t hits = equal_bytes(word, '"') | equal_bytes(word, '\\');
            if (hits != 0) {
                at += std::countr_zero(hits) / 8;
                met = true;
                break;
            }
            at += 8;
        }
        while (!met && at < end && *at != '"' && *at != '\\') ++at;
        if (at >= end || *at == '"') return at;
        at += 2;  // an escape: whatever follows it is not the end
        if (at >= end) return end;
    }
}

}  // namespace scanning

ROOFLINE_INLINE char JsonScan::next() {
    if (state_ != State::good) return '\0';
    const char* at = at_;
    while (at < end_ && scanning::in(scanning::is_space, *at)) ++at;
    at_ = at;
    if (at < end_) return *at;
    run_out();
    return '\0';
}

ROOFLINE_INLINE bool JsonScan::take(char wanted) {
    if (next() != wanted || !good()) return false;
    ++at_;
    return true;
}

ROOFLINE_INLINE bool JsonScan::require(char wanted, const char* what) {
    if (take(wanted)) return true;
    fail_here(what);
    return false;
}

ROOFLINE_INLINE bool JsonScan::member(std::string_view& key, bool& first) {
    if (take('}')) return false;
    if (!first && !require(',', "a comma or a closing brace")) return false;
    first = false;
    if (next() != '"') {
        fail_here("a key in quotes");
        return false;
    }
    key = string();
    return good() && require(':', "a colon");
}

inline bool JsonScan::element(bool& first) {
    if (take(']')) return false;
    if (!first && !require(',', "a comma or a closing bracket")) return false;
    first = false;
    next();
    return good();
}

ROOFLINE_INLINE std::string_view JsonScan::string() {
    if (!require('"', "a string")) return {};
    const char* const begin = at_;
    const char* const close = scanning::closing_quote(at_, end_);
    if (close >= end_) {
        at_ = end_;
        run_out();
        return {};
    }
    at_ = close + 1;
    return {begin, static_cast<std::size_t>(close - begin)};
}

ROOFLINE_INLINE std::string_view JsonScan::value() {
    const char c = next();
    if (!good()) return {};
    if (c == '"') {
        const char* const begin = at_;
        string();
        return good() ? std::string_view(begin, static_cast<std::size_t>(at_ - begin)) : std::string_view();
    }
    if (c == '{' || c == '[') return nested();
    return scalar();
}

ROOFLINE_INLINE std::string_view JsonScan::scalar() {
    const char* const begin = at_;
    const char* at = begin;
    while (at < end_ && scanning::in(scanning::is_scalar, *at)) ++at;
    at_ = at;
    if (at == end_) {  // the rest of a number may still come
        run_out();
        return {};
    }
    if (at_ == begin) {
        fail_here("a value");
        return {};
    }
    return {begin, static_cast<std::size_t>(at_ - begin)};
}

#undef ROOFLINE_INLINE

/// A value as text: what stands between the quotes of a string, any other value as it is written.
std::string_view unquoted(std::string_view value);
/// With escapes resolved, and control characters and bytes that are not UTF-8 made visible as '?': names of files and
/// kernels end up on terminals.
std::string readable(std::string_view raw);
/// A whole number, or `otherwise`.
std::int64_t whole(std::string_view value, std::int64_t otherwise = 0);
double number(std::string_view value, double otherwise = 0.0);
/// A number of microseconds as nanoseconds, exactly: a double cannot hold the nanoseconds of today's clock.
bool nanoseconds(std::string_view value, std::int64_t& result);

}  // namespace roofline::analyze
