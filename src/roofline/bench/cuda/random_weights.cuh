// Weights of our own making in every format, and what they are: on the device as kernels read them, on the host by the
// formats' definitions.
#pragma once

#include <cstdint>
#include <vector>

#include "roofline/bench/cuda/memory.cuh"

namespace roofline::cuda::kernels {

/// Matrices of n rows of k values with their scales, one after another. Products with them keep the size of what they
/// multiply.
class RandomWeights {
  public:
    RandomWeights() = default;
    /// `unit_scales`: scales of rows are one, for libraries that apply none.
    RandomWeights(Format format, int n, int k, int matrices, std::uint32_t seed, cudaStream_t stream,
                  bool unit_scales = false);

    Format format() const { return format_; }
    /// Of all matrices, with their scales.
    double bytes() const { return matrices_ * weight_bytes(format_, n_, k_); }
    int matrices() const { return matrices_; }

    /// A matrix becomes the weights of a product; where this has several, it and those behind it.
    template <class Work>
    void put_into(Work& product, int matrix = 0) const {
        product.weights = weights_.at(index(matrix) * weight_stride_);
        product.scales = scales_.at(index(matrix) * scale_stride_);
        if constexpr (requires { product.whole_scale; }) {
            product.whole_scale = whole_.bytes() > 0 ? whole_.at<float>() + matrix : nullptr;
        }
        if constexpr (requires { product.scale_stride; }) product.scale_stride = scale_stride_;
    }

    /// Rows of a matrix, on the host, one after another.
    std::vector<double> rows(int matrix, int first, int count) const;

  private:
    static std::size_t index(int number) { return static_cast<std::size_t>(number); }

    Memory weights_;
    Memory scales_;
    Memory whole_;  // nvfp4: a float for each matrix
    std::size_t weight_stride_ = 0;
    std::size_t scale_stride_ = 0;
    Format format_ = Format::bf16;
    int n_ = 0;
    int k_ = 0;
    int matrices_ = 0;
};

}  // namespace roofline::cuda::kernels
