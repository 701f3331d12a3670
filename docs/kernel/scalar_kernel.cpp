// The smallest kernel that `roofline bench --plugin` takes: products in fp32 and bf16, one number after another. Build
// it with  g++ -O2 -shared -fPIC -I include docs/kernel/scalar_kernel.cpp -o scalar_kernel.so
#include <cstdint>
#include <cstring>
#include <roofline_kernel.h>

namespace {

float weight(const roofline_shape* shape, const roofline_operands* operands, std::int64_t at) {
    if (std::strcmp(shape->weight_dtype, "fp32") == 0) return static_cast<const float*>(operands->weights)[at];
    const auto bits = static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(operands->weights)[at]) << 16;
    float value = 0.0F;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

int can_run(const roofline_shape* shape) {
    const bool known = std::strcmp(shape->weight_dtype, "fp32") == 0 || std::strcmp(shape->weight_dtype, "bf16") == 0;
    return std::strcmp(shape->kind, "gemm") == 0 && known ? 1 : 0;
}

int run(const roofline_shape* shape, const roofline_operands* operands, void*) {
    for (std::int64_t i = 0; i < shape->m; ++i) {
        for (std::int64_t n = 0; n < shape->n; ++n) {
            float sum = 0.0F;
            for (std::int64_t k = 0; k < shape->k; ++k)
                sum += operands->x[i * shape->k + k] * weight(shape, operands, n * shape->k + k);
            operands->y[i * shape->n + n] = sum;
        }
    }
    return 0;
}

constexpr roofline_kernel kernel = {
    ROOFLINE_KERNEL_VERSION, "scalar", "one number after another", can_run, nullptr, run, nullptr};

}  // namespace

extern "C" const roofline_kernel* roofline_kernel_entry() {
    return &kernel;
}
