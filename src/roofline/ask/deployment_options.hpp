// The flags that say how a model is spread over devices, under the names that vLLM, SGLang and TensorRT-LLM use.
#pragma once

#include <string>

#include "roofline/ask/form.hpp"
#include "roofline/core/device.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/model/deployment.hpp"

namespace roofline::ask {

struct DeploymentOptions {
    std::string tensor = "1";
    std::string pipeline = "1";
    std::string data = "1";
    std::string context = "1";
    std::string experts;
    std::string devices;
    std::string node;
    std::string imbalance = "1";
    std::string redundant = "0";
    std::string dispatch;
    std::string exchange;
    std::string overlap = "0";
    std::string host_weights = "0";
    std::string host_kv = "0";
    bool spread_experts = false;
    bool attention_data_parallel = false;
    bool sequence_parallel = false;
    bool two_batches = false;

    void add_to(Form& form);
    Result<model::Deployment> load(const Device& device) const;
};

}  // namespace roofline::ask
