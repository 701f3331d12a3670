// The bulk copy engine of Hopper and later: whole tiles between global and shared memory that no thread carries, each
// announced by a barrier in shared memory. Only for code compiled for 9.0 or later.
#pragma once

#include <cstdint>

namespace roofline::probe {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define ROOFLINE_HAS_BULK 1

__device__ inline std::uint32_t shared_address(const void* pointer) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline void barrier_init(std::uint64_t* barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}

/// Initialised barriers must be seen by the copy engine too.
__device__ inline void barrier_init_done() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void bulk_load(void* shared, const void* global, std::uint32_t bytes, std::uint64_t* barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(shared)),
                 "l"(global), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

__device__ inline void barrier_wait(std::uint64_t* barrier, std::uint32_t phase) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}\n" ::"r"(shared_address(barrier)),
        "r"(phase)
        : "memory");
}

__device__ inline void bulk_store(void* global, const void* shared, std::uint32_t bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
                 "r"(shared_address(shared)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Until all but the newest `Behind` stores have read their shared memory.
template <int Behind>
__device__ void bulk_stores_have_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Behind) : "memory");
}

__device__ inline void bulk_stores_done() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
#endif

}  // namespace roofline::probe
