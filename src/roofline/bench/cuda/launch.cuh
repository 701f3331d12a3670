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

inline int multiprocessors() {
    int device = 0;
    int count = 1;
    must(cudaGetDevice(&device), "device");
    must(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "device attribute");
    return count;
}

/// Clusters of so many blocks that run at the same time: there may be multiprocessors that none fits on.
template <class... Arguments>
int clusters_at_once(void (*kernel)(Arguments...), int blocks, int threads, int shared_bytes) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks), 65535);
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = 0;
    must(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config), "occupancy of clusters");
    return clusters;
}

/// `cluster`: neighbouring blocks, in x, that run at the same time.
template <class... Arguments>
void start_clusters(void (*kernel)(Arguments...), dim3 blocks, int cluster, int threads, std::size_t shared_bytes,
                    bool overlap, cudaStream_t stream, Arguments... arguments) {
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = attributes;
    if (overlap && overlap_possible()) {
        attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster > 1) {
        attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
        attributes[config.numAttrs++].val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    }
    must(cudaLaunchKernelEx(&config, kernel, arguments...), "kernel launch");
}

template <class... Arguments>
void start(void (*kernel)(Arguments...), dim3 blocks, int threads, std::size_t shared_bytes, bool overlap,
           cudaStream_t stream, Arguments... arguments) {
    start_clusters(kernel, blocks, 1, threads, shared_bytes, overlap, stream, arguments...);
}

}  // namespace roofline::cuda::kernels
