// One operator by hand: the small questions of a blackboard or a kernel writer, without a model around them.
#pragma once

#include <optional>
#include <string>

#include "roofline/core/record.hpp"
#include "roofline/core/roof.hpp"
#include "roofline/predict/execution.hpp"

namespace roofline::predict {

enum class FlopCount { multiply_adds, exact };  // 2 m n k, or m n (2k - 1): the first product needs no addition
enum class Traffic { all, loads, weights };     // inputs and output, inputs alone, the weight matrix alone

/// y = x W: [m x k] x [k x n], W the weights.
struct GemmQuestion {
    double m = 1.0;
    double n = 1.0;
    double k = 1.0;
    Format weights = plain_format(DType::bf16);
    DType activation = DType::bf16;
    FlopCount count = FlopCount::multiply_adds;
    Traffic traffic = Traffic::all;
};

struct AttentionQuestion {
    double batch = 1.0;
    double query_length = 1.0;
    double kv_length = 1024.0;
    double heads = 32.0;
    double kv_heads = 8.0;
    double head_dim = 128.0;
    bool causal = true;
    bool scores_in_memory = false;
    Format kv = plain_format(DType::bf16);
    DType activation = DType::bf16;
};

struct OneOperator {
    Work work;  // in the type asked for; the engine that runs it is the device's business
    std::string shape;
    std::string flops_text;
    std::string bytes_text;
    Kernel kernel;             // the launch that does it
    std::string kernel_class;  // empty: nothing is known but work, and no kernel is assumed
    std::string type;          // of its weights and, where it is another, of the computation
};

OneOperator gemm(const GemmQuestion& question);
OneOperator attention(const AttentionQuestion& question);
OneOperator bare_work(double flops, double bytes, DType type);

/// Work held against a device.
struct Judgement {
    Work work;  // with the engine and type that really run it
    Verdict verdict;
    Times times;
    std::optional<std::string> stand_in;  // said when the device lacks the type
    std::string calibration;              // where the expected time comes from; empty: it is the attainable one
};

Judgement judge_on(const OneOperator& op, const Device& device, const Execution& execution = {});

}  // namespace roofline::predict
