// Products of each head: y[row, head, n] = W[head][n, k] x[row, head, k]. They take what makes keys of latent entries
// into the queries, and what makes values of them out of attention's results.
//
// FLOPs: 2 m heads n k. Bytes: the weights with their scales, m heads k activations read and m heads n written, bf16.
#pragma once

#include <cuda_runtime.h>

#include "roofline/bench/cuda/memory.cuh"

namespace roofline::cuda::kernels {

struct HeadProduct {
    const void* weights = nullptr;  // [head][n, k]
    const void* scales = nullptr;   // as those of other products (product.cuh), head after head
    const void* x = nullptr;        // bf16; of a row and a head k numbers that follow each other
    void* y = nullptr;              // bf16
    std::size_t scale_stride = 0;   // bytes from the scales of a head to those of the next
    float factor = 1.0f;            // of what comes out
    int m = 0;                      // rows
    int heads = 0;
    int n = 0;
    int k = 0;
    // Numbers from a row to the next and from a head to the next.
    int x_row = 0;
    int x_head = 0;
    int y_row = 0;
    int y_head = 0;
};

/// Throws where k is no multiple of what 64 bytes of a row of weights hold (product_granule), n none of 16, or a
/// distance none of 8.
void launch(const HeadProduct& product, Format weights, bool overlap, cudaStream_t stream);

}  // namespace roofline::cuda::kernels
