// Activations made as narrow as weights, so that tensor cores multiply both as they are: e4m3 or int8 under a scale for
// each row or, beside weights under scales of blocks, for each 128 values of a row. A scale is that of the largest
// value, which becomes 448, the largest of e4m3, or 127.
#pragma once

#include "roofline/bench/cuda/elementwise.cuh"
#include "roofline/bench/cuda/product.cuh"

namespace roofline::cuda::kernels {

/// Where rows of activations lie that were made narrow for a product.
class NarrowRoom {
  public:
    /// For so many rows of x, beside weights in fp8, fp8_block or int8.
    NarrowRoom(Format weights, int rows, int width);

    /// For whoever makes the rows.
    NarrowTo to() const { return {values_.at<uint2>(), scales_.at<float>(), stride_, blocks_, whole_}; }
    /// What is here becomes the product's activations.
    void put_into(Product& product) const;
    /// The product's activations are made narrow first.
    void narrow(Product& product, Launch launch) const;

  private:
    int rows_;
    int width_;
    bool blocks_;
    bool whole_;
    int stride_;
    Memory values_;
    Memory scales_;
};

}  // namespace roofline::cuda::kernels
