// Products through cuBLASLt, which is loaded when it is first used; its headers are needed to build this backend, not
// the rest.
#pragma once

#include <memory>

#include "roofline/bench/cuda/product.cuh"

namespace roofline::cuda::kernels {

/// One shape of product, with the algorithms that cuBLASLt's heuristic proposes.
class LibraryProduct {
  public:
    /// Weights and activations both bf16, or both e4m3; others are refused. `scaled`: by the product's own scales, of
    /// rows or of blocks; else by none.
    LibraryProduct(Format weights, bool narrow_activations, bool scaled, int m, int n, int k);
    ~LibraryProduct();
    LibraryProduct(const LibraryProduct&) = delete;
    LibraryProduct& operator=(const LibraryProduct&) = delete;

    int algorithms() const;
    void run(const Product& product, int algorithm, cudaStream_t stream) const;

  private:
    struct Parts;
    static void describe_scales(Parts& made, Format weights);

    std::unique_ptr<Parts> parts_;
};

}  // namespace roofline::cuda::kernels
