// A deployment under load, for people.
#pragma once

#include <string>

#include "roofline/serving/traffic.hpp"

namespace roofline::render {

/// What stands under "under load", line by line, without indentation.
std::string load_text(const serving::Traffic& traffic, const serving::Answer& answer);

}  // namespace roofline::render
