// Kernels of others, which speak include/roofline_cuda_kernel.h: a library is loaded once and stays, and its kernel is
// a backend of the name that it gives itself.
#pragma once

#include <roofline_cuda_kernel.h>
#include <string>
#include <vector>

#include "roofline/bench/cuda/memory.cuh"

namespace roofline::cuda::kernels {

/// Never null: throws a Failure that says what is wrong with the file.
const roofline_cuda_kernel* load_foreign(const std::string& path);

/// Among those that were loaded; null where there is none of that name.
const roofline_cuda_kernel* foreign_named(const std::string& name);

/// A shape made ready: what the kernel prepares for each copy of its operands is prepared, and given back at the end.
class ForeignRun {
  public:
    /// Throws where the kernel does not run the shape.
    ForeignRun(const roofline_cuda_kernel& kernel, const roofline_cuda_shape& shape,
               std::vector<roofline_cuda_operands> copies);
    ~ForeignRun();
    ForeignRun(const ForeignRun&) = delete;
    ForeignRun& operator=(const ForeignRun&) = delete;

    void launch(int copy, cudaStream_t stream) const;

  private:
    const roofline_cuda_kernel& kernel_;
    roofline_cuda_shape shape_;
    std::vector<roofline_cuda_operands> copies_;
    std::vector<void*> prepared_;
};

}  // namespace roofline::cuda::kernels
