// JSON written straight into its text, indented by two, as io::dump writes the same document from a tree: for reports
// that are asked for a thousand times a second. Keys stand in the order they are added.
//
//   JsonText json;
//   json.object([&] {
//       json.add("name", "gpt2");
//       json.object("bytes", [&] { json.add("memory", 12.0); });
//       json.array("records", [&] { for (...) json.object([&] { ... }); });
//   });
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/io/fields.hpp"

namespace roofline::io {

class JsonText {
  public:
    template <std::invocable Body>
    void object(Body body) {
        separate();
        open('{');
        body();
        close('}');
    }
    template <std::invocable Body>
    void object(std::string_view key, Body body) {
        begin(key);
        open('{');
        body();
        close('}');
    }
    template <std::invocable Body>
    void array(std::string_view key, Body body) {
        begin(key);
        open('[');
        body();
        close(']');
    }

    template <class Value>
    void add(std::string_view key, const Value& value) {
        begin(key);
        put(value);
    }
    /// An entry of an array.
    template <class Value>
    void add(const Value& value) {
        separate();
        put(value);
    }

    /// All that was written, with a newline at the end.
    std::string finish() &&;

  private:
    void separate();
    void begin(std::string_view key);
    void open(char bracket);
    void close(char bracket);

    void put(double value);  // JSON has no infinity: what is infinite or unknown is null
    void put_whole(long long value);
    template <std::integral Value>
    void put(Value value) {
        if constexpr (std::same_as<Value, bool>)
            text_ += value ? "true" : "false";
        else
            put_whole(static_cast<long long>(value));
    }
    void put(std::nullptr_t) { text_ += "null"; }
    void put(std::string_view text);
    void put(const std::string& text) { put(std::string_view(text)); }
    void put(const char* text) { put(std::string_view(text)); }
    template <class Value>
    void put(const std::vector<Value>& values) {
        open('[');
        for (const Value& value : values) add(value);
        close(']');
    }
    void put(const OrderedJson& json);
    template <class Value>
    void put(const std::optional<Value>& value) {
        if (value)
            put(*value);
        else
            put(nullptr);
    }

    std::string text_;
    std::size_t indent_ = 0;
    bool first_ = true;  // nothing stands in the innermost bracket yet
};

}  // namespace roofline::io
