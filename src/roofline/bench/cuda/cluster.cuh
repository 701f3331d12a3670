// Clusters of blocks (Hopper and later): neighbours that run at the same time and read each other's shared memory.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>

namespace roofline::cuda::kernels {

/// Waits for all threads of the cluster's blocks; what they wrote to shared memory before is then seen by all.
__device__ inline void cluster_sync() {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "barrier.cluster.arrive.aligned;\n"
        "barrier.cluster.wait.aligned;" ::
            : "memory");
#endif
}

/// The address of what lies in another block's shared memory where `own` lies in this one's.
__device__ inline std::uint32_t cluster_address(const void* own, int block) {
    std::uint32_t address = static_cast<std::uint32_t>(__cvta_generic_to_shared(own));
#if __CUDA_ARCH__ >= 900
    asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(block));
#endif
    return address;
}

__device__ inline float4 cluster_read4(const float4* own, int block) {
    float4 value{};
#if __CUDA_ARCH__ >= 900
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(cluster_address(own, block)));
#endif
    return value;
}

__device__ inline float2 cluster_read2(const float2* own, int block) {
    float2 value{};
#if __CUDA_ARCH__ >= 900
    asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
                 : "=f"(value.x), "=f"(value.y)
                 : "r"(cluster_address(own, block)));
#endif
    return value;
}

}  // namespace roofline::cuda::kernels
