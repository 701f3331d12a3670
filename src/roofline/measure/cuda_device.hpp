// A GPU of NVIDIA, measured: what the plugin (cuda/abi.h) answers, made into figures and a device that `predict` takes.
// Where the GPU is one of the built-in devices, its datasheet stays the limit and the measured figures become ceilings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/measure/cuda/loader.hpp"
#include "roofline/measure/found.hpp"

namespace roofline::measure {

struct CudaOptions {
    int index = 0;
    bool quick = false;             // no long runs: under 15 s instead of under 60
    std::vector<std::string> only;  // "memory", "matrix.bf16": nothing else; empty: all
    std::string date;               // for the sources of the figures
    Progress progress;
};

/// What `only` of a request holds for a word people type: a figure or what it is part of ("matrix.bf16", "memory"), or
/// a number type, whatever multiplies in it. The plugin knows what there is, and says it to whoever names something
/// else.
std::vector<std::string> cuda_figures_named(std::string_view only);

/// Loads the plugin and measures. Exit code 4 is for problems that are `unavailable`.
Result<Measured> measure_cuda(const CudaOptions& options);
Result<Measured> measure_cuda(const CudaOptions& options, const CudaBackend& backend);

/// From an answer to figures and a device; a problem says where the answer is not as it should be.
Result<Measured> read_cuda_answer(const io::Json& answer, const CudaOptions& options);

}  // namespace roofline::measure
