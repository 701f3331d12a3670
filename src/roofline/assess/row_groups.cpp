#include "roofline/assess/row_groups.hpp"

#include "roofline/io/profile_file.hpp"

namespace roofline::assess {
namespace {

/// Each profile is read once: thousands of steps name the same few.
const predict::Profile& profile_called(const std::string& name) {
    static const std::map<std::string, predict::Profile> known = [] {
        std::map<std::string, predict::Profile> all;
        for (const std::string& each : io::builtin_profile_names()) {
            if (auto profile = io::builtin_profile(each)) all.emplace(each, std::move(*profile));
        }
        return all;
    }();
    static const predict::Profile none;
    const auto found = known.find(name);
    return found != known.end() ? found->second : none;
}

}  // namespace

bool timed_as_a_step(const Measurement& row) {
    return row.step != nullptr && row.calls.empty();
}

PricedStep price_step(const Measurement& row, std::shared_ptr<const predict::Calibration> calibration) {
    predict::Execution execution;
    execution.profile = profile_called(row.step->profile);
    execution.profile.stacks.insert(execution.profile.stacks.begin(), row.step->stacks.begin(), row.step->stacks.end());
    execution.calibration = std::move(calibration);
    const predict::Prepared prepared(*row.step->model, *row.device, execution);
    std::vector<predict::OperatorTime> times(prepared.size());
    return {prepared.evaluate(row.step->step, times), execution.profile.step, prepared.step_choice().source};
}

Groups kernel_groups(std::span<const Measurement> rows, const std::vector<bool>& used) {
    Groups groups;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Measurement& row = rows[i];
        if (!used[i] || row.calls.empty()) continue;
        groups[{row.calls.front().kernel_class, row.fit_type, row.stack}].push_back(
            {i, row.device.get(), {row.calls, row.seconds}});
    }
    return groups;
}

StepSamples step_groups(std::span<const Measurement> rows, const std::vector<bool>& used,
                        const std::shared_ptr<const predict::Calibration>& kernels) {
    StepSamples result;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Measurement& row = rows[i];
        if (!used[i] || !timed_as_a_step(row)) continue;
        const PricedStep step = price_step(row, kernels);
        auto call = std::make_unique<Call>();
        call->kernel_class = predict::kernel_class(step.step_class);
        call->machine = predict::step_machine();
        call->kernel = predict::step_kernel(step.time);
        result.groups[{call->kernel_class, "", row.step->profile}].push_back(
            {i, row.device.get(), {std::span<const Call>(call.get(), 1), row.seconds}});
        result.calls.push_back(std::move(call));
    }
    return result;
}

}  // namespace roofline::assess
