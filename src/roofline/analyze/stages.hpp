// Steps that are alike form a stage.
#pragma once

#include "roofline/analyze/steps.hpp"

namespace roofline::analyze {

/// As many as most decodes repeat, for a prompt may begin with an encoder; the most of any step where there are none.
double repeated_layers(const std::vector<Step>& steps);

/// How long each step lasts.
void set_windows(std::vector<Step>& steps);

/// Those of one kind, started in one way, with as many sequences and, but for decodes, as many tokens.
void form_stages(Steps& steps);

}  // namespace roofline::analyze
