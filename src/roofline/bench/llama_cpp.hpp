// llama.cpp beside our own numbers: `llama-bench` where it is on PATH, else node-llama-cpp through node. Both answer in
// llama-bench's JSON: an array of { "n_prompt", "n_gen", "avg_ns", "samples_ns": [...], "n_threads", ... }.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"

namespace roofline::bench {

struct LlamaQuestion {
    std::string gguf;
    std::string node_modules;  // folder that holds node-llama-cpp; empty: only llama-bench is tried
    long prompt = 512;
    long generate = 32;
    int threads = 1;
    int repetitions = 3;
};

struct LlamaResult {
    bool prefill = false;
    double tokens = 0.0;   // of the prompt, or written
    double seconds = 0.0;  // for all of them: the median of the repetitions
    double low = 0.0;
    double high = 0.0;
    double repetitions = 1.0;
};

struct LlamaAnswer {
    std::string engine;  // "llama-bench b1234", "node-llama-cpp 3.22.1"
    std::vector<LlamaResult> results;
};

/// Unavailable where neither is on this machine.
Result<LlamaAnswer> run_llama_cpp(const LlamaQuestion& question);

/// The array alone; `file` is what problems call it.
Result<LlamaAnswer> read_llama_bench(std::string_view text, std::string_view file);

}  // namespace roofline::bench
