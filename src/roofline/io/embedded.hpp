// The data files the program carries inside itself: data/devices/*.json and data/models/*.json at build time.
#pragma once

#include <span>
#include <string_view>

namespace roofline::io {

struct EmbeddedFile {
    std::string_view name;  // of the file, without folder and without ".json"
    std::string_view text;  // its JSON, without indentation
};

// Each sorted by name. Implemented by generated code; see cmake/Embed.cmake.
std::span<const EmbeddedFile> embedded_devices();
std::span<const EmbeddedFile> embedded_models();
std::span<const EmbeddedFile> embedded_profiles();
std::span<const EmbeddedFile> embedded_calibrations();
std::span<const EmbeddedFile> embedded_engines();

}  // namespace roofline::io
