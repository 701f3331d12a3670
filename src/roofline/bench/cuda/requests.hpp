// What the CUDA plugin asks of the kernels: operators one by one (`bench`), and whole steps of a model (`step`).
//
// bench   {"device": 0, "backends": ["own", "cublaslt", "cudnn"], "seconds": 0.05, "tasks": [TASK...],
//          "plugins"?: [FILE...],    libraries of others (include/roofline_cuda_kernel.h), backends by their names
//          "check_all"?: false}      look at the answer of every variant, not only at that of the fastest
//   TASK  {"name", "kind": "gemm", "m", "n", "k", "weight_dtype", "activation_dtype",       y[m,n] = x[m,k] W[n,k]^T
//          "experts"?: 1,            more: each has weights of its own, and rows m e / experts on of x, in bf16
//          "settled"?: false}        the call before did not choose them: their second product
//                                    activation_dtype int8, beside int8 weights: bf16 that the kernel cuts to int8;
//                                    fp4, beside weights of 4 bits: bf16
//         {"name", "kind": "attention", "stage", "batch", "query_heads", "kv_heads", "head_dim", "context", "tokens",
//          "kv_dtype", "value_dim"?: head_dim,
//          "latent"?: false,         one entry for all heads: head_dim of it are the key, value_dim the value
//          "window"?: 0,             newest keys that a token sees, itself included; 0: all of them
//          "sinks"?: false}          of each query head the score of an entry without a value
//         {"name", "kind": "absorption", "rows", "heads", "head_dim", "value_dim", "k",     products of each head, from
//          "weight_dtype"}           head_dim to k, into queries, and from k to value_dim, out of results
//         {"name", "kind": "norm" | "layer_norm" | "add_norm" | "activation" | "plain_activation" | "rotary" |
//          "kv_write" | "add" | "add_two" | "embedding" | "sampling",
//          "rows", "width", "heads", "kv_heads", "head_dim",
//          "latent"?: false}         rotary, kv_write: beside the queries' heads one entry, and no values
//         {"name", "kind": "gated_norm" | "output_gate", "rows", "width", "run"?}    width of the values; gates beside
//         {"name", "kind": "convolution", "batch", "tokens"?: 1, "width", "taps"}
//         {"name", "kind": "state_space" | "delta_rule", "batch", "tokens"?: 1, "heads", "kv_heads", "head_dim",
//          "value_dim"}              states of each head, head_dim x value_dim; kv_heads: groups with keys of their own
//         {"name", "kind": "choice" | "expert_sum", "rows", "width", "chosen"}    width of a choice: experts there are
//   ->    {"results": [{"name", "backend", "time_s", "low_s", "high_s", "flops", "bytes", "error", "tolerance",
//                       "repetitions", "buffers", "variant", "tried": [{"variant", "time_s", "error"?}]}
//                      or {"name", "backend", "problem"}],
//          "plugins": [{"name", "description"}]}
//
// step    {"device": 0, "stage": "decode" | "prefill", "batch", "tokens", "context", "model": {...},
//          "name"?: "",              for whoever reads the requests
//          "expanded"?: false,       latent entries: attention is over keys and values made of them
//          "backends": ["own", "cublaslt", "cudnn"], "launch": ["graph", "graph_serial", "eager"]}
//   model a StackShape, by the names of bench/stack.hpp: {"hidden", "vocabulary", "head": {"n", "k", "dtype"},
//         "kv_dtype", "kinds": [{"name", "count", "attention": {...}, "ffn": {...}, ...}], ...}; what is left out has
//         the value that it has there
//   ->    {"results": [{"backend", "launch", "time_s", "low_s", "high_s", "repetitions", "attention_s", "ffn_s",
//                       "other_s", "tokens_per_s", "kernels", "bytes", "layers_distinct", "ways": [...],
//                       "check": {"error", "tolerance"} or {"logits": "finite"}}
//                      or {"backend", "launch", "problem"}]}
//
// `context` counts the tokens in the cache when the last new token attends, itself included; so decode attends to
// `context` keys, and a prefill of `tokens` starts after `context - tokens` cached ones (none where context is less).
// A request that cannot be met answers {"problem": "..."}; nothing is thrown.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

namespace roofline::cuda {

using Progress = std::function<void(std::string)>;

std::string bench(const nlohmann::json& request, const Progress& progress);
std::string step(const nlohmann::json& request, const Progress& progress);

}  // namespace roofline::cuda
