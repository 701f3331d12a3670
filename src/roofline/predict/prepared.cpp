#include "roofline/predict/prepared.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "roofline/predict/host_share.hpp"

namespace roofline::predict {
namespace {

struct Slowest {
    double seconds;
    Bound bound;
};

/// F1, of an operator or of the sums of a stage. At a tie (the ridge) work counts as compute-bound; where nothing has a
/// published ceiling, as memory-bound.
Slowest slowest_of(double compute, double memory, double cache, double link) {
    Slowest slowest{compute, Bound::compute};
    if (memory > slowest.seconds) slowest = {memory, Bound::memory};
    if (cache > slowest.seconds) slowest = {cache, Bound::cache};
    if (link > slowest.seconds) slowest = {link, Bound::link};
    if (slowest.seconds == 0.0) slowest.bound = Bound::memory;
    return slowest;
}

/// Groups from the front that one launch of an engine takes: decoding sequences of whatever contexts.
std::size_t one_launch(std::span<const model::Sequences> step) {
    const model::Sequences& first = step.front();
    std::size_t count = 1;
    if (first.phase != model::Phase::decode) return count;
    while (count < step.size() && step[count].phase == first.phase && step[count].new_tokens == first.new_tokens)
        ++count;
    return count;
}

/// The same groups as one of their mean context.
model::Sequences joined(std::span<const model::Sequences> part) {
    model::Sequences sum = part.front();
    if (part.size() == 1) return sum;
    double past = sum.count * sum.past;
    double logits = sum.count * sum.logits;
    for (const model::Sequences& group : part.subspan(1)) {
        sum.count += group.count;
        past += group.count * group.past;
        logits += group.count * group.logits;
    }
    sum.past = past / sum.count;
    sum.logits = logits / sum.count;
    return sum;
}

double tokens_of(std::span<const model::Sequences> step) {
    double tokens = 0.0;
    for (const model::Sequences& group : step) tokens += group.count * group.new_tokens;
    return tokens;
}

double ratio_or_infinity(double flops, double bytes) {
    if (flops == 0.0) return 0.0;
    return bytes == 0.0 ? std::numeric_limits<double>::infinity() : flops / bytes;
}

/// F39: communication and computing one after another, but for the share of the shorter that hides behind the longer.
double beside(double computing, double communicating, double overlap) {
    return computing + communicating - overlap * std::min(computing, communicating);
}

}  // namespace

Kernel step_kernel(const StageTime& stage) {
    // Works and bytes are seconds here: step_machine does one of each in a second.
    Kernel kernel;
    kernel.pattern = Pattern::step;
    kernel.flops = stage.compute_seconds;
    kernel.weight_bytes = stage.memory_seconds;
    kernel.launches = stage.launches;
    kernel.kernel_seconds = stage.kernel_seconds;
    kernel.input_bytes = stage.written_seconds;  // of the kernels that everyone writes anew
    return kernel;
}

Machine step_machine() {
    return {.peak = 1.0, .vector_peak = 1.0, .bandwidth = 1.0, .cache = 0.0, .units = 0.0, .tile = 0.0};
}

Prepared::Prepared(const model::Lowered& lowered, const Device& device, const Execution& execution, double overlap)
    : features_(lowered.features),
      limit_(limit_roofs(device)),
      attainable_(attainable_roofs(device)),
      links_(links_of(device)),
      overlap_(overlap),
      host_weights_(lowered.host_weights),
      host_kv_(lowered.host_kv) {
    // F34: where nobody has published how much the chip can hold, a limit must assume that it holds enough.
    const Figure* capacity = device.capacity(Level::cache);
    cache_capacity_ = capacity != nullptr ? capacity->value : std::numeric_limits<double>::infinity();
    if (!execution.profile.even_routing) {
        for (model::Feature& feature : features_) {
            if (feature.what != model::Feature::What::experts) continue;
            feature.held *= feature.chosen / feature.total;
            feature.total = feature.chosen;
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
        entry.message = op.message_bytes;
        entry.held = op.held_bytes;
        entry.communicates = op.extent.pattern == Pattern::collective;
        if (entry.communicates) {
            entry.traffic = compulsory_traffic(op.extent.collective, op.extent.ranks, links_.wiring);
            entry.slowest_link = link_within(device, op.extent.ranks.per_node());
        }
        // Tables outside the layers stay where they are used.
        entry.may_lie_on_host = may_lie_on_host(op.role);
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
    Kernel kernel = kernel_of(entry.extent, entry.flops(values), entry.weights(values), entry.kv(values),
                              entry.activations(values), values, group, tokens);
    kernel.held_bytes = entry.held(values);
    if (entry.communicates) {
        kernel.message_bytes = entry.message(values);
        kernel.link_bytes = entry.traffic.at(entry.slowest_link) * kernel.message_bytes;
        kernel.network_bytes = entry.traffic.network * kernel.message_bytes;
    }
    return kernel;
}

/// Several devices together: only the links count, whatever the devices do with what arrives.
void Prepared::price_collective(const Entry& entry, const Kernel& kernel, model::Phase phase,
                                OperatorTime& time) const {
    time = {};
    const double message = entry.count * kernel.message_bytes;
    time.peer_bytes = message * entry.traffic.peer;
    time.network_bytes = message * entry.traffic.network;
    time.host_bytes = message * entry.traffic.host;
    const auto slowest = [&](const std::array<double, level_count>& cost) {
        return std::max({time.peer_bytes * cost[index(Level::peer)], time.network_bytes * cost[index(Level::network)],
                         time.host_bytes * cost[index(Level::host)]});
    };
    time.limit = slowest(links_.limit);
    time.attainable = std::max(slowest(links_.attainable), time.limit);
    time.bound = Bound::link;
    if (kernel.message_bytes > 0.0) time.expected = entry.count * entry.manner.seconds(kernel, phase);
}

OperatorTime Prepared::host_stream(const StageTime& stage) const {
    OperatorTime time;
    time.host_bytes = stage.streamed_bytes;
    time.limit = stage.streamed_bytes * links_.limit[index(Level::host)];
    time.attainable = std::max(stage.streamed_bytes * links_.attainable[index(Level::host)], time.limit);
    time.expected = std::max(time.limit / links_.host_efficiency, time.attainable);
    time.bound = Bound::link;
    return time;
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
        const model::Sequences group = by_sequences ? joined(part) : part.front();
        for (const Entry& entry : operators_) {
            if (entry.manner.by_sequences != by_sequences) continue;
            const Kernel whole = kernel(entry, values, group, tokens);
            // Sequences that go another way, as in evaluate().
            if (by_sequences ? whole.flops <= 0.0 : whole.flops + whole.bytes() + whole.message_bytes <= 0.0) continue;
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
    for (auto rest = step; !rest.empty(); rest = rest.subspan(one_launch(rest))) {
        add_operators(rest.first(one_launch(rest)), true);
    }
    // The cost of a step beside its kernels.
    Launch own;
    own.kernel_class = step_.kernel_class;
    own.machine = step_machine();
    own.kernel.pattern = Pattern::step;
    own.count = times;
    add(own);
}

/// Attention and recurrences work sequence by sequence: a chunk of a prompt beside decoding sequences is two kernels. A
/// ragged batch of decoding sequences is one.
void Prepared::expect_cut_by_sequences(std::span<const model::Sequences> step, const model::FeatureValues& all,
                                       std::span<OperatorTime> times) const {
    const double tokens = tokens_of(step);
    for (const std::size_t i : by_sequences_) times[i].expected = 0.0;
    for (auto rest = step; !rest.empty(); rest = rest.subspan(one_launch(rest))) {
        const auto part = rest.first(one_launch(rest));
        const model::Sequences group = joined(part);
        model::FeatureValues own;
        if (part.size() < step.size()) own = features(part);
        const model::FeatureValues& values = part.size() < step.size() ? own : all;
        for (const std::size_t i : by_sequences_) {
            const Entry& entry = operators_[i];
            if (entry.flops(values) <= 0.0) continue;  // these sequences go another way
            times[i].expected += entry.count * entry.manner.seconds(kernel(entry, values, group, tokens), group.phase);
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
        (entry.communicates ? stage.communicating : stage.kernel_seconds) += time.expected;
        if (entry.manner.choice(phase).kernel_class->written_anew) stage.written_seconds += time.expected;
        if (time.expected > 0.0) stage.launches += entry.count * entry.manner.rule(phase).launches;
        low += time.expected * entry.manner.choice(phase).low;
        high += time.expected * entry.manner.choice(phase).high;
    }
    stage.kernel_seconds = beside(stage.kernel_seconds, stage.communicating, overlap_);
    if (streams_from_host()) stage.kernel_seconds = std::max(stage.kernel_seconds, host_stream(stage).expected);
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
    // Who wrote the small kernels is another matter than how well a step is known: the two do not add up, but by
    // squares. One author's kernels err together.
    const double written = stage.kernel_seconds > 0.0 ? stage.written_seconds / stage.kernel_seconds : 0.0;
    const auto and_authors = [&](double range, double authors) {
        const double own = range - 1.0;
        const double others = written * (authors - 1.0);
        return std::sqrt(own * own + others * others);
    };
    const double low_end = step_.own ? std::min(step_.low, kernels_low) : kernels_low;
    const double high_end = step_.own ? std::max(step_.high, kernels_high) : kernels_high;
    stage.expected_low = stage.expected * (1.0 - and_authors(low_end, step_.authors_low));
    stage.expected_high = stage.expected * (1.0 + and_authors(high_end, step_.authors_high));
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
    double communicating = 0.0;
    for (std::size_t i = 0; i < operators_.size(); ++i) {
        const Entry& entry = operators_[i];
        OperatorTime& time = times[i];
        if (entry.communicates) {
            price_collective(entry, kernel(entry, values, step.front(), tokens), step.front().phase, time);
            stage.peer_bytes += time.peer_bytes;
            stage.network_bytes += time.network_bytes;
            stage.host_bytes += time.host_bytes;
            communicating += time.attainable;
            continue;
        }
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
        const Slowest slowest = slowest_of(compute_seconds, memory_seconds, cache_seconds, 0.0);
        time.limit = slowest.seconds;
        time.bound = slowest.bound;
        const double slower =
            std::max({time.flops * entry.attainable_flop_cost, time.memory_bytes * attainable_memory_cost,
                      time.cache_bytes * attainable_cache_cost});
        time.attainable = std::max(slower, time.limit);
        if (!entry.manner.by_sequences) {
            Kernel kernel = kernel_of(entry.extent, flops, weights, kv, activations, values, step.front(), tokens);
            kernel.held_bytes = entry.held(values);
            time.expected = entry.count * entry.manner.seconds(kernel, step.front().phase);
        }
        time.intensity = ratio_or_infinity(time.flops, time.memory_bytes);

        stage.flops += time.flops;
        stage.memory_bytes += time.memory_bytes;
        stage.cache_bytes += time.cache_bytes;
        stage.weight_bytes += time.weight_bytes;
        stage.kv_bytes += time.kv_bytes;
        stage.attainable += time.attainable;
        engine_seconds[index(entry.engine)] += compute_seconds;
        if (entry.may_lie_on_host) stage.streamed_bytes += host_weights_ * time.weight_bytes + host_kv_ * time.kv_bytes;
    }
    stage.host_bytes += stage.streamed_bytes;
    stage.attainable_communicating = communicating;
    stage.attainable = beside(stage.attainable, communicating, overlap_);
    if (streams_from_host()) stage.attainable = std::max(stage.attainable, host_stream(stage).attainable);
    expect_cut_by_sequences(step, values, times);
    const double compute_seconds = std::max(engine_seconds[0], engine_seconds[1]);
    const double memory_seconds = stage.memory_bytes * memory_cost;
    const double cache_seconds = stage.cache_bytes * cache_cost;
    const double link_seconds = std::max({stage.peer_bytes * links_.limit[index(Level::peer)],
                                          stage.network_bytes * links_.limit[index(Level::network)],
                                          stage.host_bytes * links_.limit[index(Level::host)]});
    const Slowest slowest = slowest_of(compute_seconds, memory_seconds, cache_seconds, link_seconds);
    stage.limit = slowest.seconds;
    stage.bound = slowest.bound;
    // Sums taken in another order may differ in the last digit; the order of the three times may not.
    stage.attainable = std::max(stage.attainable, stage.limit);
    stage.compute_seconds = compute_seconds;
    stage.memory_seconds = memory_seconds;
    expect_stage(stage, times, step.front().phase);
    stage.intensity = ratio_or_infinity(stage.flops, stage.memory_bytes);
    return stage;
}

}  // namespace roofline::predict
