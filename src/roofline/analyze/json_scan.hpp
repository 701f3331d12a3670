// JSON as it comes: values read one after another from bytes that may end in the middle of one. Nothing is copied and
// no tree is built; a caller asks for members and elements, takes the few values it wants as text and skips the rest.
// Traces are gigabytes of small objects of which a dozen members matter, and this is what makes that affordable.
//
// The first thing that goes wrong is remembered; from then on everything answers with nothing, so a reader is a
// straight list with one check at the end. `ran_out` says that the bytes ended, which is not an error yet: read more,
// try again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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
