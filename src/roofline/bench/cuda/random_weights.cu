// Making the weights of random_weights.cuh.
#include <algorithm>
#include <cmath>

#include "roofline/bench/cuda/random_weights.cuh"

namespace roofline::cuda::kernels {

namespace {

/// The standard deviation of a format's values as they are made here, before their scales.
float deviation(Format format) {
    switch (format) {
        case Format::int8:
            return 73.9f;  // evenly over all bits
        case Format::int4:
            return 4.61f;
        case Format::mxfp4:
        case Format::nvfp4:
            return 2.93f;
        default:
            return 0.577f;  // evenly in +-1
    }
}

}  // namespace

RandomWeights::RandomWeights(Format format, int n, int k, int matrices, std::uint32_t seed, cudaStream_t stream,
                             bool unit_scales)
    : format_(format), n_(n), k_(k), matrices_(matrices) {
    const std::size_t values = product_of({n, k});
    const auto count = index(matrices);
    const float size = 1.0f / (std::sqrt(static_cast<float>(k)) * deviation(format));  // of a scale
    weight_stride_ = values * index(bits(format)) / 8;
    weights_ = Memory(weight_stride_ * count);
    fill_random(weights_.at(), values * count, format, format == Format::bf16 ? size : 1.0f, seed, stream);
    if (format == Format::bf16) return;

    scale_stride_ = rounded(scale_bytes(format, index(n), index(k)));
    scales_ = Memory(scale_stride_ * count);
    switch (format) {
        case Format::int4:
            fill_random(scales_.at(), scales_.bytes() / 2, Format::bf16, size / 0.577f, seed + 1, stream);
            break;
        case Format::mxfp4: {
            const int power = 127 + static_cast<int>(std::lround(std::log2(size)));
            fill_range(scales_.at(), scales_.bytes(), power - 1, power + 1, seed + 1, stream);
            break;
        }
        case Format::nvfp4:
            // From 0.5 to 3.75, 1.9 by the root of their mean square.
            fill_range(scales_.at(), scales_.bytes(), 0x30, 0x47, seed + 1, stream);
            whole_ = Memory(count * sizeof(float));
            fill_random(whole_.at<float>(), count, 0.8f * size / 1.9f, 1.2f * size / 1.9f, seed + 2, stream);
            break;
        default: {
            const float low = unit_scales ? 1.0f : 0.5f * size;
            const float high = unit_scales ? 1.0f : 1.5f * size;
            fill_random(scales_.at<float>(), scales_.bytes() / sizeof(float), low, high, seed + 1, stream);
        }
    }
}

std::vector<double> RandomWeights::rows(int matrix, int first, int count) const {
    if (count == 0) return {};
    const std::size_t k = index(k_);
    const std::size_t row_bytes = k * index(bits(format_)) / 8;
    const auto raw =
        copied(weights_.at(index(matrix) * weight_stride_ + index(first) * row_bytes), index(count) * row_bytes);
    const ScaleShape shape = scale_shape(format_);
    const std::size_t scale_row = scales_of_row(format_, k) * index(shape.bytes);
    const int first_scales = first / shape.rows;  // the row of them
    std::vector<std::uint8_t> scales;
    if (shape.bytes > 0) {
        const int end = (first + count - 1) / shape.rows + 1;
        scales = copied(scales_.at(index(matrix) * scale_stride_ + index(first_scales) * scale_row),
                        index(end - first_scales) * scale_row);
    }
    const double whole = whole_.bytes() > 0 ? static_cast<double>(copied(whole_.at<float>() + matrix, 1)[0]) : 1.0;
    std::vector<double> numbers;
    numbers.reserve(index(count) * k);
    for (int row = first; row < first + count; ++row) {
        const std::uint8_t* values = raw.data() + index(row - first) * row_bytes;
        const std::uint8_t* of_row = scales.data() + index(row / shape.rows - first_scales) * scale_row;
        for (std::size_t i = 0; i < k; ++i) {
            numbers.push_back(whole * decode_scale(of_row, i, format_) * decode(values, i, format_));
        }
    }
    return numbers;
}

}  // namespace roofline::cuda::kernels
