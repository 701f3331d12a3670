// Tensor instructions of Hopper's warp groups (four warps), whose operands lie in shared memory: bf16, lines of 64
// values (128 bytes) whose 16-byte pieces are exchanged, piece p of line l at p ^ l % 8, so that no two meet in a bank.
#pragma once

#include <cstdint>

namespace roofline::cuda::kernels {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// An operand for `warpgroup_multiply`: lines one after another from a multiple of 1024 bytes on. 16 values further on
/// in every line: + 2.
__device__ inline std::uint64_t operand_at(std::uint32_t address) {
    constexpr std::uint64_t exchanged = std::uint64_t{1} << 62;
    constexpr std::uint64_t eight_lines = std::uint64_t{1024 >> 4} << 32;
    return exchanged | eight_lines | std::uint64_t{1} << 16 | (address & 0x3FFFFu) >> 4;
}

/// What was written to shared memory by instructions is seen by those that read it on their own.
__device__ inline void shared_settled() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void warpgroup_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void warpgroup_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// All but the last `Pending` that were committed are done.
template <int Pending>
__device__ void warpgroup_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

/// sums += a b^T for 64 lines of a and 128 of b, 16 values of each; or = where `more` is false. A lane's sums are of
/// lines 16 warp + lane / 4 (and 8 more for i % 4 >= 2) of a and 8 (i / 4) + 2 (lane % 4) + i % 2 of b.
__device__ inline void warpgroup_multiply(float (&sums)[64], std::uint64_t a, std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, more, 1, 1, 0, 0;\n"
        "}"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]), "+f"(sums[6]),
          "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]), "+f"(sums[12]), "+f"(sums[13]),
          "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]), "+f"(sums[17]), "+f"(sums[18]), "+f"(sums[19]),
          "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]), "+f"(sums[24]), "+f"(sums[25]),
          "+f"(sums[26]), "+f"(sums[27]), "+f"(sums[28]), "+f"(sums[29]), "+f"(sums[30]), "+f"(sums[31]),
          "+f"(sums[32]), "+f"(sums[33]), "+f"(sums[34]), "+f"(sums[35]), "+f"(sums[36]), "+f"(sums[37]),
          "+f"(sums[38]), "+f"(sums[39]), "+f"(sums[40]), "+f"(sums[41]), "+f"(sums[42]), "+f"(sums[43]),
          "+f"(sums[44]), "+f"(sums[45]), "+f"(sums[46]), "+f"(sums[47]), "+f"(sums[48]), "+f"(sums[49]),
          "+f"(sums[50]), "+f"(sums[51]), "+f"(sums[52]), "+f"(sums[53]), "+f"(sums[54]), "+f"(sums[55]),
          "+f"(sums[56]), "+f"(sums[57]), "+f"(sums[58]), "+f"(sums[59]), "+f"(sums[60]), "+f"(sums[61]),
          "+f"(sums[62]), "+f"(sums[63])
        : "l"(a), "l"(b), "r"(static_cast<int>(more)));
}

/// How many registers a thread of this warp group has from now on.
template <int Registers>
__device__ void fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ void more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// Copies 16 bytes into shared memory, or writes zeros there.
__device__ inline void copy_piece(std::uint32_t to, const void* from, bool there) {
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}

/// The thread arrives when all pieces that it asked for have come.
__device__ inline void arrive_with_pieces(std::uint32_t barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

#endif

}  // namespace roofline::cuda::kernels
