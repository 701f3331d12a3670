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

double tokens_of(std::span<const model::Sequences> step) {
    double tokens = 0.0;
    for (const model::Sequences& group : step) tokens += group.count * group.new_tokens;
    return tokens;
}

}  // namespace

Kernel step_kernel(const StageTime& stage) {
    Kernel kernel;
    kernel.pattern = Pattern::step;
    kernel.flops = stage.compute_seconds;
    kernel.weight_bytes = stage.memory_seconds;
    kernel.launches = stage.launches;
    kernel.kernel_seconds = stage.kernel_seconds;
    return kernel;
}

Machine step_machine() {
    return {.peak = 1.0, .vector_peak = 1.0, .bandwidth = 1.0, .cache = 0.0, .units = 0.0, .tile = 0.0};
}

Prepared::Prepared(const model::Lowered& lowered, const Device& device, const Execution& execution)
    : features_(lowered.features), limit_(limit_roofs(device)), attainable_(attainable_roofs(device)) {
    // F34: where nobody has published how much the chip can hold, a limit must assume that it holds enough.
    const Figure* capacity = device.capacity(Level::cache);
    cache_capacity_ = capacity != nullptr ? capacity->value : std::numeric_limits<double>::infinity();
    if (!execution.profile.even_routing) {
        for (model::Feature& feature : features_) {
            if (feature.what == model::Feature::What::experts) feature.total = feature.chosen;
        }
    }
    step_ = execution.choose_step(device);
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
        entry.extent = op.extent;
        // One row for each of what its activations are counted by: tokens, or positions that need logits.
        if (op.extent.pattern == Pattern::stream && op.activation_bytes.size > 0)
            entry.extent.rows = op.activation_bytes.terms[0].feature;
        entry.manner = manner_of(op, entry.engine, entry.type, device, execution);
        if (entry.manner.by_sequences) by_sequences_.push_back(operators_.size());
        operators_.push_back(std::move(entry));
    }
}

model::FeatureValues Prepared::features(std::span<const model::Sequences> step) const {
    model::FeatureValues values;
    for (std::size_t i = 0; i < features_.size(); ++i) values[i] = model::evaluate(features_[i], step);
    return values;
}

Kernel Prepared::kernel(const Entry& entry, const model::FeatureValues& values, const model::Sequences& group,
                        double tokens) const {
    return kernel_of(entry.extent, entry.flops(values), entry.weights(values), entry.kv(values),
                     entry.activations(values), values, group, tokens);
}

void Prepared::list(std::span<const model::Sequences> step, double times, std::vector<Launch>& into) const {
    const auto add = [&](const Launch& launch) {
        const auto same = std::find_if(into.begin(), into.end(), [&](const Launch& other) {
            return other.kernel_class == launch.kernel_class && other.engine == launch.engine &&
                   other.type == launch.type && other.machine == launch.machine && other.kernel == launch.kernel;
        });
        if (same != into.end())
            same->count += launch.count;
        else
            into.push_back(launch);
    };
    const double tokens = tokens_of(step);
    const auto add_operators = [&](std::span<const model::Sequences> part, bool by_sequences) {
        const model::FeatureValues values = features(part);
        const model::Phase phase = part.front().phase;
        for (const Entry& entry : operators_) {
            if (entry.manner.by_sequences != by_sequences) continue;
            const Kernel whole = kernel(entry, values, part.front(), tokens);
            // Sequences that go another way, as in evaluate().
            if (by_sequences ? whole.flops <= 0.0 : whole.flops + whole.bytes() <= 0.0) continue;
            Launch launch;
            launch.kernel_class = entry.manner.choice(phase).kernel_class;
            launch.machine = entry.manner.machine;
            launch.kernel = entry.manner.share(whole, phase);
            launch.engine = entry.engine;
            launch.type = entry.type;
            launch.count = times * entry.count * std::max(entry.manner.rule(phase).launches, 1.0);
            add(launch);
            if (entry.manner.rides_along(phase)) {
                launch.kernel = Manner::nothing(whole);
                launch.count = -launch.count;
                add(launch);
            }
        }
    };
    add_operators(step, false);
    for (std::size_t g = 0; g < step.size(); ++g) add_operators(step.subspan(g, 1), true);
    // The cost of a step beside its kernels.
    Launch own;
    own.kernel_class = step_.kernel_class;
    own.machine = step_machine();
    own.kernel.pattern = Pattern::step;
    own.count = times;
    add(own);
}

/// Attention and recurrences work sequence by sequence: a chunk of a prompt beside decoding sequences is two kernels.
void Prepared::expect_cut_by_sequences(std::span<const model::Sequences> step, const model::FeatureValues& all,
                                       std::span<OperatorTime> times) const {
    const double tokens = tokens_of(step);
    for (const std::size_t i : by_sequences_) times[i].expected = 0.0;
    for (std::size_t g = 0; g < step.size(); ++g) {
        const auto group = step.subspan(g, 1);
        model::FeatureValues own;
        if (step.size() > 1) own = features(group);
        const model::FeatureValues& values = step.size() > 1 ? own : all;
        for (const std::size_t i : by_sequences_) {
            const Entry& entry = operators_[i];
            if (entry.flops(values) <= 0.0) continue;  // these sequences go another way
            times[i].expected +=
                entry.count * entry.manner.seconds(kernel(entry, values, group.front(), tokens), group.front().phase);
        }
    }
}

/// E9: kernel after kernel, then what a whole step adds: launching, clocks that sink under long matrix work.
void Prepared::expect_stage(StageTime& stage, std::span<OperatorTime> times, model::Phase phase) const {
    double low = 0.0;
    double high = 0.0;
    for (std::size_t i = 0; i < operators_.size(); ++i) {
        const Entry& entry = operators_[i];
        OperatorTime& time = times[i];
        // Physics first: no constant may make a kernel faster than measured ceilings allow.
        time.expected = time.does_nothing() ? 0.0 : std::max(time.expected, time.attainable);
        stage.kernel_seconds += time.expected;
        if (time.expected > 0.0) stage.launches += entry.count * entry.manner.rule(phase).launches;
        low += time.expected * entry.manner.choice(phase).low;
        high += time.expected * entry.manner.choice(phase).high;
    }
    stage.expected = step_.kernel_class->seconds(step_kernel(stage), step_machine(), step_.constants);
    stage.expected = std::max(stage.expected, stage.attainable);
    // Twice its kernels: the device waits for the host more than it works.
    if (stage.limit > 0.0 && stage.expected > 2.0 * stage.kernel_seconds) stage.bound = Bound::latency;
    // What one step adds to its kernels is spread over them, so that shares of operators add up to the stage.
    const double spread = stage.kernel_seconds > 0.0 ? stage.expected / stage.kernel_seconds : 1.0;
    for (OperatorTime& time : times) time.expected *= spread;
    // Steps that were measured say how far off a sum of kernels is; but they were of models whose kernels are known
    // well. Where those of this one are known less well, half of their own spread is left after the others' errors have
    // cancelled some of it. Without measured steps nothing is known to cancel.
    const double cancelled = step_.own ? 0.5 : 1.0;
    const double kernels_low = 1.0 - cancelled * (1.0 - low * spread / stage.expected);
    const double kernels_high = 1.0 + cancelled * (high * spread / stage.expected - 1.0);
    stage.expected_low = stage.expected * (step_.own ? std::min(step_.low, kernels_low) : kernels_low);
    stage.expected_high = stage.expected * (step_.own ? std::max(step_.high, kernels_high) : kernels_high);
    if (stage.expected <= 0.0) stage.expected_low = stage.expected_high = stage.expected;
    stage.expected_low = std::max(stage.expected_low, stage.attainable);
    stage.expected_high = std::max(stage.expected_high, stage.expected);
}

StageTime Prepared::evaluate(std::span<const model::Sequences> step, std::span<OperatorTime> times) const {
    const model::FeatureValues values = features(step);
    const double memory_cost = limit_.seconds_per_byte[index(Level::memory)];
    const double cache_cost = limit_.seconds_per_byte[index(Level::cache)];
    const double attainable_memory_cost = attainable_.seconds_per_byte[index(Level::memory)];
    const double attainable_cache_cost = attainable_.seconds_per_byte[index(Level::cache)];

    const double tokens = tokens_of(step);
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
        if (!entry.manner.by_sequences) {
            const Kernel kernel =
                kernel_of(entry.extent, flops, weights, kv, activations, values, step.front(), tokens);
            time.expected = entry.count * entry.manner.seconds(kernel, step.front().phase);
        }
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
    expect_cut_by_sequences(step, values, times);
    const double compute_seconds = std::max(engine_seconds[0], engine_seconds[1]);
    const double memory_seconds = stage.memory_bytes * memory_cost;
    const double cache_seconds = stage.cache_bytes * cache_cost;
    const Slowest slowest = slowest_of(compute_seconds, memory_seconds, cache_seconds);
    stage.limit = slowest.seconds;
    stage.bound = slowest.bound;
    // Sums taken in another order may differ in the last digit; the order of the three times may not.
    stage.attainable = std::max(stage.attainable, stage.limit);
    stage.compute_seconds = compute_seconds;
    stage.memory_seconds = memory_seconds;
    expect_stage(stage, times, step.front().phase);
    stage.intensity = stage.flops == 0.0          ? 0.0
                      : stage.memory_bytes == 0.0 ? std::numeric_limits<double>::infinity()
                                                  : stage.flops / stage.memory_bytes;
    return stage;
}

}  // namespace roofline::predict
