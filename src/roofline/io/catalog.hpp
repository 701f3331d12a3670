// The devices and models the program carries inside itself, found by loose names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/device.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/io/model_file.hpp"

namespace roofline::io {

Result<Device> builtin_device(std::string_view name);
Result<ModelFile> builtin_model(std::string_view name, const ConfigEdit& edit = {});

std::vector<std::string> builtin_device_names();
std::vector<std::string> builtin_model_names();

}  // namespace roofline::io
