#include "roofline/cli/load.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "roofline/cli/files.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/device_file.hpp"
#include "roofline/io/gguf.hpp"
#include "roofline/io/gguf_config.hpp"
#include "roofline/io/safetensors.hpp"

namespace roofline::cli {
namespace {

using io::Json;
using io::ModelFile;

/// The whole file is mapped, so "need more" cannot come: a reader that wants bytes beyond the end says so as a problem.
template <class T>
Result<T> whole_file(io::HeaderResult<T> result, const std::string& path) {
    if (result) return std::move(*result);
    if (const auto* problem = std::get_if<Problem>(&result.error())) return std::unexpected(*problem);
    return fail(fmt::format("{}: truncated: its header goes on beyond the end of the file", path));
}

Result<ModelFile> load_gguf(const std::string& path, const io::ConfigEdit& edit) {
    std::vector<io::Gguf> parts;
    for (const std::string& name : io::split_siblings(file_name(path))) {
        const std::string part = (std::filesystem::path(path).parent_path() / name).string();
        const auto file = MappedFile::open(part);
        if (!file) return std::unexpected(file.error());
        auto gguf = whole_file(io::read_gguf(file->bytes(), file->bytes().size(), part), part);
        if (!gguf) return std::unexpected(gguf.error());
        parts.push_back(std::move(*gguf));
    }
    const auto gguf = io::merge_splits(std::move(parts), path);
    if (!gguf) return std::unexpected(gguf.error());
    std::vector<std::string> notes;
    auto config = io::config_from_gguf(*gguf, path, notes);
    if (!config) return std::unexpected(config.error());
    const std::string name = std::string(gguf->string_at("general.name").value_or(file_name(path)));
    auto model = io::read_config_file(std::move(*config), path, io::printable(name), edit);
    if (!model) return model;
    model->notes.insert(model->notes.end(), notes.begin(), notes.end());
    if (!gguf->tensors.empty()) io::use_file_sizes(*model, gguf->tensors);
    return model;
}

Result<std::vector<io::StoredTensor>> read_shards(const std::string& folder, const std::vector<std::string>& names) {
    std::vector<io::StoredTensor> tensors;
    for (const std::string& name : names) {
        const std::string path = (std::filesystem::path(folder) / name).string();
        const auto file = MappedFile::open(path);
        if (!file) return std::unexpected(file.error());
        auto shard = whole_file(io::read_safetensors(file->bytes(), file->bytes().size(), path), path);
        if (!shard) return std::unexpected(shard.error());
        tensors.insert(tensors.end(), std::make_move_iterator(shard->begin()), std::make_move_iterator(shard->end()));
    }
    return tensors;
}

/// The safetensors files of a folder: those of the index if there is one, else all of them. Shards that an index names
/// but that are not there mean that only the config was downloaded: then sizes are computed, not read.
Result<std::vector<std::string>> shards_of(const std::string& folder) {
    std::vector<std::string> names;
    const std::string index = (std::filesystem::path(folder) / "model.safetensors.index.json").string();
    if (exists(index)) {
        const auto text = read_text(index);
        if (!text) return std::unexpected(text.error());
        auto listed = io::read_safetensors_index(*text, index);
        if (!listed) return listed;
        const bool all_there = std::all_of(listed->begin(), listed->end(), [&](const std::string& name) {
            return exists((std::filesystem::path(folder) / name).string());
        });
        return all_there ? *listed : names;
    }
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        if (entry.path().extension() == ".safetensors") names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

Result<Json> read_json(const std::string& path) {
    const auto text = read_text(path);
    if (!text) return std::unexpected(text.error());
    return io::parse_json(*text, path);
}

/// A config with what stands beside it: hf_quant_config.json, and the sizes in the safetensors headers.
Result<ModelFile> load_config(const std::string& path, Json config, const std::string& name,
                              const io::ConfigEdit& edit) {
    const std::string folder = folder_of(path);
    const std::string quantisation = (std::filesystem::path(folder) / "hf_quant_config.json").string();
    if (config.is_object() && !config.contains("hf_quant_config") && exists(quantisation)) {
        auto read = read_json(quantisation);
        if (!read) return std::unexpected(read.error());
        config["hf_quant_config"] = std::move(*read);
    }
    auto model = io::read_config_file(std::move(config), path, name, edit);
    if (!model) return model;
    const auto shards = shards_of(folder);
    if (!shards) return std::unexpected(shards.error());
    if (!shards->empty()) {
        const auto tensors = read_shards(folder, *shards);
        if (!tensors) return std::unexpected(tensors.error());
        io::use_file_sizes(*model, *tensors);
        model->notes.push_back(fmt::format("weight bytes are those of {} safetensors file{}", shards->size(),
                                           shards->size() == 1 ? "" : "s"));
    }
    return model;
}

Result<ModelFile> load_folder(const std::string& path, const io::ConfigEdit& edit) {
    const std::string config = (std::filesystem::path(path) / "config.json").string();
    if (exists(config)) {
        auto json = read_json(config);
        if (!json) return std::unexpected(json.error());
        return load_config(config, std::move(*json), file_name(path), edit);
    }
    std::vector<std::string> ggufs;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
        if (entry.path().extension() == ".gguf") ggufs.push_back(entry.path().string());
    }
    std::sort(ggufs.begin(), ggufs.end());
    if (!ggufs.empty()) return load_gguf(ggufs.front(), edit);
    return fail(fmt::format("{}: holds neither a config.json nor a .gguf", path));
}

bool looks_like_a_path(const std::string& typed) {
    for (const char* ending : {".json", ".gguf", ".safetensors"}) {
        if (typed.ends_with(ending)) return true;
    }
    return typed.starts_with("/") || typed.starts_with("./") || typed.starts_with("../") || typed.starts_with("~");
}

}  // namespace

Result<ModelFile> load_model(const std::string& typed, const io::ConfigEdit& edit) {
    if (!exists(typed)) {
        if (looks_like_a_path(typed)) return fail(fmt::format("{}: no such file", io::printable(typed)));
        return io::builtin_model(typed, edit);
    }
    if (is_folder(typed)) {
        // A folder that happens to be called like a built-in model is not meant unless it holds one.
        if (auto model = load_folder(typed, edit); model || typed.find('/') != std::string::npos) return model;
        if (auto builtin = io::builtin_model(typed, edit)) return builtin;
        return load_folder(typed, edit);
    }
    if (typed.ends_with(".gguf")) return load_gguf(typed, edit);
    if (typed.ends_with(".safetensors") || typed.ends_with(".safetensors.index.json")) {
        const std::string config = (std::filesystem::path(folder_of(typed)) / "config.json").string();
        if (!exists(config))
            return fail(fmt::format("{}: there is no config.json beside it, which says what the tensors mean", typed));
        auto json = read_json(config);
        if (!json) return std::unexpected(json.error());
        return load_config(config, std::move(*json), file_name(typed), edit);
    }
    const auto text = read_text(typed);
    if (!text) return std::unexpected(text.error());
    if (text->starts_with("GGUF")) return load_gguf(typed, edit);
    auto json = io::parse_json(*text, typed);
    if (!json) return std::unexpected(json.error());
    const bool own_format = json->is_object() && json->contains("schema");
    if (own_format) return io::read_model_file(*text, typed, edit);
    const std::string folder = file_name(folder_of(typed));
    return load_config(typed, std::move(*json), file_name(typed) == "config.json" ? folder : file_name(typed), edit);
}

std::string own_profile_path() {
    if (const char* config = std::getenv("XDG_CONFIG_HOME"); config != nullptr && *config != '\0')
        return std::string(config) + "/roofline/this.json";
    const char* home = std::getenv("HOME");
    return std::string(home != nullptr ? home : ".") + "/.config/roofline/this.json";
}

std::optional<std::string> device_file(const std::string& typed) {
    if (typed == "this") return own_profile_path();
    if (exists(typed) && !is_folder(typed)) return typed;
    return std::nullopt;
}

Result<Device> load_device(const std::string& typed) {
    if (const auto path = device_file(typed)) {
        if (typed == "this" && !exists(*path)) {
            return std::unexpected(Problem{
                fmt::format("this machine has no saved profile yet ({} is not there): `roofline measure` makes one",
                            *path),
                true});
        }
        const auto text = read_text(*path);
        if (!text) return std::unexpected(text.error());
        return io::read_device(*text, *path);
    }
    if (looks_like_a_path(typed)) {
        return fail(is_folder(typed) ? fmt::format("{}: is a folder, expected a device file", typed)
                                     : fmt::format("{}: no such file", io::printable(typed)));
    }
    return io::builtin_device(typed);
}

}  // namespace roofline::cli
