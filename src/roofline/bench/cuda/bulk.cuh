// Hopper's bulk copies into shared memory and the barriers that count their bytes. A multiprocessor needs about 190 KB
// on the way to read an H200's memory at full speed: more than registers can take, so the ring is in shared memory.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>

namespace roofline::cuda::kernels {

#if __CUDA_ARCH__ >= 900

__device__ inline std::uint32_t shared_address(const void* pointer) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline void barrier_make(std::uint32_t barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// Makes new barriers known to the copy engine.
__device__ inline void barriers_ready() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void barrier_arrive(std::uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Arrives once `value` is known, which it does not otherwise use.
__device__ inline void barrier_arrive_after(std::uint32_t barrier, std::uint32_t value) {
    asm volatile(
        "{\n"
        ".reg .b32 known;\n"
        "and.b32 known, %1, 0;\n"
        "add.u32 known, known, %0;\n"
        "mbarrier.arrive.shared::cta.b64 _, [known];\n"
        "}" ::"r"(barrier),
        "r"(value)
        : "memory");
}

/// Arrives, and makes the barrier wait for so many bytes more.
__device__ inline void barrier_expect(std::uint32_t barrier, std::uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ inline void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra finished;\n"
        "bra again;\n"
        "finished:\n"
        "}" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

/// Whether the phase of this parity is over.
__device__ inline bool barrier_passed(std::uint32_t barrier, std::uint32_t parity) {
    std::uint32_t passed = 0;
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}"
        : "=r"(passed)
        : "r"(barrier), "r"(parity)
        : "memory");
    return passed != 0;
}

/// True for one lane of a warp that is together. The compiler must know that it is one: then a copy's operands are
/// uniform registers, and a copy an instruction. Under any other condition it is a loop over lanes, of about 80 cycles
/// each.
__device__ inline bool elected() {
    std::uint32_t one = 0;
    asm volatile(
        "{\n"
        ".reg .pred one;\n"
        "elect.sync _|one, 0xFFFFFFFF;\n"
        "selp.u32 %0, 1, 0, one;\n"
        "}"
        : "=r"(one));
    return one != 0;
}

/// Which slot of a ring is next, and what its barrier's parity then is.
struct Turns {
    int slots;
    int index = 0;
    std::uint32_t parity = 0;
    __device__ explicit Turns(int some) : slots(some) {}
    __device__ void advance() {
        if (++index == slots) index = 0, parity ^= 1;
    }
};

/// Copies a multiple of 16 bytes; both ends are multiples of 16.
__device__ inline void bulk_copy(std::uint32_t to, const void* from, std::uint32_t bytes, std::uint32_t barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

/// For `bulk_copy_once`.
__device__ inline std::uint64_t read_once_policy() {
    std::uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

/// The same for what nobody will read again soon: it leaves the L2 before other lines do.
__device__ inline void bulk_copy_once(std::uint32_t to, const void* from, std::uint32_t bytes, std::uint32_t barrier,
                                      std::uint64_t policy) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
            "r"(to),
        "l"(from), "r"(bytes), "r"(barrier), "l"(policy)
        : "memory");
}

/// Brings a multiple of 16 bytes into the L2 alone, and tells nobody when they have come.
__device__ inline void bulk_prefetch(const void* from, std::uint32_t bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}

__device__ inline uint4 shared_read(std::uint32_t from) {
    uint4 value;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "r"(from));
    return value;
}

__device__ inline uint2 shared_read_eight(std::uint32_t from) {
    uint2 value;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(value.x), "=r"(value.y) : "r"(from));
    return value;
}

__device__ inline void shared_write(std::uint32_t to, const uint4& value) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(value.x), "r"(value.y), "r"(value.z),
                 "r"(value.w)
                 : "memory");
}

/// Writes 16 bytes of zeros.
__device__ inline void shared_clear(std::uint32_t to) {
    shared_write(to, {0, 0, 0, 0});
}

/// Zero where the lane does not ask. A branch instead would keep what is around it from overlapping.
__device__ inline uint4 shared_read_if(bool asked, std::uint32_t from) {
    uint4 value{0, 0, 0, 0};
    asm volatile(
        "{\n"
        ".reg .pred asked;\n"
        "setp.ne.u32 asked, %5, 0;\n"
        "@asked ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
        "}"
        : "+r"(value.x), "+r"(value.y), "+r"(value.z), "+r"(value.w)
        : "r"(from), "r"(static_cast<std::uint32_t>(asked)));
    return value;
}

#endif

}  // namespace roofline::cuda::kernels
