// What the source of a figure says about it.
#pragma once

#include "roofline/core/device.hpp"

namespace roofline {

/// A guess, or what was found on a relative and is taken to hold here: used, but never called measured.
inline bool is_assumed(const Device& device, const Figure& figure) {
    const auto source = device.sources.find(figure.source);
    return source != device.sources.end() && source->second.kind == SourceKind::assumed;
}

}  // namespace roofline
