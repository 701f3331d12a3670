#include "roofline/io/catalog.hpp"

#include <span>

#include <fmt/format.h>

#include "roofline/io/device_file.hpp"
#include "roofline/io/embedded.hpp"
#include "roofline/io/names.hpp"

namespace roofline::io {
namespace {

/// The file with that name or alias. Names first: aliases are inside the files, and most people type a name.
const EmbeddedFile* find(std::span<const EmbeddedFile> files, std::string_view typed) {
    const std::string wanted = normalised(typed);
    for (const EmbeddedFile& file : files) {
        if (normalised(file.name) == wanted) return &file;
    }
    for (const EmbeddedFile& file : files) {
        const Json json = Json::parse(file.text, nullptr, false);
        const auto aliases = json.is_object() ? json.find("aliases") : json.end();
        if (aliases == json.end() || !aliases->is_array()) continue;
        for (const Json& alias : *aliases) {
            if (alias.is_string() && normalised(alias.get_ref<const std::string&>()) == wanted) return &file;
        }
    }
    return nullptr;
}

std::vector<std::string> names_of(std::span<const EmbeddedFile> files) {
    std::vector<std::string> names;
    names.reserve(files.size());
    for (const EmbeddedFile& file : files) names.emplace_back(file.name);
    return names;
}

std::string shown(std::string_view typed) {
    return printable(typed);
}

}  // namespace

std::vector<std::string> builtin_device_names() {
    return names_of(embedded_devices());
}

std::vector<std::string> builtin_model_names() {
    return names_of(embedded_models());
}

Result<Device> builtin_device(std::string_view name) {
    if (const EmbeddedFile* file = find(embedded_devices(), name))
        return read_device(file->text, fmt::format("{}.json", file->name));
    return fail(fmt::format("no device is called \"{}\"{} (`roofline devices` lists them)", shown(name),
                            suggestion(name, builtin_device_names())));
}

Result<ModelFile> builtin_model(std::string_view name, const ConfigEdit& edit) {
    if (const EmbeddedFile* file = find(embedded_models(), name))
        return read_model_file(file->text, fmt::format("{}.json", file->name), edit);
    return fail(fmt::format("no model is called \"{}\"{} (`roofline models` lists them)", shown(name),
                            suggestion(name, builtin_model_names())));
}

}  // namespace roofline::io
