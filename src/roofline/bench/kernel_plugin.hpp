// Anyone's own kernel as a backend: a shared library that speaks include/roofline_kernel.h.
#pragma once

#include <memory>
#include <string>

#include "roofline/bench/backend.hpp"

namespace roofline::bench {

Result<std::unique_ptr<Backend>> load_kernel_plugin(const std::string& path);

}  // namespace roofline::bench
