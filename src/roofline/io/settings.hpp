// --set PATH=VALUE|Nx: change any figure of the device or the model for one run, so that "what if compute doubles" is
// one flag. Device paths: memory.bandwidth, memory.capacity, cache.*, host.bandwidth, peer.bandwidth, compute (all
// rates), compute.bf16, matrix.fp8, vector.fp32, power: "4TB/s" or "4 TB/s", as tables print it. Anything else is a key
// of the model's config.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/device.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/io/fields.hpp"

namespace roofline::io {

struct Setting {
    std::string text;  // as typed
    std::string path;
    std::string value;
    std::optional<double> factor;  // of "2x"
};

Result<Setting> parse_setting(std::string_view text);

/// Does the path name a figure of a device?
bool is_device_path(std::string_view path);

Result<void> apply(const Setting& setting, Device& device);
Result<void> apply(const Setting& setting, Json& config);

}  // namespace roofline::io
