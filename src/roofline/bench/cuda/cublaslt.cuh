// cuBLASLt, loaded when it is first used: the program needs its headers to build and the library only to run it.
#pragma once

#include <array>
#include <cublasLt.h>

#include "roofline/bench/cuda/product.cuh"

namespace roofline::cuda::kernels {

/// The library's functions that are used; throws Failure where the library is not there.
struct CublasLt {
    decltype(&cublasLtCreate) create;
    decltype(&cublasLtDestroy) destroy;
    decltype(&cublasLtMatmul) matmul;
    decltype(&cublasLtMatmulDescCreate) description_create;
    decltype(&cublasLtMatmulDescDestroy) description_destroy;
    decltype(&cublasLtMatmulDescSetAttribute) description_set;
    decltype(&cublasLtMatrixLayoutCreate) layout_create;
    decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
    decltype(&cublasLtMatmulPreferenceCreate) preference_create;
    decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
    decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
    decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
    decltype(&cublasLtGetVersion) version;
    cublasLtHandle_t handle = nullptr;

    static const CublasLt& instance();
};

/// One shape of product through cuBLASLt, with the algorithms that its heuristic proposes.
class LibraryProduct {
  public:
    /// Weights and activations both bf16, or both fp8 (e4m3, one scale each); others are refused.
    LibraryProduct(Format weights, bool fp8_activations, int m, int n, int k);
    ~LibraryProduct();
    LibraryProduct(const LibraryProduct&) = delete;
    LibraryProduct& operator=(const LibraryProduct&) = delete;

    int algorithms() const { return count_; }
    void run(const Product& product, int algorithm, cudaStream_t stream) const;

  private:
    void release();

    cublasLtMatmulDesc_t description_ = nullptr;
    cublasLtMatrixLayout_t weights_ = nullptr;
    cublasLtMatrixLayout_t activations_ = nullptr;
    cublasLtMatrixLayout_t output_ = nullptr;
    std::array<cublasLtMatmulHeuristicResult_t, 16> algorithms_{};
    int count_ = 0;
    Memory workspace_;
    Memory scale_;  // 1, for both operands
};

}  // namespace roofline::cuda::kernels
