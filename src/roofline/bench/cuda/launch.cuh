// Launching a kernel so that it may begin while the one before it on the stream ends (kernels here wait themselves,
// fragments.cuh wait_for_previous, before they read what others wrote).
#pragma once

#include <cuda_runtime.h>

#include "roofline/bench/cuda/memory.cuh"

namespace roofline::cuda {

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
    config.numAttrs = overlap ? 1 : 0;
    must(cudaLaunchKernelEx(&config, kernel, arguments...), "kernel launch");
}

}  // namespace roofline::cuda
