// The flags that say what is predicted: model, device, workload, number types, changed figures.
#pragma once

#include <string>
#include <vector>

#include "roofline/ask/deployment_options.hpp"
#include "roofline/ask/form.hpp"
#include "roofline/ask/library.hpp"
#include "roofline/ask/memory_options.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/io/settings.hpp"
#include "roofline/predict/setup.hpp"

namespace roofline::ask {

struct ScenarioOptions {
    std::string model;
    std::string device;
    std::string parameters;  // --params: stands in for a model of which only the size is known
    std::string batch = "1";
    std::string prompt = "1024";
    std::string context = "prompt";
    std::string generate = "128";
    std::string cached = "0";
    std::string chunk = "0";
    std::string stage = "both";
    std::string dtype;
    std::string weight_dtype;
    std::string quantization;
    std::string activation_dtype;
    std::string kv_dtype;
    std::string attention = "flash";
    std::string latent = "auto";
    std::string profile = "engine";
    std::string calibration;
    std::vector<std::string> settings;
    DeploymentOptions deployment;
    MemoryFlags memory;

    void add_to(Form& form);
    /// `with_settings` false: the same question without --set.
    Result<predict::Setup> setup(const Library& library, bool with_settings = true) const;
    Result<predict::Scenario> load(const Library& library, bool with_settings = true) const;
};

/// The setup of a model alone: its name, architecture and types.
predict::Setup setup_of_model(io::ModelFile model);

/// Realised, with other ways to lower it where it does not fit.
Result<predict::Scenario> with_remedies(const predict::Setup& setup);

}  // namespace roofline::ask
