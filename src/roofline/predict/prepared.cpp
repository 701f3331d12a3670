#include "roofline/predict/prepared.hpp"

#include <algorithm>
#include <limits>

namespace roofline::predict {
namespace {

struct Slowest {
    double seconds;
    Bound bound;
};

/// F1, of an operator or of the sums of a stage. At a tie (the ridge) work counts as compute-bound; where nothing has a
/// published ceiling, as memory-bound.
Slowest slowest_of(double compute, double memory, double cache) {
    Slowest slowest{compute, Bound::compute};
    if (memory > slowest.seconds) slowest = {memory, Bound::memory};
    if (cache > slowest.seconds) slowest = {cache, Bound::cache};
    if (slowest.seconds == 0.0) slowest.bound = Bound::memory;
    return slowest;
}

}  // namespace

Prepared::Prepared(const model::Lowered& lowered, const Device& device)
    : features_(lowered.features), limit_(limit_roofs(device)), attainable_(attainable_roofs(device)) {
    // F34: where nobody has published how much the chip can hold, a limit must assume that it holds enough.
    const Figure* capacity = device.capacity(Level::cache);
    cache_capacity_ = capacity != nullptr ? capacity->value : std::numeric_limits<double>::infinity();
    operators_.reserve(lowered.operators.size());
    for (const model::Operator& op : lowered.operators) {
        Entry entry;
        entry.flops = op.flops;
        entry.weights = op.weight_bytes;
        entry.kv = op.cache_bytes;
        entry.activations = op.activation_bytes;
        entry.count = op.count;
        if (op.engine == Engine::matrix) {
            const auto choice = choose_engine(device, op.type);
            entry.priced = choice.has_value();
            entry.engine = choice ? choice->engine : Engine::matrix;
            entry.type = choice ? choice->type : op.type;
        } else {
            // Element-wise work runs on the vector engine in fp32; where no rate is published it costs only its bytes.
            entry.engine = Engine::vector;
            entry.type = DType::fp32;
        }
        entry.limit_flop_cost = limit_.flop_cost(entry.engine, entry.type);
        entry.attainable_flop_cost = attainable_.flop_cost(entry.engine, entry.type);
        operators_.push_back(entry);
    }
}

model::FeatureValues Prepared::features(std::span<const model::Sequences> step) const {
    model::FeatureValues values;
    for (std::size_t i = 0; i < features_.size(); ++i) values[i] = model::evaluate(features_[i], step);
    return values;
}

StageTime Prepared::evaluate(std::span<const model::Sequences> step, std::span<OperatorTime> times) const {
    const model::FeatureValues values = features(step);
    const double memory_cost = limit_.seconds_per_byte[index(Level::memory)];
    const double cache_cost = limit_.seconds_per_byte[index(Level::cache)];
    const double attainable_memory_cost = attainable_.seconds_per_byte[index(Level::memory)];
    const double attainable_cache_cost = attainable_.seconds_per_byte[index(Level::cache)];

    StageTime stage;
    std::array<double, engine_count> engine_seconds{};
    for (std::size_t i = 0; i < operators_.size(); ++i) {
        const Entry& entry = operators_[i];
        OperatorTime& time = times[i];
        const double flops = entry.flops(values);
        const double weights = entry.weights(values);
        const double kv = entry.kv(values);
        const double activations = entry.activations(values);
        // Placement (F34): activations of an operator stay on the chip if all of them fit its last-level cache.
        const bool stays = activations <= cache_capacity_;
        const double memory = weights + kv + (stays ? 0.0 : activations);
        const double cache = stays ? activations : 0.0;

        time.flops = entry.count * flops;
        time.weight_bytes = entry.count * weights;
        time.kv_bytes = entry.count * kv;
        time.memory_bytes = entry.count * memory;
        time.cache_bytes = entry.count * cache;

        const double compute_seconds = time.flops * entry.limit_flop_cost;
        const double memory_seconds = time.memory_bytes * memory_cost;
        const double cache_seconds = time.cache_bytes * cache_cost;
        const Slowest slowest = slowest_of(compute_seconds, memory_seconds, cache_seconds);
        time.limit = slowest.seconds;
        time.bound = slowest.bound;
        const double slower =
            std::max({time.flops * entry.attainable_flop_cost, time.memory_bytes * attainable_memory_cost,
                      time.cache_bytes * attainable_cache_cost});
        time.attainable = std::max(slower, time.limit);
        time.intensity = time.flops == 0.0          ? 0.0
                         : time.memory_bytes == 0.0 ? std::numeric_limits<double>::infinity()
                                                    : time.flops / time.memory_bytes;

        stage.flops += time.flops;
        stage.memory_bytes += time.memory_bytes;
        stage.cache_bytes += time.cache_bytes;
        stage.weight_bytes += time.weight_bytes;
        stage.kv_bytes += time.kv_bytes;
        stage.attainable += time.attainable;
        engine_seconds[index(entry.engine)] += compute_seconds;
    }
    const double compute_seconds = std::max(engine_seconds[0], engine_seconds[1]);
    const double memory_seconds = stage.memory_bytes * memory_cost;
    const double cache_seconds = stage.cache_bytes * cache_cost;
    const Slowest slowest = slowest_of(compute_seconds, memory_seconds, cache_seconds);
    stage.limit = slowest.seconds;
    stage.bound = slowest.bound;
    // Sums taken in another order may differ in the last digit; the order of the three times may not.
    stage.attainable = std::max(stage.attainable, stage.limit);
    stage.intensity = stage.flops == 0.0          ? 0.0
                      : stage.memory_bytes == 0.0 ? std::numeric_limits<double>::infinity()
                                                  : stage.flops / stage.memory_bytes;
    return stage;
}

}  // namespace roofline::predict
