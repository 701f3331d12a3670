#include "roofline/ask/request_library.hpp"

#include <fmt/format.h>

#include "roofline/io/catalog.hpp"
#include "roofline/io/device_file.hpp"
#include "roofline/io/gguf.hpp"
#include "roofline/io/gguf_config.hpp"
#include "roofline/io/safetensors.hpp"
#include "roofline/io/tensors.hpp"

namespace roofline::ask {
namespace {

constexpr std::size_t most_kept = 256;

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

/// "mine" of "mine/config.json", else the name itself.
std::string model_name(const std::string& path) {
    std::string folder = folder_of(path);
    const std::string file = path.substr(folder.size());
    if (file != "config.json" || folder.empty()) return file;
    folder.pop_back();
    return folder.substr(folder.rfind('/') + 1);
}

}  // namespace

const predict::Execution* Memory::execution(const std::string& key) const {
    const auto found = executions_.find(key);
    return found == executions_.end() ? nullptr : &found->second;
}

void Memory::keep(const std::string& key, const predict::Execution& execution) {
    // Names of devices may be anybody's: whoever asks with a thousand of them must not fill the memory.
    if (executions_.size() >= most_kept) executions_.clear();
    executions_.insert_or_assign(key, execution);
}

const io::ModelFile* Memory::model(const std::string& name) const {
    const auto found = models_.find(name);
    return found == models_.end() ? nullptr : &found->second;
}

void Memory::keep(const std::string& name, const io::ModelFile& model) {
    if (models_.size() >= most_kept) models_.clear();
    models_.insert_or_assign(name, model);
}

const Device* Memory::device(const std::string& name) const {
    const auto found = devices_.find(name);
    return found == devices_.end() ? nullptr : &found->second;
}

void Memory::keep(const std::string& name, const Device& device) {
    if (devices_.size() >= most_kept) devices_.clear();
    devices_.insert_or_assign(name, device);
}

const std::string* Memory::list(const std::string& verb) const {
    const auto found = lists_.find(verb);
    return found == lists_.end() ? nullptr : &found->second;
}

void Memory::keep_list(const std::string& verb, const std::string& text) {
    lists_.insert_or_assign(verb, text);
}

Result<io::ModelFile> RequestLibrary::gguf_model(const std::string& name, const Beginning& beginning,
                                                 const io::ConfigEdit& edit) const {
    auto gguf = io::read_gguf(beginning.bytes, beginning.file_size, name);
    if (!gguf) {
        if (const auto* problem = std::get_if<Problem>(&gguf.error())) return std::unexpected(*problem);
        needs_ = std::get<io::NeedMore>(gguf.error()).bytes;
        return fail(fmt::format("{}: its header goes on up to byte {}", io::printable(name), needs_));
    }
    std::vector<std::string> notes;
    auto config = io::config_from_gguf(*gguf, name, notes);
    if (!config) return std::unexpected(config.error());
    const std::string title(gguf->string_at("general.name").value_or(name));
    auto model = io::read_config_file(std::move(*config), name, io::printable(title), edit);
    if (!model) return model;
    model->notes.insert(model->notes.end(), notes.begin(), notes.end());
    if (!gguf->tensors.empty()) io::use_file_sizes(*model, gguf->tensors);
    return model;
}

Result<io::ModelFile> RequestLibrary::model(const std::string& typed, const io::ConfigEdit& edit) const {
    if (const auto found = binaries.find(typed); found != binaries.end() && !typed.ends_with(".safetensors"))
        return gguf_model(typed, found->second, edit);
    const auto found = files.find(typed);
    if (found == files.end()) {
        if (edit) return io::builtin_model(typed, edit);
        if (const io::ModelFile* known = memory_.model(typed)) return *known;
        auto model = io::builtin_model(typed);
        if (model) memory_.keep(typed, *model);
        return model;
    }
    auto json = io::parse_json(found->second, typed);
    if (!json) return std::unexpected(json.error());
    if (json->is_object() && json->contains("schema")) return io::read_model_file(found->second, typed, edit);
    const auto beside = files.find(folder_of(typed) + "hf_quant_config.json");
    if (json->is_object() && beside != files.end() && !json->contains("hf_quant_config")) {
        auto quantisation = io::parse_json(beside->second, beside->first);
        if (!quantisation) return std::unexpected(quantisation.error());
        (*json)["hf_quant_config"] = std::move(*quantisation);
    }
    auto model = io::read_config_file(std::move(*json), typed, model_name(typed), edit);
    if (!model) return model;
    if (auto done = use_shards(folder_of(typed), *model); !done) return std::unexpected(done.error());
    return model;
}

/// The headers of the safetensors files that came with a config say how large the weights really are.
Result<void> RequestLibrary::use_shards(const std::string& folder, io::ModelFile& model) const {
    std::vector<io::StoredTensor> tensors;
    std::size_t shards = 0;
    for (const auto& [name, beginning] : binaries) {
        if (folder_of(name) != folder || !name.ends_with(".safetensors")) continue;
        auto shard = io::read_safetensors(beginning.bytes, beginning.file_size, name);
        if (!shard) {
            if (const auto* problem = std::get_if<Problem>(&shard.error())) return std::unexpected(*problem);
            needs_ = std::get<io::NeedMore>(shard.error()).bytes;
            return fail(fmt::format("{}: its header goes on up to byte {}", io::printable(name), needs_));
        }
        tensors.insert(tensors.end(), shard->begin(), shard->end());
        ++shards;
    }
    if (shards == 0) return {};
    io::use_file_sizes(model, tensors);
    model.notes.push_back(
        fmt::format("weight bytes are those of {} safetensors file{}", shards, shards == 1 ? "" : "s"));
    return {};
}

Result<Device> RequestLibrary::device(const std::string& typed) const {
    if (const auto found = files.find(typed); found != files.end()) return io::read_device(found->second, typed);
    if (const Device* known = memory_.device(typed)) return *known;
    auto device = io::builtin_device(typed);
    if (device) memory_.keep(typed, *device);
    return device;
}

Result<std::optional<std::string>> RequestLibrary::file(const std::string& name) const {
    const auto found = files.find(name);
    return found == files.end() ? std::nullopt : std::optional(found->second);
}

bool RequestLibrary::has_file(const std::string& name) const {
    return files.contains(name) || binaries.contains(name);
}

Result<predict::Execution> RequestLibrary::execution(const std::string& profile, const std::string& calibration,
                                                     const Device& device) const {
    // A file that came with the question is read each time: the next one of that name may be another.
    if (has_file(profile) || has_file(calibration)) return Library::execution(profile, calibration, device);
    const std::string key =
        fmt::format("{}\n{}\n{}\n{}\n{}", profile, calibration, device.name, device.generation, device.vendor);
    if (const predict::Execution* known = memory_.execution(key)) return *known;
    auto execution = Library::execution(profile, calibration, device);
    if (execution) memory_.keep(key, *execution);
    return execution;
}

}  // namespace roofline::ask
