// Scenarios of built-in models, without the command line.
#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "roofline/io/catalog.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/predict/setup.hpp"

namespace roofline::bench::testing {

inline predict::Scenario scenario(const std::string& model, const char* weights = nullptr, double batch = 1.0,
                                  double prompt = 512.0, double context = 1024.0, const char* activations = nullptr) {
    predict::Setup setup;
    const auto file = io::builtin_model(model);
    EXPECT_TRUE(file) << model;
    setup.model_name = model;
    setup.architecture = std::make_shared<const model::Architecture>(file->architecture);
    setup.checkpoint = std::make_shared<const model::TypePlan>(file->types);
    setup.checkpoint_summary = file->types_summary;
    setup.device = *io::builtin_device("h100-sxm");
    setup.execution.profile = *io::builtin_profile("engine", setup.device);
    if (weights != nullptr) setup.types.weights = find_format(weights);
    if (activations != nullptr) setup.types.activations = find_format(activations);
    setup.workload.batch = batch;
    setup.workload.prompt = prompt;
    setup.workload.context = context;
    const auto realised = predict::realise(setup);
    EXPECT_TRUE(realised);
    return *realised;
}

}  // namespace roofline::bench::testing
