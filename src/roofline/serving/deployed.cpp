#include "roofline/serving/deployed.hpp"

#include <algorithm>

#include "roofline/predict/host_share.hpp"

namespace roofline::serving {
namespace {

double of(const predict::StageTime& stage, Price price) {
    switch (price) {
        case Price::limit:
            return stage.limit;
        case Price::attainable:
            return stage.attainable;
        case Price::expected:
            return stage.expected;
        case Price::low:
            return stage.expected_low;
        case Price::high:
            return stage.expected_high;
    }
    return stage.expected;
}

// Without an engine's word: prompts in steps of this many tokens, and as many sequences as the pool holds.
constexpr double usual_step_tokens = 8192.0;
constexpr double most_sequences = 4096.0;

}  // namespace

Deployed::Deployed(const predict::Scenario& scenario, Price price)
    : replica_(scenario),
      price_(price),
      devices_of_a_stage_(scenario.deployment.stage_devices()),
      groups_(scenario.deployment.groups),
      times_(replica_.whole().size()) {
    pipeline_stages = static_cast<int>(scenario.deployment.pipeline);
    holds_up = price != Price::limit;
    std::optional<predict::MemoryOptions> options = scenario.memory;
    if (options) options->ranks = scenario.deployment.replica_devices();
    const auto room = [&](const model::Lowered& lowered) {
        if (options) {
            const auto memory =
                predict::engine_memory(lowered, scenario.device, scenario.workload, scenario.longest_context, *options);
            if (memory) engine_ = memory;
            return memory ? memory->pool.value : std::numeric_limits<double>::infinity();
        }
        const Figure* capacity = scenario.device.capacity(Level::memory);
        if (capacity == nullptr) return std::numeric_limits<double>::infinity();
        const double weights = model::count_parameters(lowered).stored_bytes - predict::weight_bytes_on_host(lowered);
        return capacity->value - weights - usual_step_tokens * lowered.widest_activation;
    };
    // The device whose pool holds the fewest sequences decides.
    double fewest = std::numeric_limits<double>::infinity();
    const auto look_at = [&](const model::Lowered& lowered) {
        const double pool = room(lowered);
        const double each = std::max(model::cache_bytes(lowered, 1024.0) * (1.0 - lowered.host_kv), 1.0);
        if (pool / each > fewest) return;
        fewest = pool / each;
        fullest_ = lowered;
        pool_bytes = std::max(pool, 0.0) * groups_;
    };
    if (scenario.stages.empty()) look_at(scenario.lowered);
    for (const predict::PipelineStage& stage : scenario.stages) look_at(stage.lowered);
    if (options) room(fullest_);  // the engine's word on the device that decides
    max_sequences = (engine_ ? engine_->sequences : most_sequences) * groups_;
    max_step_tokens = (engine_ ? engine_->step_tokens : usual_step_tokens) * groups_;
}

StepCost Deployed::price(std::span<const model::Sequences> step) const {
    if (step.empty()) return {};  // the closed form asks for steps with nobody in them
    part_.assign(step.begin(), step.end());
    for (model::Sequences& group : part_) group.count /= groups_;
    const predict::PipelineTime time = replica_.micro_batch(part_, times_);
    return {.latency = of(time.pass, price_),
            .interval = of(time.interval, price_),
            .flops = time.pass.flops * devices_of_a_stage_,
            .memory_bytes = time.pass.memory_bytes * devices_of_a_stage_};
}

double Deployed::sequence_bytes(double context) const {
    if (engine_) return engine_->cache.bytes(context) * engine_->here;
    return model::cache_bytes(fullest_, context) * (1.0 - fullest_.host_kv);
}

}  // namespace roofline::serving
