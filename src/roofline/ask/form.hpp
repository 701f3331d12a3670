// The options of a question, stated once: names, what they fill, help. The command line makes flags of a form, the page
// and the server fill it from JSON, a sweep makes axes of it.
#pragma once

#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/io/fields.hpp"

namespace roofline::ask {

struct Option {
    std::string names;  // "-b,--batch"; without dashes: also a position on the command line
    std::string help;
    std::string group;
    std::string type;                  // N, X, SHARE are numbers
    std::vector<std::string> choices;  // empty: anything, whoever reads it checks
    bool default_shown = false;
    bool given = false;
    std::string* text = nullptr;  // one of these three
    bool* flag = nullptr;
    std::vector<std::string>* texts = nullptr;

    Option& in(std::string_view name) {
        group = name;
        return *this;
    }
    Option& of_type(std::string_view name) {
        type = name;
        return *this;
    }
    Option& one_of(std::initializer_list<const char*> values) {
        choices.assign(values.begin(), values.end());
        return *this;
    }
    Option& shows_default() {
        default_shown = true;
        return *this;
    }

    /// The first long name, without dashes: "batch". What JSON and columns call it.
    std::string key() const;
    /// Whether `name` is one of its long names, without dashes.
    bool is_called(std::string_view name) const;
    bool takes_numbers() const { return type == "N" || type == "X" || type == "R" || type == "SHARE"; }
    /// Puts a value where it belongs, as if it had been typed.
    Result<void> take(const std::string& value);
};

/// Options stay where they are once added: others may point to them.
class Form {
  public:
    Option& text(std::string_view names, std::string& target, std::string_view help);
    Option& flag(std::string_view names, bool& target, std::string_view help);
    Option& texts(std::string_view names, std::vector<std::string>& target, std::string_view help);

    std::deque<Option>& options() { return options_; }
    const std::deque<Option>& options() const { return options_; }
    Option* find(std::string_view name);

    /// From an object { "batch": "8", "tp": 2, "simulate": true, "set": ["memory.bandwidth=2x"] }. Keys are long names.
    Result<void> fill(const io::Json& values);

  private:
    Option& add(std::string_view names, std::string_view help);

    std::deque<Option> options_;
};

}  // namespace roofline::ask
