// From measurements to constants that say how far off they may be: fits of all rows, judged by fits that left some out.
#pragma once

#include <span>
#include <vector>

#include "roofline/assess/measured.hpp"
#include "roofline/predict/calibration.hpp"

namespace roofline::assess {

/// So many parts are left out in turn.
inline constexpr int default_folds = 5;

/// Which rows are left out together when an error is estimated: row i belongs to fold folds[i]. Families of shapes (and
/// whole models) are never split.
std::vector<int> fold_of_rows(std::span<const Measurement> rows, int folds);

/// How errors and ranges are found: always by leaving out families of shapes on each device; `transfers_too`: also by
/// leaving out devices and generations, for what is carried to machines nobody measured.
enum class Judging { own_devices, transfers_too };

predict::Calibration calibrate(std::span<const Measurement> rows, Judging judging = Judging::transfers_too);

}  // namespace roofline::assess
