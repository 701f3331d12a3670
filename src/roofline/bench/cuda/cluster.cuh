// Clusters of blocks (Hopper and later): neighbours that run at the same time and read each other's shared memory.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>

namespace roofline::cuda::kernels {

/// Tells the cluster's blocks that this thread has come here, with what it wrote to shared memory before, theirs too.
__device__ inline void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

/// Waits until all threads of the cluster have arrived, and sees what they wrote.
__device__ inline void cluster_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
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

__device__ inline void cluster_write(float4* own, int block, const float4& value) {
#if __CUDA_ARCH__ >= 900
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(cluster_address(own, block)), "f"(value.x),
                 "f"(value.y), "f"(value.z), "f"(value.w)
                 : "memory");
#endif
}

__device__ inline void cluster_write(float2* own, int block, const float2& value) {
#if __CUDA_ARCH__ >= 900
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(cluster_address(own, block)), "f"(value.x),
                 "f"(value.y)
                 : "memory");
#endif
}

__device__ inline float4 cluster_read(const float4* own, int block) {
    float4 value{};
#if __CUDA_ARCH__ >= 900
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(cluster_address(own, block))
                 : "memory");
#endif
    return value;
}

}  // namespace roofline::cuda::kernels
