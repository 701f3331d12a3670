// The ways a backend has to do one product: our variants, or a library's algorithms. Whoever uses one times them all on
// the shape at hand and keeps the fastest.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "roofline/bench/cuda/narrow.cuh"
#include "roofline/bench/cuda/product.cuh"

namespace roofline::cuda::kernels {

struct ProductWay {
    std::string name;
    std::function<void(const Product&, bool overlap, cudaStream_t)> run;
    bool in_panels = false;
    // Where activations are multiplied as narrow as weights: where they lie then. Of a product that has scales of
    // its own for them they are there already; others' bf16 ones are put there first.
    std::shared_ptr<const NarrowRoom> room = nullptr;
};

/// Leaves those whose names contain `part`, where there are any.
template <class Way, class NameOf>
void keep_preferred(std::vector<Way>& ways, const std::string& part, const NameOf& name_of) {
    const auto other = [&](const Way& way) { return name_of(way).find(part) == std::string::npos; };
    if (!std::ranges::all_of(ways, other)) std::erase_if(ways, other);
}

/// Backend "own" or "cublaslt". More than 64 rows of activations go through our kernels for narrow weights 64 at a
/// time, the weights read again for each: right, but no match for a kernel made for it.
std::vector<ProductWay> product_ways(const std::string& backend, Format weights, bool narrow_activations, int m, int n,
                                     int k);

/// Ways that take bf16 activations and make them narrow first (narrow.cuh); none where no kernel multiplies such, and
/// none of ours for few rows, which wait for weights.
std::vector<ProductWay> narrowing_ways(const std::string& backend, Format weights, int m, int n, int k);

/// Our variants for a product of experts that have so many rows on the mean, and none more than `most`: those that take
/// it and whose panels are neither far too small nor larger than any expert needs.
std::vector<RoutedVariant> routed_ways(Format weights, bool narrow_activations, RoutedProduct shape, int experts,
                                       int mean, int most);

}  // namespace roofline::cuda::kernels
