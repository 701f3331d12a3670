// Launching a kernel so that it may begin while the one before it on the stream ends (kernels here wait themselves,
// fragments.cuh wait_for_previous, before they read what others wrote).
#pragma once

#include <cuda_runtime.h>

#include "roofline/bench/cuda/memory.cuh"

namespace roofline::cuda::kernels {

/// Whether launches can overlap on this device (Hopper and later).
inline bool overlap_possible() {
    static const bool possible = [] {
        int device = 0;
        int major = 0;
        must(cudaGetDevice(&device), "device");
        must(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "device attribute");
        return major >= 9;
    }();
    return possible;
}

template <class... Arguments>
void start(void (*kernel)(Arguments...), dim3 blocks, int threads, std::size_t shared_bytes, bool overlap,
           cudaStream_t stream, Arguments... arguments) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = overlap && overlap_possible() ? 1 : 0;
    must(cudaLaunchKernelEx(&config, kernel, arguments...), "kernel launch");
}

}  // namespace roofline::cuda::kernels
