// The layers of a model as a whole step runs them (stack.hpp), read from the lowered model. What a model has beyond
// that is refused in one line that names it, so that a step is never one of another model.
#pragma once

#include <cstdint>
#include <string_view>

#include "roofline/bench/stack.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::bench {

Result<StackShape> stack_shape(const predict::Scenario& scenario);

/// The sizes of a Llama-like dense model: layers of one kind with grouped attention, rotary embedding, a gated FFN, RMS
/// norms.
struct LlamaShape {
    std::int64_t layers = 0;
    std::int64_t hidden = 0;
    std::int64_t query_heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t ffn_width = 0;
    std::int64_t vocabulary = 0;
    bool qk_norm = false;
    bool bias = false;  // of the QKV product
};
/// `whom` is who asks: "random weights can only be written for".
Result<LlamaShape> llama_shape(const predict::Scenario& scenario, std::string_view whom);

}  // namespace roofline::bench
