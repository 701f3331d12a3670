// Advice as JSON, as other programs read it: the keys of schema/advise.schema.json. Keys end in their unit.
#pragma once

#include "roofline/decide/advise.hpp"
#include "roofline/io/report_json.hpp"

namespace roofline::io {

std::string advice_text(const decide::Advice& advice, const RunInfo& run);

}  // namespace roofline::io
