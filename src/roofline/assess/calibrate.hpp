// From measurements to constants: the same class is fitted over all devices, then for each generation, then for each
// device, every level held near the one above. Few rows therefore move little, and a device without rows has a
// generation to lean on.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "roofline/assess/measured.hpp"
#include "roofline/predict/calibration.hpp"

namespace roofline::assess {

/// Fewer rows than this of a kind, type and engine say nothing of their own: they lean on a related type.
inline constexpr std::size_t least_rows_of_a_group = 8;

/// Which rows are left out together when an error is estimated: row i belongs to fold folds[i]. Families of shapes (and
/// whole models) are never split.
std::vector<int> fold_of_rows(std::span<const Measurement> rows, int folds);

/// How errors and ranges are found: always by leaving out families of shapes on each device; `transfers_too`: also by
/// leaving out devices and generations, for what is carried to machines nobody measured.
enum class Judging { own_devices, transfers_too };

predict::Calibration calibrate(std::span<const Measurement> rows, Judging judging = Judging::transfers_too);

/// What a calibration says about a row.
struct Expected {
    double seconds = 0.0;
    double low = 0.0;
    double high = 0.0;
    std::string source;
};
Expected expect(const Measurement& row, const std::shared_ptr<const predict::Calibration>& calibration);

/// What a fit has not seen of the row it predicts: its family of shapes (a new shape or model on a known device), or
/// anything of its device (a machine nobody measured, known by its data sheet and its relatives).
enum class LeftOut { family, device };

/// Each row predicted by a fit, and a range, that did not see what is left out.
std::vector<Expected> expect_left_out(std::span<const Measurement> rows, LeftOut what = LeftOut::family);

}  // namespace roofline::assess
