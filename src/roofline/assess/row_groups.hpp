// Rows that are fitted together: launches of one kernel class, number type and stack; whole steps of one profile
// against the sum of their kernels.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "roofline/assess/fit.hpp"
#include "roofline/assess/measured.hpp"
#include "roofline/predict/calibration.hpp"
#include "roofline/predict/prepared.hpp"

namespace roofline::assess {

/// Fewer rows than this of a kind, type and engine say nothing of their own: they lean on a related type.
inline constexpr std::size_t least_rows_of_a_group = 8;

/// What is fitted together: a class, a number type, an engine's kernels.
struct GroupKey {
    const predict::KernelClass* kernel_class = nullptr;
    std::string type;
    std::string stack;

    auto order() const { return std::tie(kernel_class->name, type, stack); }
    bool operator<(const GroupKey& other) const { return order() < other.order(); }
};

struct FitRow {
    std::size_t index = 0;  // of the measurement
    const Device* device = nullptr;
    Sample sample;
};

using Groups = std::map<GroupKey, std::vector<FitRow>>;

/// Rows that are kernels, by group; those marked in `used`.
Groups kernel_groups(std::span<const Measurement> rows, const std::vector<bool>& used);

/// Steps against the sum of their kernels, as the kernels' own fit has it.
struct StepSamples {
    Groups groups;
    std::vector<std::unique_ptr<Call>> calls;  // that the samples point to
};
StepSamples step_groups(std::span<const Measurement> rows, const std::vector<bool>& used,
                        const std::shared_ptr<const predict::Calibration>& kernels);

bool timed_as_a_step(const Measurement& row);

/// A row that was timed as a step, as it is predicted.
struct PricedStep {
    predict::StageTime time;
    std::string step_class;  // that turns the sum of kernels into the time of the step
    std::string source;      // of its constants
};
PricedStep price_step(const Measurement& row, std::shared_ptr<const predict::Calibration> calibration);

}  // namespace roofline::assess
