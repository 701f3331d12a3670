#include "roofline/predict/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "roofline/core/sort.hpp"
#include "roofline/predict/stage_times.hpp"

namespace roofline::predict {
namespace {

Times operator_times(const OperatorTime& time, const Choice& choice) {
    return {.limit = Seconds(time.limit),
            .attainable = Seconds(time.attainable),
            .expected = Seconds(time.expected),
            .expected_low = Seconds(std::max(time.expected * choice.low, time.attainable)),
            .expected_high = Seconds(time.expected * choice.high),
            .measured = std::nullopt};
}

FlopsPerByte ridge_of(const std::vector<Record>& records, const Prepared& prepared) {
    std::map<std::pair<Engine, DType>, double> flops;
    for (const Record& record : records) flops[{record.work.engine, record.work.type}] += record.work.flops.value;
    if (flops.empty()) return FlopsPerByte(0.0);
    const auto most =
        std::max_element(flops.begin(), flops.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const double flop_cost = prepared.limit().flop_cost(most->first.first, most->first.second);
    const double byte_cost = prepared.limit().seconds_per_byte[index(Level::memory)];
    return FlopsPerByte(flop_cost > 0.0 ? byte_cost / flop_cost : 0.0);
}

Use use_of(double computing, double memory_seconds, double expected) {
    if (expected <= 0.0) return {};
    return {computing / expected, memory_seconds / expected};
}

std::vector<GroupShare> share_out(const std::vector<Record>& records, const Roofs& limit, double total) {
    const double byte_cost = limit.seconds_per_byte[index(Level::memory)];
    std::array<GroupShare, group_count> shares;
    for (const Record& record : records) {
        GroupShare& share = shares[index(record.group)];
        share.limit += record.times.limit;
        share.attainable += record.times.attainable;
        share.expected += record.times.expected;
        share.computing += Seconds(record.work.flops.value * limit.flop_cost(record.work.engine, record.work.type));
        share.flops += record.work.flops;
        share.memory += record.work.at(Level::memory);
    }
    std::vector<GroupShare> result;
    for (std::size_t i = 0; i < group_count; ++i) {
        GroupShare& share = shares[i];
        const double memory_seconds = share.memory.value * byte_cost;
        share.group = static_cast<Group>(i);
        share.intensity = intensity(share.flops, share.memory);
        share.bound =
            share.computing.value >= memory_seconds && share.computing.value > 0.0 ? Bound::compute : Bound::memory;
        share.use = use_of(share.computing.value, memory_seconds, share.expected.value);
        share.share = total > 0.0 ? share.expected.value / total : 0.0;
        if (share.attainable.value > 0.0 || share.flops.value > 0.0) result.push_back(share);
    }
    return result;
}

Pace pace_of(StageKind kind) {
    return kind == StageKind::prefill ? Pace::alone : Pace::steady;
}

StageReport report_stage(const Scenario& scenario, const Replica& replica, StageKind kind) {
    StageReport report;
    const Workload& workload = scenario.workload;
    const Prepared& prepared = replica.whole();
    const model::Step step = step_of(of_one_replica(scenario), kind);
    const model::Step on_device = replica.on_device(step);
    std::vector<OperatorTime> times(prepared.size());
    report.kind = kind;
    report.batch = workload.batch;
    report.context = kind == StageKind::prefill ? workload.prompt + workload.cached : workload.decode_context();
    report.tokens = 0.0;
    for (const model::Sequences& group : step_of(workload, kind)) report.tokens += group.count * group.new_tokens;
    report.micro_batches = replica.micro_batches(step);
    report.totals = time_stage(scenario, replica, kind, times);
    report.times = times_of(report.totals);
    report.features = prepared.features(on_device);
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (times[i].does_nothing()) continue;  // e.g. the decode form of an operator during prefill
        const model::Operator& op = scenario.lowered.operators[i];
        Record record;
        record.name = op.name;
        record.kind = op.kind;
        record.group = op.group;
        record.count = op.count;
        record.work.engine = prepared.engine(i);
        record.work.type = prepared.type(i);
        record.work.flops = Flops(times[i].flops);
        record.work.at(Level::memory) = Bytes(times[i].memory_bytes);
        record.work.at(Level::cache) = Bytes(times[i].cache_bytes);
        record.work.at(Level::peer) = Bytes(times[i].peer_bytes);
        record.work.at(Level::network) = Bytes(times[i].network_bytes);
        record.work.at(Level::host) = Bytes(times[i].host_bytes);
        record.times = operator_times(times[i], prepared.manner(i).choice(step.front().phase));
        report.records.push_back(std::move(record));
        report.details.push_back(times[i]);
        report.operators.push_back(i);
        report.choices.push_back(prepared.manner(i).choice(step.front().phase));
    }
    report.ridge = ridge_of(report.records, prepared);
    const Roofs& limit = prepared.limit();
    const double byte_cost = limit.seconds_per_byte[index(Level::memory)];
    double computing = 0.0;
    for (const Record& record : report.records) {
        const double seconds = record.work.flops.value * limit.flop_cost(record.work.engine, record.work.type);
        report.uses.push_back(
            use_of(seconds, record.work.at(Level::memory).value * byte_cost, record.times.expected.value));
        computing += seconds;
    }
    report.use = use_of(computing, report.totals.memory_bytes * byte_cost, report.times.expected.value);
    report.groups = share_out(report.records, limit, report.times.expected.value);
    return report;
}

/// Steps that differ only in how far along they are, one by one; beyond 20,000 they are sampled evenly, which is close
/// because a step's time is nearly linear in its context.
template <class Evaluate>
StageTime sum_of_steps(double steps, const Evaluate& evaluate) {
    constexpr double most_samples = 20'000.0;
    StageTime sum;
    const auto samples = static_cast<std::size_t>(std::min(steps, most_samples));
    for (std::size_t i = 0; i < samples; ++i) {
        const auto all = static_cast<double>(i);
        const StageTime stage = evaluate(steps <= most_samples ? all : std::floor((all + 0.5) * steps / most_samples));
        sum += stage;
    }
    const double weight = samples > 0 ? steps / static_cast<double>(samples) : 0.0;
    sum *= weight;
    return sum;
}

/// F31: every token but the first, which comes out of the prefill; the context grows by one token each.
StageTime decode_all(const Replica& replica, const Workload& workload) {
    std::vector<OperatorTime> times(replica.whole().size());
    return sum_of_steps(workload.generate - 1.0, [&](double written) {
        const double past = workload.prompt + workload.cached + written;
        const std::array<model::Sequences, 1> step = {{{model::Phase::decode, workload.batch, 1.0, past, 1.0}}};
        return replica.evaluate(step, times, Pace::steady);
    });
}

/// A prompt in chunks, each beside a decode step of `batch` other sequences: the first token comes after the last
/// chunk.
StageTime chunked_prefill(const Replica& replica, const Workload& workload) {
    std::vector<OperatorTime> times(replica.whole().size());
    return sum_of_steps(std::ceil(workload.prompt / workload.chunk), [&](double chunk) {
        const double done = chunk * workload.chunk;
        const double tokens = std::min(workload.chunk, workload.prompt - done);
        const bool last = done + tokens >= workload.prompt;
        return replica.evaluate(
            model::mixed_step(workload.batch, workload.decode_context(), tokens, workload.cached + done, last), times,
            Pace::steady);
    });
}

void note_stand_ins(const Scenario& scenario, const Prepared& prepared, std::vector<std::string>& notes) {
    std::set<std::string> said;
    bool unpriced = false;
    for (std::size_t i = 0; i < prepared.size(); ++i) {
        const model::Operator& op = scenario.lowered.operators[i];
        if (op.engine != Engine::matrix) continue;
        if (!prepared.priced(i)) {
            unpriced = true;
        } else if (prepared.type(i) != op.type) {
            said.insert(scenario.device.name + " has no " + std::string(name(op.type)) +
                        " engine: such products are computed in " + std::string(name(prepared.type(i))));
        }
    }
    notes.insert(notes.end(), said.begin(), said.end());
    if (unpriced) {
        notes.push_back(scenario.device.name +
                        " publishes no compute rate that these products could use: only memory counts");
    }
}

/// Where the expected times come from, in one line: the nearest source for most of the time, and the furthest.
void note_calibration(const Prepared& prepared, Report& report) {
    std::map<std::string, double> seconds;
    for (const StageReport& stage : report.stages) {
        const model::Phase phase = stage.kind == StageKind::decode ? model::Phase::decode : model::Phase::prefill;
        for (std::size_t i = 0; i < stage.records.size(); ++i) {
            const Choice& choice = prepared.manner(stage.operators[i]).choice(phase);
            seconds[choice.source] += stage.records[i].times.expected.value;
        }
    }
    double total = 0.0;
    for (const auto& [source, time] : seconds) total += time;
    std::vector<std::pair<double, std::string>> shares;
    for (const auto& [source, time] : seconds) shares.emplace_back(-time / total, source);
    sort_stably(shares, std::less<>());
    for (const auto& [share, source] : shares) {
        if (-share < 0.005) continue;
        report.calibration.push_back({source, -share});
    }
}

/// What is read off the records differs from what one device would show.
void note_deployment(const Scenario& scenario, Report& report) {
    const model::Deployment& spread = scenario.deployment;
    const auto whole = [](double value) { return std::to_string(static_cast<long long>(value)); };
    if (spread.devices() > 1.0) {
        std::string text = "FLOPs, bytes and fit are those of one device of " + whole(spread.devices());
        if (spread.pipeline > 1.0) text += "; operators are those of one micro-batch through all pipeline stages";
        report.notes.push_back(text);
    }
    const Links links = links_of(scenario.device);
    bool over_host = false;
    for (const StageReport& stage : report.stages)
        over_host = over_host || stage.totals.host_bytes > stage.totals.streamed_bytes;
    if (over_host)
        report.notes.push_back("devices that " + scenario.device.name +
                               "'s own link does not join talk over the host's");
    bool leaves_node = false;
    for (const model::Operator& op : scenario.lowered.operators)
        leaves_node = leaves_node || op.extent.ranks.nodes > 1.0;
    if (leaves_node && links.network_assumed) {
        report.notes.emplace_back(
            "the link between nodes is assumed: 50 GB/s per direction and device (--set network.bandwidth=... changes "
            "it)");
    }
}

/// F31: devices are paid for while a batch is computed, whoever waits for what.
Money money_of(const Scenario& scenario, const RequestMetrics& metrics) {
    const Workload& workload = scenario.workload;
    const double per_second = *scenario.price * scenario.deployment.devices() / 3600.0;
    const auto a_million = [&](Seconds time, double tokens) { return 1e6 * per_second * time.value / tokens; };
    Money money;
    if (workload.generate > 1.0) money.decode = a_million(metrics.tpot.expected, workload.batch);
    if (workload.chunk > 0.0) return money;  // chunks run beside tokens of others, who pay for them too
    money.prompt = a_million(metrics.ttft.expected, workload.batch * workload.prompt);
    money.output = a_million(metrics.request.expected, workload.batch * workload.generate);
    return money;
}

}  // namespace

Fit fit_deployment(const Scenario& scenario, Advice advice) {
    const model::Deployment& spread = scenario.deployment;
    // Attention groups and replicas each keep their own sequences.
    const double shared_by = spread.replicas * spread.groups;
    Workload workload = scenario.workload;
    workload.batch = std::ceil(workload.batch / shared_by);
    std::optional<MemoryOptions> memory = scenario.memory;
    if (memory) memory->ranks = spread.replica_devices();
    // The device that is worst off decides: it has the least for caches, or the most to hold.
    const auto worse = [](const Fit& one, const Fit& other) {
        if (one.engine && other.engine) return one.engine->pool < other.engine->pool;
        return one.total() > other.total();
    };
    const model::Lowered* where = scenario.stages.empty() ? &scenario.lowered : &scenario.stages.front().lowered;
    Fit worst = fit(*where, scenario.device, workload, scenario.longest_context, memory);
    for (const PipelineStage& stage : scenario.stages) {
        Fit other = fit(stage.lowered, scenario.device, workload, scenario.longest_context, memory);
        if (!worse(other, worst)) continue;
        worst = std::move(other);
        where = &stage.lowered;
    }
    if (!worst.fits && advice == Advice::given) {
        const Format* kv = find_format(scenario.kv_type);
        worst.remedies = what_would_fit({.lowered = *where,
                                         .device = scenario.device,
                                         .workload = workload,
                                         .longest_known = scenario.longest_context,
                                         .options = memory,
                                         .kv_bits = kv != nullptr ? bits_per_element(*kv) : 0.0,
                                         .ranks = spread.devices(),
                                         .shared_by = shared_by},
                                        scenario.remedies);
    }
    if (worst.largest_batch) *worst.largest_batch *= shared_by;
    return worst;
}

StageTime time_stage(const Scenario& scenario, const Replica& replica, StageKind kind, std::span<OperatorTime> times) {
    return replica.evaluate(step_of(of_one_replica(scenario), kind), times, pace_of(kind));
}

RequestMetrics request_metrics(const Scenario& scenario, const Replica& replica) {
    const Workload workload = of_one_replica(scenario);
    std::vector<OperatorTime> times(replica.whole().size());
    const StageTime prefill = workload.chunk > 0.0
                                  ? chunked_prefill(replica, workload)
                                  : replica.evaluate(step_of(workload, StageKind::prefill), times, Pace::alone);
    const StageTime decoding = decode_all(replica, workload);
    const double steps = workload.generate - 1.0;
    RequestMetrics metrics;
    metrics.ttft = times_of(prefill);
    StageTime whole = prefill;
    whole += decoding;
    metrics.request = times_of(whole);
    if (steps > 0.0) {
        metrics.tpot = times_of(decoding, steps);
        if (scenario.device.power) {
            metrics.joules_per_token = scenario.device.power->value * scenario.deployment.replica_devices() *
                                       metrics.tpot.expected.value / workload.batch;
        }
    }
    if (scenario.price) metrics.money = money_of(scenario, metrics);
    return metrics;
}

Report predict(const Scenario& scenario) {
    const Replica replica(scenario);
    const Prepared& prepared = replica.whole();
    Report report;
    report.fit = fit_deployment(scenario);
    report.parameters = scenario.parameters ? *scenario.parameters : model::count_parameters(scenario.lowered);
    report.kv_bytes_per_token =
        scenario.kv_bytes_per_token ? *scenario.kv_bytes_per_token : model::kv_bytes_per_token(scenario.lowered);
    report.measured_ceilings = has_measured_ceilings(scenario.device);
    for (const StageKind stage : scenario.workload.stages)
        report.stages.push_back(report_stage(scenario, replica, stage));
    report.metrics = request_metrics(scenario, replica);
    if (!report.fit.fits) {
        report.notes.push_back(
            "it does not fit: all times, rates, joules and prices are hypothetical, those of such a device with memory "
            "enough");
    }
    report.notes.insert(report.notes.end(), scenario.notes.begin(), scenario.notes.end());
    note_stand_ins(scenario, prepared, report.notes);
    if (scenario.device.capacity(Level::cache) == nullptr) {
        report.notes.push_back("the on-chip cache of " + scenario.device.name +
                               " is not published: activations are assumed to stay on the chip");
    }
    if (!report.measured_ceilings) {
        std::string assumed;
        for (const auto& [path, ceiling] : scenario.device.ceilings) assumed += " and the assumed " + path;
        report.notes.push_back("no measured ceilings for " + scenario.device.name +
                               ": attainable uses datasheet figures" + assumed + ", operators one after another");
    }
    note_calibration(prepared, report);
    note_deployment(scenario, report);
    const double longest = scenario.workload.prompt + scenario.workload.cached + scenario.workload.generate;
    if (scenario.longest_context > 0.0 &&
        std::max(longest, scenario.workload.decode_context()) > scenario.longest_context) {
        report.notes.push_back("the context is longer than the " +
                               std::to_string(static_cast<long long>(scenario.longest_context)) +
                               " tokens the model was made for");
    }
    return report;
}

}  // namespace roofline::predict
