// A roofline drawn with letters, 80 columns wide, for a terminal without pictures: FLOP per byte to the right, FLOP/s
// upwards, both in powers of two. A slope for memory and one for the cache, a flat roof for each number type.
#pragma once

#include <string>

#include "roofline/core/device.hpp"

namespace roofline::render {

/// Empty where the device has no memory bandwidth or no rate at all.
std::string terminal_roofline(const Device& device);

}  // namespace roofline::render
