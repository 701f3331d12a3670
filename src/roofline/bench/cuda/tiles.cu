// The map of a cache for the copy engine, encoded by the driver.
#include "roofline/bench/cuda/memory.cuh"
#include "roofline/bench/cuda/tiles.cuh"

namespace roofline::cuda::kernels {

CUtensorMap tiles_of(const void* cache, std::size_t lines, int tile_lines) {
    // Asked for at run time, so that the plugin loads where there is no driver.
    static const auto encode = [] {
        void* found = nullptr;
        cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
        must(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result),
             "maps of tiles");
#else
        must(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result), "maps of tiles");
#endif
        if (found == nullptr) throw Failure{"the driver knows no maps of tiles"};
        return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
    }();
    CUtensorMap map{};
    const cuuint64_t sizes[2] = {128, lines};
    const cuuint64_t strides[1] = {128};
    const cuuint32_t box[2] = {128, static_cast<cuuint32_t>(tile_lines)};
    const cuuint32_t steps[2] = {1, 1};
    const CUresult status = encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<void*>(cache), sizes, strides,
                                   box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                   CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (status != CUDA_SUCCESS) throw Failure{"map of tiles: error " + std::to_string(static_cast<int>(status))};
    return map;
}

}  // namespace roofline::cuda::kernels
