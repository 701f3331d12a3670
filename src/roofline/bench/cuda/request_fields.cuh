// Reading requests: a field that is missing or of the wrong kind is named in the problem.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "roofline/bench/cuda/memory.cuh"

namespace roofline::cuda::kernels {

/// A whole number of at least `least`; `otherwise` where the field is not there and that is at least `least`.
inline int whole(const nlohmann::json& object, const char* name, int least = 1, int otherwise = -1) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) {
        if (otherwise >= least) return otherwise;
        throw Failure{std::string("the request has no ") + name};
    }
    if (!found->is_number_integer() || *found < least || *found > 1 << 30) {
        throw Failure{std::string(name) + " is " + found->dump() + ", but must be a whole number of at least " +
                      std::to_string(least)};
    }
    return found->get<int>();
}

inline std::string text(const nlohmann::json& object, const char* name, const char* otherwise) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_string()) return otherwise;
    return found->get<std::string>();
}

inline Format format_named(const std::string& name) {
    const auto format = bench::weight_format_named(name == "fp8_e4m3" ? "fp8" : name);
    if (format && *format != Format::fp32 && *format != Format::fp16) return *format;
    throw Failure{"the CUDA kernels know bf16, fp8, fp8_block, int8, int4, mxfp4 and nvfp4, not " + name};
}

/// Takes the device of the request.
inline void take_device(const nlohmann::json& request) {
    must(cudaSetDevice(whole(request, "device", 0, 0)), "device");
}

}  // namespace roofline::cuda::kernels
