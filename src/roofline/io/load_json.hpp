// A deployment under load, as the report's "load".
#pragma once

#include "roofline/io/json_text.hpp"
#include "roofline/serving/traffic.hpp"

namespace roofline::io {

/// As the keys of an object that is open.
void write_load(JsonText& json, const serving::Traffic& traffic, const serving::Answer& answer);

}  // namespace roofline::io
