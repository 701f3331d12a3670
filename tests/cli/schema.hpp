// A small JSON Schema validator: the keywords that schema/*.json use and no others. A schema with any other keyword is
// a violation itself, so that nothing is taken for checked that is not.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "places.hpp"

namespace roofline::cli::testing {

using Json = nlohmann::json;

inline std::string text_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

inline Json parsed(const std::string& text) {
    return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

class Schema {
  public:
    // `others` gives the schema that a $ref to a file name means.
    explicit Schema(Json root, std::function<Json(const std::string&)> others = nullptr)
        : root_(std::move(root)), others_(std::move(others)) {}

    // One of schema/*.json; a $ref to a file name means its neighbour.
    static Schema published(const std::string& name) {
        const auto load = [](const std::string& file) {
            return parsed(text_of_file(std::string(ROOFLINE_SOURCE_DIR) + "/schema/" + file));
        };
        return Schema(load(name), load);
    }

    // What is wrong with a document, each line beginning with the place; empty when it is valid.
    std::vector<std::string> violations(const Json& document) const {
        if (!root_.is_object()) return {"$: the schema is not an object"};
        if (document.is_discarded()) return {"$: is not JSON"};
        std::vector<std::string> found;
        check(document, root_, root_, "$", found);
        return found;
    }

  private:
    using Found = std::vector<std::string>;

    static bool is_type(const Json& value, const std::string& type) {
        if (type == "object") return value.is_object();
        if (type == "array") return value.is_array();
        if (type == "string") return value.is_string();
        if (type == "boolean") return value.is_boolean();
        if (type == "null") return value.is_null();
        if (type == "number") return value.is_number();
        // As the standard says: 3.0 is an integer.
        return type == "integer" && value.is_number() && value.get<double>() == std::floor(value.get<double>());
    }

    static bool is_any_type(const Json& value, const Json& types) {
        if (types.is_string()) return is_type(value, types.get<std::string>());
        return std::any_of(types.begin(), types.end(),
                           [&](const Json& type) { return is_type(value, type.get<std::string>()); });
    }

    static void check_keywords(const Json& schema, const std::string& path, Found& found) {
        static constexpr std::array<std::string_view, 15> known = {
            "$schema", "$id",     "$defs", "$ref",     "title",      "description",
            "type",    "const",   "enum",  "required", "properties", "additionalProperties",
            "items",   "minimum", "anyOf"};
        for (const auto& [keyword, ignored] : schema.items()) {
            if (std::find(known.begin(), known.end(), keyword) == known.end())
                found.push_back(path + ": the schema uses \"" + keyword + "\", which is not checked here");
        }
    }

    void follow(const std::string& reference, const Json& value, const Json& file, const std::string& path,
                Found& found) const {
        constexpr std::string_view local = "#/$defs/";
        if (reference.starts_with(local)) {
            const std::string name = reference.substr(local.size());
            if (file.contains("$defs") && file["$defs"].contains(name))
                return check(value, file["$defs"][name], file, path, found);
        } else if (others_) {
            if (!loaded_.contains(reference)) loaded_[reference] = others_(reference);
            const Json& other = loaded_[reference];
            if (other.is_object()) return check(value, other, other, path, found);
        }
        found.push_back(path + ": the schema refers to " + reference + ", which is not there");
    }

    void check_object(const Json& value, const Json& schema, const Json& file, const std::string& path,
                      Found& found) const {
        if (schema.contains("required")) {
            for (const Json& key : schema["required"]) {
                if (!value.contains(key.get<std::string>()))
                    found.push_back(path + ": " + key.get<std::string>() + " is missing");
            }
        }
        for (const auto& [key, item] : value.items()) {
            const std::string place = path + "." + key;
            if (schema.contains("properties") && schema["properties"].contains(key)) {
                check(item, schema["properties"][key], file, place, found);
            } else if (schema.contains("additionalProperties")) {
                check(item, schema["additionalProperties"], file, place, found);
            }
        }
    }

    void check(const Json& value, const Json& schema, const Json& file, const std::string& path, Found& found) const {
        if (schema.is_boolean()) {
            if (!schema.get<bool>()) found.push_back(path + ": is not expected here");
            return;
        }
        check_keywords(schema, path, found);
        if (schema.contains("$ref")) follow(schema["$ref"].get<std::string>(), value, file, path, found);
        if (schema.contains("type") && !is_any_type(value, schema["type"]))
            found.push_back(path + ": is " + value.dump() + ", expected type " + schema["type"].dump());
        if (schema.contains("const") && value != schema["const"])
            found.push_back(path + ": is " + value.dump() + ", expected " + schema["const"].dump());
        if (schema.contains("enum")) {
            const Json& choices = schema["enum"];
            if (std::find(choices.begin(), choices.end(), value) == choices.end())
                found.push_back(path + ": is " + value.dump() + ", expected one of " + choices.dump());
        }
        if (schema.contains("minimum") && value.is_number() &&
            !(value.get<double>() >= schema["minimum"].get<double>()))
            found.push_back(path + ": is " + value.dump() + ", expected at least " + schema["minimum"].dump());
        if (schema.contains("anyOf")) {
            const Json& choices = schema["anyOf"];
            const bool any = std::any_of(choices.begin(), choices.end(), [&](const Json& choice) {
                Found ignored;
                check(value, choice, file, path, ignored);
                return ignored.empty();
            });
            if (!any) found.push_back(path + ": is none of the allowed alternatives");
        }
        if (value.is_object()) check_object(value, schema, file, path, found);
        if (value.is_array() && schema.contains("items")) {
            for (std::size_t i = 0; i < value.size(); ++i)
                check(value[i], schema["items"], file, path + "[" + std::to_string(i) + "]", found);
        }
    }

    Json root_;
    std::function<Json(const std::string&)> others_;
    mutable std::map<std::string, Json> loaded_;
};

// For messages of failed tests: the first few, one a line.
inline std::string joined(const std::vector<std::string>& lines, std::size_t most = 10) {
    std::string text;
    for (std::size_t i = 0; i < lines.size() && i < most; ++i) text += lines[i] + "\n";
    if (lines.size() > most) text += "... and " + std::to_string(lines.size() - most) + " more\n";
    return text;
}

}  // namespace roofline::cli::testing
