// From what was typed to a model or a device: a built-in name, a folder, a config.json, a .gguf, a .safetensors, a
// device file, `this`.
#pragma once

#include <optional>
#include <string>

#include "roofline/core/device.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/io/model_file.hpp"

namespace roofline::cli {

Result<io::ModelFile> load_model(const std::string& typed, const io::ConfigEdit& edit = {});
Result<Device> load_device(const std::string& typed);
/// The file that a device is read from: that of `this`, or one that was named; empty: a built-in one.
std::optional<std::string> device_file(const std::string& typed);

/// Where the profile of this machine is kept.
std::string own_profile_path();

}  // namespace roofline::cli
