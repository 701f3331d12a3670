/* What the program and roofline_cuda.so know of each other: one symbol, one struct, JSON in and JSON out. Plain C, so
 * that neither side needs the other's compiler or libraries.
 *
 *   requests                                                   answers
 *   { "do": "describe" }                                       { "devices": [ DEVICE ], "driver", "runtime" }
 *   { "do": "measure", "device": 0, "quick": false,            { "device": DEVICE, "figures": [ FIGURE ],
 *     "only": [ "memory", "matrix.bf16" ]? }                          "refused": [ { "name", "why" } ],
 *                                                                "notes": [ TEXT ], "busy": false, "seconds" }
 *   { "do": "bench" | "step", ... }                            as src/roofline/bench/cuda says
 *   anything that cannot be answered                           { "problem": TEXT, "unavailable"?: true }
 *
 *   DEVICE  { "index", "name", "capability": "9.0", "multiprocessors", "memory_bytes", "free_bytes", "l2_bytes",
 *             "shared_bytes", "clock_hz", "memory_clock_hz", "driver", "runtime", "pci",
 *             "power_limit_w"?, "pcie"?: { "generation", "width" }, "busy"?: somebody used it just before }
 *   FIGURE  { "name": "memory.read", "value", "unit": "B/s" | "FLOP/s" | "OP/s" | "B" | "s", "low", "high", "samples",
 *             "how": TEXT, "flops", "bytes", "error", "tolerance", "clock_hz"?, "watts"?,
 *             "variants"?: { TEXT: value }, "points"?: [ [ x, y ] ] }
 *             flops and bytes: of one repetition, as stated beside the loop; low and high: the first and last tenth
 */
#ifndef ROOFLINE_MEASURE_CUDA_ABI_H
#define ROOFLINE_MEASURE_CUDA_ABI_H

#ifdef __cplusplus
extern "C" {
#endif

enum { roofline_cuda_version = 2 }; /* 2: routed experts, which an older one would run as a dense model */

struct roofline_cuda_backend {
    int version; /* first, and checked before anything else is touched */

    /* The answer belongs to the backend and lives until the next call. Never null. `progress` may be null; it is called
     * on the caller's thread with a short line of text. */
    const char* (*call)(const char* request_json, void (*progress)(void*, const char*), void* context);
};

/* The one exported symbol. */
const struct roofline_cuda_backend* roofline_cuda(void);

#ifdef __cplusplus
}
#endif

#endif
