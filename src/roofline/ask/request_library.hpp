// What a question brings along: built-in names, and files that were dropped on the page or sent to the server. Nothing
// of a machine's disks is reachable through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "roofline/ask/library.hpp"

namespace roofline::ask {

/// The beginning of a large file, and how long it is as a whole.
struct Beginning {
    std::vector<std::byte> bytes;
    std::uint64_t file_size = 0;
};

/// What one question after another may share: constants, built-in models and devices, once they were read. For one
/// thread.
class Memory {
  public:
    const predict::Execution* execution(const std::string& key) const;
    void keep(const std::string& key, const predict::Execution& execution);
    const io::ModelFile* model(const std::string& name) const;
    void keep(const std::string& name, const io::ModelFile& model);
    const Device* device(const std::string& name) const;
    void keep(const std::string& name, const Device& device);
    /// Answers that are the same whoever asks: the lists of models, devices, options.
    const std::string* list(const std::string& verb) const;
    void keep_list(const std::string& verb, const std::string& text);

  private:
    std::map<std::string, predict::Execution> executions_;
    std::map<std::string, io::ModelFile> models_;
    std::map<std::string, Device> devices_;
    std::map<std::string, std::string> lists_;
};

class RequestLibrary : public Library {
  public:
    explicit RequestLibrary(Memory& memory) : memory_(memory) {}

    std::map<std::string, std::string> files;
    std::map<std::string, Beginning> binaries;  // .gguf, .safetensors

    Result<io::ModelFile> model(const std::string& typed, const io::ConfigEdit& edit = {}) const override;
    Result<Device> device(const std::string& typed) const override;
    Result<std::optional<std::string>> file(const std::string& name) const override;
    bool has_file(const std::string& name) const override;
    Result<predict::Execution> execution(const std::string& profile, const std::string& calibration,
                                         const Device& device) const override;

    /// Bytes of the file that a header goes on to, where a beginning was too short: come back with as many.
    std::uint64_t needs() const { return needs_; }

  private:
    Result<io::ModelFile> gguf_model(const std::string& name, const Beginning& beginning,
                                     const io::ConfigEdit& edit) const;
    Result<void> use_shards(const std::string& folder, io::ModelFile& model) const;

    Memory& memory_;
    mutable std::uint64_t needs_ = 0;
};

}  // namespace roofline::ask
