#include "roofline/assess/expect.hpp"

#include <algorithm>
#include <map>

#include "roofline/assess/calibrate.hpp"
#include "roofline/assess/in_parallel.hpp"
#include "roofline/assess/row_groups.hpp"
#include "roofline/assess/served.hpp"

namespace roofline::assess {
namespace {

using predict::Calibration;

/// Each device is a fold of its own.
std::vector<int> device_of_rows(std::span<const Measurement> rows) {
    std::map<std::string_view, int> numbers;
    std::vector<int> result;
    result.reserve(rows.size());
    for (const Measurement& row : rows)
        result.push_back(numbers.try_emplace(row.device->name, static_cast<int>(numbers.size())).first->second);
    return result;
}

}  // namespace

Expected expect(const Measurement& row, const std::shared_ptr<const Calibration>& calibration) {
    Expected result;
    if (row.served) return expect_served(row, calibration);
    if (row.told) return {row.told->expected, row.told->low, row.told->high, row.told->source};
    if (timed_as_a_step(row)) {
        const PricedStep step = price_step(row, calibration);
        return {step.time.expected, step.time.expected_low, step.time.expected_high, step.source};
    }
    std::vector<std::string> stacks = {row.stack};
    stacks.insert(stacks.end(), row.instead.begin(), row.instead.end());
    const predict::Choice choice =
        calibration->choose(*row.calls.front().kernel_class, row.fit_type, stacks, *row.device);
    result.seconds = std::max(predicted_seconds(row.calls, choice.constants), row.attainable);
    result.low = std::max(result.seconds * choice.low, row.attainable);
    result.high = result.seconds * choice.high;
    result.source = choice.source;
    return result;
}

std::vector<Expected> expect_left_out(std::span<const Measurement> rows, LeftOut what) {
    const bool by_device = what == LeftOut::device;
    const std::vector<int> folds = by_device ? device_of_rows(rows) : fold_of_rows(rows, default_folds);
    const int count = folds.empty() ? 0 : *std::max_element(folds.begin(), folds.end()) + 1;
    std::vector<Expected> result(rows.size());
    // Ranges come from the other folds too: a fit that has not seen these rows must not know their spread either.
    for (int fold = 0; fold < count; ++fold) {
        std::vector<Measurement> others;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (folds[i] != fold) others.push_back(rows[i]);
        }
        const auto fitted = std::make_shared<const Calibration>(
            calibrate(others, by_device ? Judging::transfers_too : Judging::own_devices));
        in_parallel(rows.size(), [&](std::size_t i) {
            if (folds[i] == fold) result[i] = expect(rows[i], fitted);
        });
    }
    return result;
}

}  // namespace roofline::assess
