// Products y[m,n] = x[m,k] W[n,k]^T: with few rows of activations, m up to 64, decoding's, which read every weight once
// and wait for memory; and on Hopper with many (product_panels.cuh). Kernels are compiled in several variants; whoever
// runs a shape times them first and takes the best (ways.cuh), as libraries do with their own.
//
// FLOPs: 2 m n k. Bytes: n k bits/8 for the weights, their scales (formats.hpp), m k activations read and m n bf16
// written.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>
#include <vector>

#include "roofline/bench/cuda/memory.cuh"
#include "roofline/bench/cuda/panels.hpp"

namespace roofline::cuda::kernels {

struct Product {
    const void* weights = nullptr;  // [n, k], rows of k * bits / 8 bytes
    const void* scales = nullptr;   // [rows_of_scales, scales_of_row] (formats.hpp); bf16: none
    const void* x = nullptr;        // [m, k] bf16, or as narrow as weights in fp8, fp8_block and int8
    void* y = nullptr;              // [m, n] bf16
    int m = 0;
    int n = 0;
    int k = 0;
    const float* whole_scale = nullptr;  // nvfp4: of the whole matrix, of experts one for each
    // Of narrow activations (narrow.cuh): one for each row, null where all are 1; beside fp8_block one for each row and
    // 128 of its values, [k / 128][x_scale_stride].
    const float* x_scales = nullptr;
    int x_scale_stride = 0;
};

/// From the scales of 128 values of all rows of activations to those of the next, as libraries want them too.
constexpr int x_scale_stride(int rows) {
    return (rows + 3) / 4 * 4;
}

/// A product of a mixture's experts, whose weights [experts, n, k] and scales lie one after another: each panel of rows
/// with the weights of its expert. m: places, the rows of y. FLOPs: 2 m n k. Bytes: the weights of the experts that
/// have a row, and the rest as above.
struct RoutedProduct : Product {
    const Panel* panels = nullptr;
    const int* panel_count = nullptr;  // null: there are `most_panels`
    const int* rows = nullptr;         // of x, by places; null: places are its rows
    int most_panels = 0;
    std::size_t scale_stride = 0;  // bytes from the scales of an expert to those of the next
    bool settled = false;          // panels were known before the kernel before this one began
    bool gated = false;            // the first half of the rows of weights are gates, y = silu(gate) up is n / 2 wide
    const void* bias = nullptr;    // bf16 [experts, n], added to sums; null: none
};

template <class Work>
struct Variant {
    const char* name;
    int most_rows;  // of activations
    int threads;
    int block_rows;  // of weights
    void (*kernel)(Work);
    int shared_bytes = 0;
    int resident = 0;  // blocks a multiprocessor that stay for the whole product; 0: a block for each tile of rows
    bool (*takes)(const Work&) = nullptr;  // whether it can do a shape; null: any
    bool in_panels = false;                // more rows than `most_rows` go so many at a time within one launch
    bool hopper_alone = false;             // by instructions that later architectures do not have
    int cluster = 1;                       // blocks that share a tile
    int clusters = 0;                      // of them at the same time, where a device was asked
    bool narrow_activations = false;       // as narrow as the weights; else in bf16
};
using ProductVariant = Variant<Product>;
using RoutedVariant = Variant<RoutedProduct>;

/// Whether there are kernels that multiply such weights by activations as narrow as they are: e4m3, or int8.
constexpr bool meets_narrow_activations(Format weights) {
    return weights == Format::fp8 || weights == Format::fp8_block || weights == Format::int8;
}

/// From so many rows on (of an expert, on the mean) they are worth it: fewer wait for weights.
constexpr int least_narrow_activations = 9;

/// The variants for a format of weights, with bf16 or narrow activations; those of Hopper where the kernels were
/// compiled for it.
std::vector<ProductVariant> product_variants(Format weights, bool narrow_activations);
std::vector<RoutedVariant> routed_variants(Format weights, bool narrow_activations);

/// What k must be a multiple of: a quad of lanes reads 64 bytes of a row at a time.
constexpr int product_granule(Format weights) {
    // Those of weights that are scaled before they are multiplied also take half of a chunk.
    return (weights == Format::mxfp4 || weights == Format::nvfp4 ? 32 : 64) * 8 / bits(weights);
}

/// `overlap` lets the launch start while the kernel before it ends: weights are fetched, activations waited for.
void launch(const ProductVariant& variant, const Product& product, bool overlap, cudaStream_t stream);
void launch(const RoutedVariant& variant, const RoutedProduct& product, bool overlap, cudaStream_t stream);

// One file each, so that they compile side by side.
const std::vector<ProductVariant>& bf16_products();
const std::vector<ProductVariant>& fp8_products();
const std::vector<ProductVariant>& fp8_both_products();
const std::vector<ProductVariant>& fp8_block_both_products();
const std::vector<ProductVariant>& int8_both_products();
const std::vector<ProductVariant>& int8_products();
const std::vector<ProductVariant>& int4_products();
const std::vector<ProductVariant>& fp8_block_products();
const std::vector<ProductVariant>& mxfp4_products();
const std::vector<ProductVariant>& nvfp4_products();
const std::vector<RoutedVariant>& bf16_routed();
const std::vector<RoutedVariant>& fp8_routed();
const std::vector<RoutedVariant>& fp8_both_routed();
const std::vector<RoutedVariant>& fp8_block_both_routed();
const std::vector<RoutedVariant>& int8_both_routed();
const std::vector<RoutedVariant>& int8_routed();
const std::vector<RoutedVariant>& int4_routed();
const std::vector<RoutedVariant>& fp8_block_routed();
const std::vector<RoutedVariant>& mxfp4_routed();
const std::vector<RoutedVariant>& nvfp4_routed();

}  // namespace roofline::cuda::kernels
