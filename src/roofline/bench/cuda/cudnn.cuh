// Attention through cuDNN, which is loaded when it is first used. cuDNN takes attention as a graph of operations
// (product, scale, causal mask, softmax, product) and answers with kernels that do all of it at once.
#pragma once

#include <memory>

#include "roofline/bench/cuda/attention.cuh"

namespace roofline::cuda::kernels {

/// One shape of attention, with the plans that cuDNN's heuristic proposes.
class LibraryAttention {
  public:
    /// bf16; a prefill must start at an empty cache, and the context be a multiple of 128.
    LibraryAttention(const Attention& shape, Format cache);
    ~LibraryAttention();
    LibraryAttention(const LibraryAttention&) = delete;
    LibraryAttention& operator=(const LibraryAttention&) = delete;

    int plans() const;
    void run(const Attention& attention, int plan, cudaStream_t stream) const;

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace roofline::cuda::kernels
