// The smallest kernel that `roofline bench --device cuda:0 --plugin` takes: products in bf16, a warp for each row of weights.
// Build it with  nvcc -O3 -arch=native -shared -Xcompiler -fPIC -I include docs/kernel/plain_kernel.cu -o plain_kernel.so
#include <cstdint>
#include <cstring>
#include <cuda_bf16.h>
#include <roofline_cuda_kernel.h>

namespace {

__global__ void product(const __nv_bfloat16* x, const __nv_bfloat16* weights, __nv_bfloat16* y, int n, int k) {
    const int row = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
    if (row >= n) return;
    const __nv_bfloat16* w = weights + static_cast<std::size_t>(row) * static_cast<std::size_t>(k);
    const __nv_bfloat16* activation = x + static_cast<std::size_t>(blockIdx.y) * static_cast<std::size_t>(k);
    float sum = 0.0f;
    for (int i = static_cast<int>(threadIdx.x); i < k; i += 32)
        sum += __bfloat162float(w[i]) * __bfloat162float(activation[i]);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (threadIdx.x == 0)
        y[static_cast<std::size_t>(blockIdx.y) * static_cast<std::size_t>(n) + static_cast<std::size_t>(row)] =
            __float2bfloat16_rn(sum);
}

int can_run(const roofline_cuda_shape* shape) {
    const bool bf16 = std::strcmp(shape->weight_dtype, "bf16") == 0 && std::strcmp(shape->activation_dtype, "bf16") == 0;
    return std::strcmp(shape->kind, "gemm") == 0 && bf16 && shape->m < 65536 ? 1 : 0;
}

int launch(const roofline_cuda_shape* shape, const roofline_cuda_operands* operands, void*, void* stream) {
    constexpr int rows = 8;  // of weights, in a block
    const dim3 blocks(static_cast<unsigned>((shape->n + rows - 1) / rows), static_cast<unsigned>(shape->m));
    product<<<blocks, dim3(32, rows), 0, static_cast<cudaStream_t>(stream)>>>(
        static_cast<const __nv_bfloat16*>(operands->x), static_cast<const __nv_bfloat16*>(operands->weights),
        static_cast<__nv_bfloat16*>(operands->y), static_cast<int>(shape->n), static_cast<int>(shape->k));
    return static_cast<int>(cudaGetLastError());
}

constexpr roofline_cuda_kernel kernel = {
    ROOFLINE_CUDA_KERNEL_VERSION, "plain", "a warp for each row of weights", can_run, nullptr, launch, nullptr};

}  // namespace

extern "C" const roofline_cuda_kernel* roofline_cuda_kernel_entry() {
    return &kernel;
}
