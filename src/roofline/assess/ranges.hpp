// How far off constants may be: ranges and errors of fits, from rows that they had not seen.
#pragma once

#include "roofline/assess/residuals.hpp"

namespace roofline::assess {

/// Of each device's own constants, on rows held back from them.
void note_residuals(const Groups& groups, const predict::Calibration& fitted, const std::vector<bool>& held_back,
                    std::span<const Measurement> rows, Residuals& into);

/// Each fit's range and mean error.
void set_ranges(predict::Calibration& calibration, const Residuals& residuals);

/// Steps in graphs, whose time is that of their kernels: those of every author by the constants of every other.
void set_authors(predict::Calibration& calibration, const Groups& steps);

}  // namespace roofline::assess
