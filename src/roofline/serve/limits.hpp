// What a question over the network may cost. The command line has no such limits: there, whoever asks pays.
#pragma once

#include "roofline/core/problem.hpp"
#include "roofline/io/fields.hpp"

namespace roofline::serve {

/// Refuses questions whose answer would take more than a second or two, with the option that makes it so.
Result<void> check_cost(std::string_view verb, const io::Json& options);

}  // namespace roofline::serve
