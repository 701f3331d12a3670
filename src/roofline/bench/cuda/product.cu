// Choosing and launching the kernels of product.cuh.
#include "roofline/bench/cuda/launch.cuh"
#include "roofline/bench/cuda/product.cuh"

namespace roofline::cuda {

const std::vector<ProductVariant>& product_variants(Format weights, bool fp8_activations) {
    switch (weights) {
        case Format::bf16:
            return bf16_products();
        case Format::int8:
            return int8_products();
        case Format::int4:
            return int4_products();
        case Format::fp8:
            break;
    }
    return fp8_activations ? fp8_both_products() : fp8_products();
}

void launch(const ProductVariant& variant, const Product& product, bool overlap, cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>((product.n + variant.block_rows - 1) / variant.block_rows);
    start(variant.kernel, dim3(blocks), variant.threads, 0, overlap, stream, product);
}

}  // namespace roofline::cuda
