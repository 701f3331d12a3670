// The options that say how a model is run: the execution profile, and whose constants the expected times use.
#pragma once

#include <string>

#include "roofline/ask/form.hpp"

namespace roofline::ask {

void add_execution_options(Form& form, std::string& profile, std::string& calibration);

}  // namespace roofline::ask
