#include "roofline/io/catalog.hpp"

#include <map>
#include <span>

#include <fmt/format.h>

#include "roofline/io/device_file.hpp"
#include "roofline/io/embedded.hpp"
#include "roofline/io/names.hpp"

namespace roofline::io {
namespace {

using Index = std::map<std::string, const EmbeddedFile*, std::less<>>;

Index index_of_names(std::span<const EmbeddedFile> files) {
    Index index;
    for (const EmbeddedFile& file : files) index.emplace(normalised(file.name), &file);
    return index;
}

/// Aliases are inside the files: all of them are read for it, so this is made when the first name is no file's.
Index index_of_aliases(std::span<const EmbeddedFile> files) {
    Index index;
    for (const EmbeddedFile& file : files) {
        const Json json = Json::parse(file.text, nullptr, false);
        const auto aliases = json.is_object() ? json.find("aliases") : json.end();
        if (aliases == json.end() || !aliases->is_array()) continue;
        for (const Json& alias : *aliases) {
            if (alias.is_string()) index.emplace(normalised(alias.get_ref<const std::string&>()), &file);
        }
    }
    return index;
}

const EmbeddedFile* at(const Index& index, const std::string& wanted) {
    const auto found = index.find(wanted);
    return found == index.end() ? nullptr : found->second;
}

const EmbeddedFile* find_device(std::string_view typed) {
    static const Index names = index_of_names(embedded_devices());
    const std::string wanted = normalised(typed);
    if (const EmbeddedFile* file = at(names, wanted)) return file;
    static const Index aliases = index_of_aliases(embedded_devices());
    return at(aliases, wanted);
}

const EmbeddedFile* find_model(std::string_view typed) {
    static const Index names = index_of_names(embedded_models());
    const std::string wanted = normalised(typed);
    if (const EmbeddedFile* file = at(names, wanted)) return file;
    static const Index aliases = index_of_aliases(embedded_models());
    return at(aliases, wanted);
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
    if (const EmbeddedFile* file = find_device(name))
        return read_device(file->text, fmt::format("{}.json", file->name));
    return fail(fmt::format("no device is called \"{}\"{} (`roofline devices` lists them)", shown(name),
                            suggestion(name, builtin_device_names())));
}

Result<ModelFile> builtin_model(std::string_view name, const ConfigEdit& edit) {
    if (const EmbeddedFile* file = find_model(name))
        return read_model_file(file->text, fmt::format("{}.json", file->name), edit);
    return fail(fmt::format("no model is called \"{}\"{} (`roofline models` lists them)", shown(name),
                            suggestion(name, builtin_model_names())));
}

}  // namespace roofline::io
