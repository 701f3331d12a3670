#include "roofline/predict/one_operator.hpp"

#include <array>
#include <cmath>
#include <cstdio>

#include "roofline/model/reach.hpp"
#include "roofline/model/types.hpp"
#include "roofline/predict/kernel_type.hpp"

namespace roofline::predict {
namespace {

std::string number(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), value == std::floor(value) && std::fabs(value) < 1e15 ? "%.0f" : "%.6g",
                  value);
    return text.data();
}

double stored(DType type, double elements) {
    return elements * bits(type) / 8.0;
}

}  // namespace

OneOperator gemm(const GemmQuestion& q) {
    OneOperator op;
    const model::WeightType type{.format = q.weights, .activation = q.activation, .file_bits = std::nullopt};
    op.work.type = type.compute();
    const bool exact = q.count == FlopCount::exact;
    op.work.flops = Flops(exact ? q.m * q.n * (2.0 * q.k - 1.0) : 2.0 * q.m * q.n * q.k);
    const double weights = matrix_bytes(q.weights, q.k, q.n).value;
    const double input = stored(q.activation, q.m * q.k);
    const double output = stored(model::stream_type(q.activation), q.m * q.n);
    op.work.at(Level::memory) =
        Bytes(weights + (q.traffic == Traffic::weights ? 0.0 : input) + (q.traffic == Traffic::all ? output : 0.0));
    op.shape = "[" + number(q.m) + " x " + number(q.k) + "] x [" + number(q.k) + " x " + number(q.n) + "]";
    op.flops_text = exact ? number(q.m) + " x " + number(q.n) + " x (2 x " + number(q.k) + " - 1)"
                          : "2 x " + number(q.m) + " x " + number(q.n) + " x " + number(q.k);
    op.bytes_text = number(weights) + " weights";
    if (q.traffic != Traffic::weights) op.bytes_text += " + " + number(input) + " in";
    if (q.traffic == Traffic::all) op.bytes_text += " + " + number(output) + " out";
    op.kernel.pattern = Pattern::product;
    op.kernel.flops = op.work.flops.value;
    op.kernel.weight_bytes = weights;
    op.kernel.input_bytes = input;
    op.kernel.output_bytes = output;
    op.kernel.rows = q.m;
    op.kernel.cols = q.n;
    op.kernel.inner = q.k;
    op.kernel_class = "gemm";
    op.type = q.weights.name;
    if (op.work.type != q.weights.value) op.type += "/" + std::string(name(op.work.type));
    return op;
}

OneOperator attention(const AttentionQuestion& q) {
    OneOperator op;
    const double past = q.kv_length - q.query_length;
    const double rectangle = q.batch * q.query_length * q.kv_length;
    const model::Sequences sequences{model::Phase::prefill, q.batch, q.query_length, past, 1.0};
    // Unfused attention computes masked pairs too (F16).
    const bool triangle = q.causal && !q.scores_in_memory;
    const double pairs = triangle ? model::pairs(model::Reach::full(), sequences) : rectangle;
    const DType stream = model::stream_type(q.activation);
    op.work.type = bits(q.activation) <= 8 && bits_per_element(q.kv) <= 8.5 ? DType::fp8 : stream;
    op.work.flops = Flops(4.0 * q.heads * q.head_dim * pairs);
    const double kv = q.batch * q.kv_length * 2.0 * q.kv_heads * q.head_dim * bits_per_element(q.kv) / 8.0;
    const double queries = stored(stream, q.batch * q.query_length * q.heads * q.head_dim);
    // Scores are written, read and written by the softmax, and read again.
    const double scores = q.scores_in_memory ? 4.0 * stored(stream, q.heads * rectangle) : 0.0;
    op.work.at(Level::memory) = Bytes(kv + 2.0 * queries + scores);
    op.shape = number(q.batch) + " x " + number(q.heads) + " heads of " + number(q.head_dim) + " (" +
               number(q.kv_heads) + " KV heads), " + number(q.query_length) + " queries, " + number(q.kv_length) +
               " keys" + (triangle ? ", causal" : "");
    op.flops_text = "4 x " + number(q.heads) + " x " + number(q.head_dim) + " x " + number(pairs) + " query-key pairs";
    op.bytes_text = number(kv) + " KV + " + number(2.0 * queries) + " queries and outputs";
    if (q.scores_in_memory) op.bytes_text += " + " + number(scores) + " scores";
    op.kernel.pattern = Pattern::attention;
    op.kernel.flops = op.work.flops.value;
    op.kernel.weight_bytes = kv;
    op.kernel.input_bytes = queries;
    op.kernel.output_bytes = queries;
    op.kernel.sequences = q.batch;
    op.kernel.queries = q.query_length;
    op.kernel.keys = q.kv_length;
    op.kernel.heads = q.heads;
    op.kernel.kv_heads = q.kv_heads;
    op.kernel.key_dim = q.head_dim;
    op.kernel.value_dim = q.head_dim;
    if (!q.scores_in_memory) op.kernel_class = q.query_length == 1.0 ? "attention_decode" : "attention_prefill";
    op.type = name(op.work.type);
    if (q.kv.value != op.work.type) op.type += "/" + std::string(name(q.kv.value));
    if (q.head_dim > 128.0) op.type += ", wide heads";
    return op;
}

OneOperator bare_work(double flops, double bytes, DType type) {
    OneOperator op;
    op.work.type = type;
    op.work.flops = Flops(flops);
    op.work.at(Level::memory) = Bytes(bytes);
    op.flops_text = number(flops);
    op.bytes_text = number(bytes);
    return op;
}

Judgement judge_on(const OneOperator& op, const Device& device, const Execution& execution) {
    Judgement result;
    result.work = op.work;
    if (const auto choice = choose_engine(device, op.work.type)) {
        result.work.engine = choice->engine;
        result.work.type = choice->type;
        if (!choice->exact) {
            result.stand_in = device.name + " has no " + std::string(name(op.work.type)) + " engine: computed in " +
                              std::string(name(choice->type));
        }
    } else {
        result.stand_in = device.name + " publishes no rate for " + std::string(name(op.work.type)) +
                          " or a type that could stand in: only memory counts";
    }
    const Roofs limit = limit_roofs(device);
    result.verdict = judge(result.work, limit);
    result.times.limit = time_under(result.work, limit).time;
    result.times.attainable = larger(result.times.limit, time_under(result.work, attainable_roofs(device)).time);
    result.times.expected = result.times.attainable;
    result.times.expected_low = result.times.expected_high = result.times.expected;
    if (const KernelClass* known = kernel_class(op.kernel_class)) {
        const bool attends = op.kernel.pattern == Pattern::attention;
        const std::string type =
            attends ? attention_type_on(device, op.type, op.work.type) : type_on(device, op.type, op.work.type);
        const Choice choice = execution.choose(*known, type, device);
        const Machine machine = machine_of(device, result.work.engine, multiplied_in(device, op.work.type));
        const Seconds expected(choice.kernel_class->seconds(op.kernel, machine, choice.constants));
        result.times.expected = larger(expected, result.times.attainable);
        result.times.expected_low = larger(result.times.expected * choice.low, result.times.attainable);
        result.times.expected_high = result.times.expected * choice.high;
        result.calibration = choice.source;
    }
    return result;
}

}  // namespace roofline::predict
