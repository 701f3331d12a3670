/* Your own kernel under `roofline bench --plugin FILE.so`.
 *
 * A plugin is a shared library with one function, roofline_kernel_entry(), that returns a filled-in struct. The harness makes
 * the operands, holds your answer against fp64, rotates weights and caches past the caches of the machine, times you in
 * the same way as the libraries, and puts you beside them in the table. Plain C; operands lie in host memory.
 *
 * Products (kind "gemm"):  y[m][n] = sum over k of x[m][k] * w[n][k]; y is fp32, x is fp32 whatever the weights are.
 *   weight_dtype "fp32"  w is float
 *                "bf16"  w is the upper 16 bits of a float
 *                "int8"  w is int8, times scales[n]  (float)
 *                "int4"  groups of 128 along k in 64 bytes: byte i of each run of 16 holds weight i in its low half and
 *                        weight i + 16 in its high half; (q - zero) * scale with one bf16 scale a group ([n][k / 128])
 *                        and one 4-bit zero point a group, two to a byte, the low half first
 *                "mxfp4" groups of 32 along k in 16 bytes, in which e2m1 lie as those of int4 do; times
 *                        2^(scales[n][k / 32] - 127)  (bytes)
 *                "fp8"   w is e4m3, times scales[n]  (float)
 *                "fp8_block"  w is e4m3, times scales[n / 128][k / 128]  (float; the last ones may be of less)
 * Attention (kind "attention"):  out[b][t][h][d] over q[b][t][h][d] (both fp32) and keys, values
 *   [b][kv_head][position][d] in kv_dtype ("bf16" or "fp32"); causal: token t of `tokens` sees the first
 *   context - tokens + t + 1 positions; scores are divided by sqrt(head_dim).
 */
#ifndef ROOFLINE_KERNEL_H
#define ROOFLINE_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROOFLINE_KERNEL_VERSION 1

struct roofline_shape {
    const char* kind; /* "gemm", "attention" */
    const char* name; /* layers.ffn.gate_up */
    int64_t m, n, k;
    const char* weight_dtype;
    int64_t batch, tokens, context, query_heads, kv_heads, head_dim;
    const char* kv_dtype;
    int threads; /* that you may use */
};

struct roofline_operands {
    const float* x;       /* input of a product; queries of attention */
    const void* weights;  /* or null */
    const void* scales;   /* int8, fp8, fp8_block: float; int4: bf16; mxfp4: bytes */
    const uint8_t* zeros; /* int4 */
    const void* keys;
    const void* values;
    float* y; /* output */
};

struct roofline_kernel {
    int version;             /* ROOFLINE_KERNEL_VERSION */
    const char* name;        /* what the table calls it: letters, digits, '-' and '_' */
    const char* description; /* one line for the report; may be null */
    /* Not zero: run() can do this shape. */
    int (*can_run)(const struct roofline_shape* shape);
    /* Once for every shape and every copy of the weights, before anything is timed: pack what you like and return a
     * pointer that run() gets back. May be null. */
    void* (*prepare)(const struct roofline_shape* shape, const struct roofline_operands* operands);
    /* Zero: done. Anything else: it failed, and no time is reported. */
    int (*run)(const struct roofline_shape* shape, const struct roofline_operands* operands, void* prepared);
    void (*release)(void* prepared); /* may be null */
};

const struct roofline_kernel* roofline_kernel_entry(void);

#ifdef __cplusplus
}
#endif

#endif
