// The ways a backend has to do one product: our variants, or a library's algorithms. Whoever uses one times them all on
// the shape at hand and keeps the fastest.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "roofline/bench/cuda/product.cuh"

namespace roofline::cuda::kernels {

struct ProductWay {
    std::string name;
    std::function<void(const Product&, bool overlap, cudaStream_t)> run;
};

/// Backend "own" or "cublaslt". More than 64 rows of activations go through our kernels for narrow weights 64 at a
/// time, the weights read again for each: right, but no match for a kernel made for it.
std::vector<ProductWay> product_ways(const std::string& backend, Format weights, bool fp8_activations, int m, int n,
                                     int k);

/// Our variants for a product of experts that have so many rows on the mean, and none more than `most`: those that take
/// it and whose panels are neither far too small nor larger than any expert needs.
std::vector<RoutedVariant> routed_ways(Format weights, RoutedProduct shape, int experts, int mean, int most);

}  // namespace roofline::cuda::kernels
