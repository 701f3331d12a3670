// Tasks and steps on a CUDA device, done by the plugin (measure/cuda): requests and answers are JSON.
//
//   { "do": "bench", "device": 0, "backends": ["own", "cublaslt", "cudnn"], "seconds": 0.05, "tasks": [TASK],
//     "plugins"?: [FILE] }
//   TASK  { "name", "kind": "gemm", "m", "n", "k", "weight_dtype", "activation_dtype" }
//         { "name", "kind": "attention", "stage", "batch", "query_heads", "kv_heads", "head_dim", "context", "tokens",
//           "kv_dtype" }
//         { "name", "kind": "norm" | "activation" | "rotary" | "kv_write" | "add" | "embedding", "rows", "width",
//           "heads", "kv_heads", "head_dim" }
//   ->    { "results": [ { "name", "backend", "time_s", "low_s", "high_s", "flops", "bytes", "error", "tolerance",
//                          "repetitions", "buffers" } | { "name", "backend", "problem" } ],
//           "plugins": [ { "name", "description" } ] }
//   { "do": "step", "stage", "batch", "tokens", "context", "expanded", "model": { ... a StackShape, by the names of
//     stack.hpp ... }, "backends", "launch": ["graph", "eager"] }
//   ->    one object or { "results": [ ... ] } of { "launch", "time_s", "low_s", "high_s", "attention_s", "ffn_s",
//         "other_s", "tokens_per_s", "kernels", "bytes", "layers_distinct" } | { "launch", "problem" }
//   Any answer may be { "problem": TEXT } as a whole.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "roofline/bench/backend.hpp"
#include "roofline/bench/step.hpp"
#include "roofline/io/fields.hpp"

namespace roofline::bench {

using CudaCall = std::function<Result<io::Json>(const io::Json& request)>;

struct CudaPlace {
    int device = 0;
    std::vector<std::string> backends = {"own", "cublaslt", "cudnn"};
    std::vector<std::string> plugins;       // files of others' kernels
    std::vector<std::string> plugin_names;  // backends for tasks, not for whole steps
    double seconds = 0.05;                  // a task
    std::function<bool()> stopped;          // looked at between requests; may be empty
};

struct CudaPlugin {
    std::string name;
    std::string description;
};
/// Loads the files of `place.plugins`, and says what is in them, in their order.
Result<std::vector<CudaPlugin>> load_cuda_plugins(const CudaCall& call, const CudaPlace& place);

io::Json task_json(const Task& task);
/// Outcomes in the order of the tasks, for each those of its backends. A task that the answer leaves out has a problem.
/// One request a task: nobody can stop a kernel, so whoever asks to stop waits for one task at most; the rest have no
/// outcome.
Result<std::vector<std::vector<Outcome>>> run_cuda_tasks(const CudaCall& call, const CudaPlace& place,
                                                         const std::vector<Task>& tasks);
/// One for each way of launching.
Result<std::vector<StepOutcome>> run_cuda_step(const CudaCall& call, const CudaPlace& place, const StackShape& shape,
                                               const StepWork& work);

}  // namespace roofline::bench
