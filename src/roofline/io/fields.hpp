// Reading JSON from people's files without trusting it. A Fields looks at one object; every access is checked, and the
// first thing that is wrong is remembered as a Problem with file, place, what was found and what was expected. Reading
// goes on with harmless values, so a reader is a straight list of fields with one check at the end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "roofline/core/problem.hpp"

namespace roofline::io {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // keys in the order they are written, for people who read reports

/// JSON as Python writes it: the literals Infinity and NaN, which the standard forbids, are accepted where they stand
/// in the way of everything else, and are never taken for a number that is used.
Result<Json> parse_json(std::string_view text, std::string_view file);

/// "a string", "the number -3", "nothing": for messages.
std::string describe(const Json& value);

class Fields {
  public:
    Fields(const Json& object, std::string file, std::string path, std::optional<Problem>& first_problem);

    bool has(std::string_view key) const;  // there and not null
    const Json* find(std::string_view key) const;
    const Json& json() const { return object_; }
    const std::string& file() const { return file_; }

    /// Sizes: whole, positive, and small enough that no product of a few of them overflows.
    double size(std::string_view key);
    double size_or(std::string_view key, double fallback);
    /// Like size, but may be zero.
    double count_or(std::string_view key, double fallback);
    /// The first key that is there; a problem naming the first if none is.
    double size_of_any(std::initializer_list<std::string_view> keys);
    double number_or(std::string_view key, double fallback);
    double positive(std::string_view key);
    bool flag(std::string_view key, bool fallback);
    std::string text(std::string_view key);
    std::string text_or(std::string_view key, std::string_view fallback);
    std::vector<std::string> texts(std::string_view key);
    std::vector<double> numbers(std::string_view key);

    Fields child(std::string_view key);
    std::vector<Fields> children(std::string_view key);  // of an array of objects
    std::vector<std::string> keys() const;

    /// Remembers a problem at a key, unless there is one already.
    void complain(std::string_view key, std::string_view what);
    bool failed() const { return first_problem_.has_value(); }

  private:
    double checked_size(std::string_view key, const Json& value, double least);
    std::string place(std::string_view key) const;

    const Json& object_;
    std::string file_;
    std::string path_;
    std::optional<Problem>& first_problem_;
};

inline constexpr double largest_size = 1e9;

}  // namespace roofline::io
