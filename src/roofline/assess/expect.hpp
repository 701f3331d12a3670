// What a calibration says about measured rows, and what one says that has not seen them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "roofline/assess/measured.hpp"
#include "roofline/predict/calibration.hpp"

namespace roofline::assess {

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
