// Finding and calling roofline_cuda.so (cuda/abi.h). The program itself knows nothing of CUDA: a machine without a
// driver, without a GPU or without the plugin gets one line that says which of them is missing.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/io/fields.hpp"

struct roofline_cuda_backend;

namespace roofline::measure {

/// Where to look. Tests look elsewhere.
struct CudaPlaces {
    std::string driver = "libcuda.so.1";
    std::vector<std::string> plugins;  // the first that exists is taken
};

/// ROOFLINE_CUDA_PLUGIN alone where it is set; else beside the program, in ../lib/roofline as it is installed, and in
/// ../cuda, where script/cuda leaves it.
CudaPlaces usual_cuda_places();

class CudaBackend {
  public:
    using Progress = std::function<void(std::string_view)>;

    /// Problems are of the kind `unavailable`, but for a plugin that is there and broken.
    static Result<CudaBackend> load(const CudaPlaces& places = usual_cuda_places());
    /// For tests: a backend inside this program.
    static Result<CudaBackend> wrap(const roofline_cuda_backend* backend, std::string_view file);

    /// One request, one answer; `problem` of an answer becomes a Problem, and so does an answer that is no JSON object.
    Result<io::Json> call(const io::Json& request, const Progress& progress = {}) const;

  private:
    CudaBackend(const roofline_cuda_backend* backend, std::string file) : backend_(backend), file_(std::move(file)) {}
    const roofline_cuda_backend* backend_;
    std::string file_;
};

/// "cuda:0", "cuda", "cuda:1": the index of a GPU; empty for what is no CUDA device; a problem for "cuda:x".
Result<std::optional<int>> cuda_index(std::string_view device);

}  // namespace roofline::measure
