// Questions to be advised on, built from what the program carries.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "roofline/decide/advise.hpp"
#include "roofline/io/calibration_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/profile_file.hpp"

namespace roofline::testing {

inline predict::Execution execution_on(const Device& device, const std::string& profile = "engine") {
    predict::Execution execution;
    execution.profile = *io::builtin_profile(profile, device);
    // Read once for a device: most of the time of a short test.
    static std::map<std::string, std::shared_ptr<const predict::Calibration>> known;
    auto& calibration = known[device.name];
    if (!calibration) calibration = std::make_shared<const predict::Calibration>(*io::builtin_calibration(device));
    execution.calibration = calibration;
    return execution;
}

inline decide::Candidate question(const std::string& model, const std::string& device,
                                  const std::string& profile = "engine") {
    decide::Candidate candidate;
    predict::Setup& asked = candidate.setup;
    const auto file = io::builtin_model(model);
    EXPECT_TRUE(file) << model;
    asked.model_name = model;
    asked.architecture = std::make_shared<const model::Architecture>(file->architecture);
    asked.checkpoint = std::make_shared<const model::TypePlan>(file->types);
    asked.checkpoint_summary = file->types_summary;
    asked.device = *io::builtin_device(device);
    asked.execution = execution_on(asked.device, profile);
    return candidate;
}

inline decide::Surroundings surroundings(const decide::Candidate& candidate) {
    decide::Surroundings around;
    around.engine = execution_on(candidate.setup.device);
    for (const char* name : {"h200-sxm", "a100-sxm-80gb"}) {
        const Device device = *io::builtin_device(name);
        if (device.name != candidate.setup.device.name) around.devices.push_back({device, execution_on(device)});
    }
    return around;
}

inline const decide::Outcome* find(const decide::Advice& advice, std::string_view variant) {
    for (const decide::Outcome& outcome : advice.outcomes) {
        if (outcome.variant == variant) return &outcome;
    }
    return nullptr;
}

inline const decide::Sensitivity* find_resource(const std::vector<decide::Sensitivity>& rows, std::string_view name) {
    for (const decide::Sensitivity& row : rows) {
        if (row.resource.name == name) return &row;
    }
    return nullptr;
}

}  // namespace roofline::testing
