// Choosing and launching the kernels of product.cuh.
#include <algorithm>
#include <string>

#include "roofline/bench/cuda/launch.cuh"
#include "roofline/bench/cuda/product.cuh"

namespace roofline::cuda::kernels {

namespace {

/// The tables of a format: of plain products, and of those of routed experts.
struct Tables {
    const std::vector<ProductVariant>& (*products)();
    const std::vector<RoutedVariant>& (*routed)();
};

Tables tables_of(Format weights, bool narrow_activations) {
    if (narrow_activations && weights == Format::fp8) return {fp8_both_products, fp8_both_routed};
    if (narrow_activations && weights == Format::fp8_block) return {fp8_block_both_products, fp8_block_both_routed};
    if (narrow_activations && weights == Format::int8) return {int8_both_products, int8_both_routed};
    if (narrow_activations) {
        throw Failure{"no product of ours has activations as narrow as " + std::string(bench::name(weights)) +
                      " weights"};
    }
    switch (weights) {
        case Format::bf16:
            return {bf16_products, bf16_routed};
        case Format::int8:
            return {int8_products, int8_routed};
        case Format::int4:
            return {int4_products, int4_routed};
        case Format::fp8:
            return {fp8_products, fp8_routed};
        case Format::fp8_block:
            return {fp8_block_products, fp8_block_routed};
        case Format::mxfp4:
            return {mxfp4_products, mxfp4_routed};
        case Format::nvfp4:
            return {nvfp4_products, nvfp4_routed};
        default:
            throw Failure{"no product of ours reads " + std::string(bench::name(weights)) + " weights"};
    }
}

template <class Work>
std::vector<Variant<Work>> usable(const std::vector<Variant<Work>>& all) {
    std::vector<Variant<Work>> some;
    for (const auto& variant : all) {
        if (variant.resident > 0) {
            // Compiled for an older architecture such a kernel is empty.
            cudaFuncAttributes attributes{};
            must(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(variant.kernel)),
                 "kernel attributes");
            if (attributes.ptxVersion < 90 || (variant.hopper_alone && attributes.binaryVersion != 90)) continue;
            must(cudaFuncSetAttribute(reinterpret_cast<const void*>(variant.kernel),
                                      cudaFuncAttributeMaxDynamicSharedMemorySize, variant.shared_bytes),
                 "shared memory of a product");
        }
        some.push_back(variant);
        if (variant.cluster > 1) {
            some.back().clusters =
                std::max(1, clusters_at_once(variant.kernel, variant.cluster, variant.threads, variant.shared_bytes));
        }
    }
    return some;
}

template <class Work>
void launch_tiles(const Variant<Work>& variant, const Work& work, int panels, bool overlap, cudaStream_t stream) {
    int blocks = (work.n + variant.block_rows - 1) / variant.block_rows * panels;
    if (variant.cluster > 1) {
        blocks = std::min(blocks, variant.clusters) * variant.cluster;
    } else if (variant.resident > 0) {
        blocks = std::min(blocks, variant.resident * multiprocessors());
    }
    start_clusters(variant.kernel, dim3(static_cast<unsigned>(blocks)), variant.cluster, variant.threads,
                   static_cast<std::size_t>(variant.shared_bytes), overlap, stream, work);
}

}  // namespace

std::vector<ProductVariant> product_variants(Format weights, bool narrow_activations) {
    return usable(tables_of(weights, narrow_activations).products());
}

std::vector<RoutedVariant> routed_variants(Format weights, bool narrow_activations) {
    return usable(tables_of(weights, narrow_activations).routed());
}

void launch(const ProductVariant& variant, const Product& product, bool overlap, cudaStream_t stream) {
    const int panels = variant.in_panels ? (product.m + variant.most_rows - 1) / variant.most_rows : 1;
    launch_tiles(variant, product, panels, overlap, stream);
}

void launch(const RoutedVariant& variant, const RoutedProduct& product, bool overlap, cudaStream_t stream) {
    launch_tiles(variant, product, product.most_panels, overlap, stream);
}

}  // namespace roofline::cuda::kernels
