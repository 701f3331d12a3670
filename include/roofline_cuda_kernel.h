/* Your own CUDA kernel under `roofline bench --device cuda:0 --plugin FILE.so`.
 *
 * A plugin is a shared library with one function, roofline_cuda_kernel_entry(), that returns a filled-in struct. The harness
 * makes the operands in device memory, holds your answer against fp64, rotates weights and caches past the L2, times you as
 * it times its own kernels and the libraries (many launches in a CUDA graph), and puts you beside them in the table. Plain C;
 * a cudaStream_t travels as void*, so that this header needs none of CUDA's.
 *
 * Products (kind "gemm"):  y[m][n] = sum over k of x[m][k] * w[n][k]; y is bf16; x is bf16, or e4m3 where activation_dtype
 * says "fp8".
 *   weight_dtype "bf16"  no scales
 *                "fp8"   e4m3, times scales[n]  (float)
 *                "int8"  int8, times scales[n]  (float)
 *                "int4"  two to a byte, the low half first; (nibble - 8) * scales[n][k / 128]  (bf16)
 *                "fp8_block"  e4m3, times scales[n / 128][k / 128]  (float; rows of a multiple of four)
 *                "mxfp4" e2m1, two to a byte, the low half first; times 2^(scales[n][k / 32] - 127)  (bytes)
 * Attention (kind "attention"):  y[b][t][h][d] over x[b][t][h][d], the queries (both bf16), and keys, values
 *   [b][kv_head][position][d] in kv_dtype ("bf16" or "fp8": e4m3, scale 1); causal: token t of `tokens` sees the first
 *   context - tokens + t + 1 positions; scores are divided by sqrt(head_dim). Decoding has one token.
 */
#ifndef ROOFLINE_CUDA_KERNEL_H
#define ROOFLINE_CUDA_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROOFLINE_CUDA_KERNEL_VERSION 1

struct roofline_cuda_shape {
    const char* kind; /* "gemm", "attention" */
    int64_t m, n, k;
    const char* weight_dtype;
    const char* activation_dtype;
    int64_t batch, tokens, context, query_heads, kv_heads, head_dim;
    const char* kv_dtype;
};

/* Pointers into device memory. */
struct roofline_cuda_operands {
    const void* x;
    const void* weights;
    const void* scales;
    const void* keys;
    const void* values;
    void* y;
};

struct roofline_cuda_kernel {
    int version;             /* ROOFLINE_CUDA_KERNEL_VERSION */
    const char* name;        /* what the table calls it: letters, digits, '-' and '_' */
    const char* description; /* one line for the report; may be null */
    /* Not zero: launch() can do this shape. */
    int (*can_run)(const struct roofline_cuda_shape* shape);
    /* Once for every copy of the weights or the cache, before anything is timed: pack what you like, take what memory you
     * need, and return a pointer that launch() gets back. May be null. */
    void* (*prepare)(const struct roofline_cuda_shape* shape, const struct roofline_cuda_operands* operands);
    /* Puts the work on the stream and returns at once: the stream may be captured into a graph, so no waiting, no memory
     * taken or given back. Zero: done. Anything else: it failed, and no time is reported. */
    int (*launch)(const struct roofline_cuda_shape* shape, const struct roofline_cuda_operands* operands, void* prepared,
                  void* stream);
    void (*release)(void* prepared); /* may be null */
};

const struct roofline_cuda_kernel* roofline_cuda_kernel_entry(void);

#ifdef __cplusplus
}
#endif

#endif
