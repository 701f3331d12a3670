// A deployment under load, as the report's "load".
#pragma once

#include "roofline/io/fields.hpp"
#include "roofline/serving/traffic.hpp"

namespace roofline::io {

OrderedJson load_json(const serving::Traffic& traffic, const serving::Answer& answer);

}  // namespace roofline::io
