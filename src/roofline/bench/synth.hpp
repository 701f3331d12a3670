// A GGUF with random weights: the shapes of a real Llama-like model, numbers that mean nothing, and the least
// vocabulary that llama.cpp loads. For trying engines without a download.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "roofline/bench/shape.hpp"
#include "roofline/core/problem.hpp"

namespace roofline::bench {

struct SynthOptions {
    std::string name;           // general.name
    std::string dtype = "f16";  // f16, q8_0, q4_0, q6_k, q4_k_m or q5_k_m
    std::int64_t context = 4096;
    bool tied = false;  // no output.weight: the head is the embedding table
};

struct SynthTensor {
    std::string name;
    std::vector<std::uint64_t> sizes;  // the fastest-running first
    std::uint32_t type = 0;            // of ggml
    std::uint64_t offset = 0;          // into the data section
    std::uint64_t bytes = 0;
};

struct SynthPlan {
    std::vector<std::byte> header;  // up to the data section, padding included
    std::vector<SynthTensor> tensors;
    std::uint64_t data_bytes = 0;
};

Result<SynthPlan> plan_synth(const LlamaShape& shape, const SynthOptions& options);

/// The bytes of the data section, piece by piece; `write` returns false to end it (a full disk, Ctrl-C).
bool write_synth(const SynthPlan& plan, const std::function<bool(std::span<const std::byte>)>& write);

}  // namespace roofline::bench
