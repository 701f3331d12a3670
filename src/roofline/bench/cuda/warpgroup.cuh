// Tensor instructions of Hopper's warp groups (four warps), whose operands lie in shared memory: lines of 128 bytes (64
// values of bf16, 128 of e4m3) whose 16-byte pieces are exchanged, piece p of line l at p ^ l % 8, so that no two meet
// in a bank.
#pragma once

#include <cstdint>

namespace roofline::cuda::kernels {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// Which warp group of the block a thread belongs to. That all of a warp have the same, the compiler has to be told:
/// then operands are found in uniform registers, where instructions of a warp group want them, and not moved there for
/// each.
__device__ inline int warpgroup_index() {
    return __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0);
}

/// All threads of this warp group have come here, with what they wrote to shared memory.
__device__ inline void warpgroup_meets(int group) {
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

/// An operand of a multiplication: lines one after another from a multiple of 1024 bytes on. 16 values further on
/// in every line: + 2.
__device__ inline std::uint64_t operand_at(std::uint32_t address) {
    constexpr std::uint64_t exchanged = std::uint64_t{1} << 62;
    constexpr std::uint64_t eight_lines = std::uint64_t{1024 >> 4} << 32;
    return exchanged | eight_lines | std::uint64_t{1} << 16 | (address & 0x3FFFFu) >> 4;
}

/// An operand by columns: a line is of 64 rows, lines of the next 64 rows lie `apart` bytes further on.
__device__ inline std::uint64_t columns_at(std::uint32_t address, std::uint32_t apart) {
    constexpr std::uint64_t lower = std::uint64_t{0x3FFF} << 16;
    return (operand_at(address) & ~lower) | std::uint64_t{apart >> 4} << 16;
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

// What an instruction's sums are, as operands, and as the constraints of an asm statement.
#define ROOFLINE_SUMS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define ROOFLINE_SUMS_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define ROOFLINE_SUMS_32 \
    ROOFLINE_SUMS_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define ROOFLINE_SUMS_64                                                                 \
    ROOFLINE_SUMS_32                                                                     \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define ROOFLINE_FOUR(sums, i) "+f"(sums[i]), "+f"(sums[(i) + 1]), "+f"(sums[(i) + 2]), "+f"(sums[(i) + 3])
#define ROOFLINE_SIXTEEN(sums, i) \
    ROOFLINE_FOUR(sums, i), ROOFLINE_FOUR(sums, (i) + 4), ROOFLINE_FOUR(sums, (i) + 8), ROOFLINE_FOUR(sums, (i) + 12)

// The multiplications: sums += a b^T for 64 lines of a and as many of b as the name says, twice as many as a lane has
// sums; 32 bytes of each line; or = where `more` is false. A lane's sums are of lines 16 warp + lane / 4 (and 8 more
// for i % 4 >= 2) of a and 8 (i / 4) + 2 (lane % 4) + i % 2 of b. Both operands from shared memory; or a from
// registers, as mma m16n8k16 (of bf16; of e4m3 m16n8k32) has it for each warp's 16 lines.

__device__ inline void warpgroup_bf16(float (&sums)[8], std::uint64_t a, std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %10, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {" ROOFLINE_SUMS_8
        "}, %8, %9, more, 1, 1, 0, 0;\n"
        "}"
        : ROOFLINE_FOUR(sums, 0), ROOFLINE_FOUR(sums, 4)
        : "l"(a), "l"(b), "r"(static_cast<int>(more)));
}
__device__ inline void warpgroup_bf16(float (&sums)[16], std::uint64_t a, std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %18, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {" ROOFLINE_SUMS_16
        "}, %16, %17, more, 1, 1, 0, 0;\n"
        "}"
        : ROOFLINE_SIXTEEN(sums, 0)
        : "l"(a), "l"(b), "r"(static_cast<int>(more)));
}
__device__ inline void warpgroup_bf16(float (&sums)[32], std::uint64_t a, std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" ROOFLINE_SUMS_32
        "}, %32, %33, more, 1, 1, 0, 0;\n"
        "}"
        : ROOFLINE_SIXTEEN(sums, 0), ROOFLINE_SIXTEEN(sums, 16)
        : "l"(a), "l"(b), "r"(static_cast<int>(more)));
}
__device__ inline void warpgroup_bf16(float (&sums)[64], std::uint64_t a, std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" ROOFLINE_SUMS_64
        "}, %64, %65, more, 1, 1, 0, 0;\n"
        "}"
        : ROOFLINE_SIXTEEN(sums, 0), ROOFLINE_SIXTEEN(sums, 16), ROOFLINE_SIXTEEN(sums, 32), ROOFLINE_SIXTEEN(sums, 48)
        : "l"(a), "l"(b), "r"(static_cast<int>(more)));
}
__device__ inline void warpgroup_bf16(float (&sums)[16], const std::uint32_t (&a)[4], std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %21, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {" ROOFLINE_SUMS_16
        "}, {%16, %17, %18, %19}, %20, more, 1, 1, 0;\n"
        "}"
        : ROOFLINE_SIXTEEN(sums, 0)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(more)));
}
__device__ inline void warpgroup_bf16(float (&sums)[32], const std::uint32_t (&a)[4], std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" ROOFLINE_SUMS_32
        "}, {%32, %33, %34, %35}, %36, more, 1, 1, 0;\n"
        "}"
        : ROOFLINE_SIXTEEN(sums, 0), ROOFLINE_SIXTEEN(sums, 16)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(more)));
}
__device__ inline void warpgroup_bf16(float (&sums)[64], const std::uint32_t (&a)[4], std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" ROOFLINE_SUMS_64
        "}, {%64, %65, %66, %67}, %68, more, 1, 1, 0;\n"
        "}"
        : ROOFLINE_SIXTEEN(sums, 0), ROOFLINE_SIXTEEN(sums, 16), ROOFLINE_SIXTEEN(sums, 32), ROOFLINE_SIXTEEN(sums, 48)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(more)));
}
__device__ inline void warpgroup_e4m3(float (&sums)[16], std::uint64_t a, std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %18, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3 {" ROOFLINE_SUMS_16
        "}, %16, %17, more, 1, 1;\n"
        "}"
        : ROOFLINE_SIXTEEN(sums, 0)
        : "l"(a), "l"(b), "r"(static_cast<int>(more)));
}
__device__ inline void warpgroup_e4m3(float (&sums)[32], std::uint64_t a, std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 {" ROOFLINE_SUMS_32
        "}, %32, %33, more, 1, 1;\n"
        "}"
        : ROOFLINE_SIXTEEN(sums, 0), ROOFLINE_SIXTEEN(sums, 16)
        : "l"(a), "l"(b), "r"(static_cast<int>(more)));
}
__device__ inline void warpgroup_e4m3(float (&sums)[64], std::uint64_t a, std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" ROOFLINE_SUMS_64
        "}, %64, %65, more, 1, 1;\n"
        "}"
        : ROOFLINE_SIXTEEN(sums, 0), ROOFLINE_SIXTEEN(sums, 16), ROOFLINE_SIXTEEN(sums, 32), ROOFLINE_SIXTEEN(sums, 48)
        : "l"(a), "l"(b), "r"(static_cast<int>(more)));
}

// The same with `a` by columns, where it lies in shared memory, or else `b`: a line holds 64 rows of one column, 16
// lines are multiplied. 16 columns further on: 16 lines, + 128.
__device__ inline void warpgroup_bf16_turned(float (&sums)[8], std::uint64_t a, std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %10, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {" ROOFLINE_SUMS_8
        "}, %8, %9, more, 1, 1, 1, 0;\n"
        "}"
        : ROOFLINE_FOUR(sums, 0), ROOFLINE_FOUR(sums, 4)
        : "l"(a), "l"(b), "r"(static_cast<int>(more)));
}
__device__ inline void warpgroup_bf16_turned(float (&sums)[16], std::uint64_t a, std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %18, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {" ROOFLINE_SUMS_16
        "}, %16, %17, more, 1, 1, 1, 0;\n"
        "}"
        : ROOFLINE_SIXTEEN(sums, 0)
        : "l"(a), "l"(b), "r"(static_cast<int>(more)));
}

__device__ inline void warpgroup_bf16_turned(float (&sums)[32], const std::uint32_t (&a)[4], std::uint64_t b,
                                             bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" ROOFLINE_SUMS_32
        "}, {%32, %33, %34, %35}, %36, more, 1, 1, 1;\n"
        "}"
        : ROOFLINE_SIXTEEN(sums, 0), ROOFLINE_SIXTEEN(sums, 16)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(more)));
}
__device__ inline void warpgroup_bf16_turned(float (&sums)[64], const std::uint32_t (&a)[4], std::uint64_t b,
                                             bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" ROOFLINE_SUMS_64
        "}, {%64, %65, %66, %67}, %68, more, 1, 1, 1;\n"
        "}"
        : ROOFLINE_SIXTEEN(sums, 0), ROOFLINE_SIXTEEN(sums, 16), ROOFLINE_SIXTEEN(sums, 32), ROOFLINE_SIXTEEN(sums, 48)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(more)));
}

#define ROOFLINE_WHOLE_FOUR(sums, i) "+r"(sums[i]), "+r"(sums[(i) + 1]), "+r"(sums[(i) + 2]), "+r"(sums[(i) + 3])
#define ROOFLINE_WHOLE_SIXTEEN(sums, i)                                                                   \
    ROOFLINE_WHOLE_FOUR(sums, i), ROOFLINE_WHOLE_FOUR(sums, (i) + 4), ROOFLINE_WHOLE_FOUR(sums, (i) + 8), \
        ROOFLINE_WHOLE_FOUR(sums, (i) + 12)

// Of whole numbers: sums are exact.
__device__ inline void warpgroup_int8(int (&sums)[16], std::uint64_t a, std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %18, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8 {" ROOFLINE_SUMS_16
        "}, %16, %17, more;\n"
        "}"
        : ROOFLINE_WHOLE_SIXTEEN(sums, 0)
        : "l"(a), "l"(b), "r"(static_cast<int>(more)));
}
__device__ inline void warpgroup_int8(int (&sums)[32], std::uint64_t a, std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {" ROOFLINE_SUMS_32
        "}, %32, %33, more;\n"
        "}"
        : ROOFLINE_WHOLE_SIXTEEN(sums, 0), ROOFLINE_WHOLE_SIXTEEN(sums, 16)
        : "l"(a), "l"(b), "r"(static_cast<int>(more)));
}
__device__ inline void warpgroup_int8(int (&sums)[64], std::uint64_t a, std::uint64_t b, bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {" ROOFLINE_SUMS_64
        "}, %64, %65, more;\n"
        "}"
        : ROOFLINE_WHOLE_SIXTEEN(sums, 0), ROOFLINE_WHOLE_SIXTEEN(sums, 16), ROOFLINE_WHOLE_SIXTEEN(sums, 32),
          ROOFLINE_WHOLE_SIXTEEN(sums, 48)
        : "l"(a), "l"(b), "r"(static_cast<int>(more)));
}

#undef ROOFLINE_WHOLE_SIXTEEN
#undef ROOFLINE_WHOLE_FOUR
#undef ROOFLINE_SIXTEEN
#undef ROOFLINE_FOUR
#undef ROOFLINE_SUMS_64
#undef ROOFLINE_SUMS_32
#undef ROOFLINE_SUMS_16
#undef ROOFLINE_SUMS_8

/// After the last `warpgroup_wait`: sums are not read before it. (An asm statement's results are there when it is, for
/// all that a compiler knows.)
template <int Sums>
__device__ void sums_settled(float (&sums)[Sums]) {
#pragma unroll
    for (int i = 0; i < Sums; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
template <int Sums>
__device__ void sums_settled(int (&sums)[Sums]) {
#pragma unroll
    for (int i = 0; i < Sums; ++i) asm volatile("" : "+r"(sums[i])::"memory");
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

/// The same of a float.
__device__ inline void copy_four(std::uint32_t to, const float* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}

/// The thread arrives when all pieces that it asked for have come.
__device__ inline void arrive_with_pieces(std::uint32_t barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

#endif

}  // namespace roofline::cuda::kernels
