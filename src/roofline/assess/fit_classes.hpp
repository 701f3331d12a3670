// Every kernel class fitted over all devices, then for each family of kernels, group, generation and device, each level
// held near the one above. Few rows therefore move little, and a device without rows has a generation to lean on.
#pragma once

#include <span>
#include <vector>

#include "roofline/assess/residuals.hpp"

namespace roofline::assess {

/// Fits all classes to the rows marked in `used`: kernels first, then steps against the sum of their kernels.
/// `transfers`: where to note how fits do on devices and generations they have not seen; nullptr: not asked for.
predict::Calibration fit_all(std::span<const Measurement> rows, const std::vector<bool>& used, Residuals* transfers);

}  // namespace roofline::assess
