// Maps of a cache for the copy engine, encoded by the driver.
#include <array>

#include "roofline/bench/cuda/memory.cuh"
#include "roofline/bench/cuda/tiles.cuh"

namespace roofline::cuda::kernels {

namespace {

/// `sizes` and `box` innermost first, `strides` in bytes from the second on.
template <std::size_t Dimensions>
CUtensorMap map_of(const void* begin, CUtensorMapDataType type, const std::array<cuuint64_t, Dimensions>& sizes,
                   const std::array<cuuint64_t, Dimensions - 1>& strides,
                   const std::array<cuuint32_t, Dimensions>& box) {
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
    std::array<cuuint32_t, Dimensions> steps;
    steps.fill(1);
    const CUresult status = encode(&map, type, Dimensions, const_cast<void*>(begin), sizes.data(), strides.data(),
                                   box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                   CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (status != CUDA_SUCCESS) throw Failure{"map of tiles: error " + std::to_string(static_cast<int>(status))};
    return map;
}

}  // namespace

CUtensorMap tiles_of(const void* cache, std::size_t lines, int tile_lines) {
    return map_of<2>(cache, CU_TENSOR_MAP_DATA_TYPE_UINT8, {128, lines}, {128},
                     {128, static_cast<cuuint32_t>(tile_lines)});
}

CUtensorMap tiles_of(const Entries& entries) {
    const auto width = static_cast<cuuint64_t>(entries.width);
    return map_of<3>(entries.begin, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                     {width, static_cast<cuuint64_t>(entries.context), static_cast<cuuint64_t>(entries.sequences)},
                     {2 * width, 2 * width * static_cast<cuuint64_t>(entries.capacity)},
                     {64, static_cast<cuuint32_t>(entries.together), 1});
}

}  // namespace roofline::cuda::kernels
