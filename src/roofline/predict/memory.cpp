#include "roofline/predict/memory.hpp"

#include <algorithm>
#include <cmath>

#include "roofline/predict/host_share.hpp"
#include "roofline/predict/longest.hpp"

namespace roofline::predict {
namespace {

bool is_one_of(std::string_view device, const std::vector<std::string>& prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [&](const std::string& prefix) { return device.starts_with(prefix); });
}

/// The line of the engine's defaults that holds on this device.
const EngineRules::Step* default_step(const EngineRules& rules, const Device& device, double memory) {
    for (const EngineRules::Step& step : rules.steps) {
        if (memory >= step.from.value && !is_one_of(device.name, step.except)) return &step;
    }
    return nullptr;
}

double three_decimals(double value) {
    return std::floor(value * 1000.0 + 0.5) / 1000.0;
}

/// F42: the fraction, given or worked out from what must stay free.
double utilisation_of(const MemoryOptions& options, double memory, double step_tokens, double sequences) {
    if (options.utilisation) return *options.utilisation;
    const auto& reserve = options.rules.reserve;
    if (!reserve) return options.rules.utilisation.value;
    double kept = reserve->fixed.value + reserve->per_token.value * step_tokens +
                  reserve->per_rank.value * options.ranks + reserve->per_sequence.value * sequences;
    if (memory > reserve->least_above.value) kept = std::max(kept, reserve->least.value);
    return three_decimals((memory - kept) / memory);
}

/// A workspace that stays: rows that go to experts, and what comes out of the first product. Formats below 8 bits have
/// kernels of their own that do without.
double expert_workspace(const model::Lowered& lowered) {
    double widest = 0.0;
    for (const model::Operator& op : lowered.operators) {
        const model::Extent& extent = op.extent;
        if (extent.experts_chosen <= 0.0 || op.role != model::Role::expert_gate_up) continue;
        const double weight_bits = 8.0 * op.stored_bytes / (op.parameters > 0.0 ? op.parameters : 1.0);
        if (weight_bits < 7.5) continue;
        widest = std::max(widest, extent.experts_chosen * (extent.inner + extent.cols) * 2.0);
    }
    return widest;
}

/// The memory in which `budget` is counted, and what of the overhead counts against it.
struct Base {
    double bytes = 0.0;
    double overhead = 0.0;
};

Base base_of(const MemoryOptions& options, double memory) {
    const EngineRules& rules = options.rules;
    const double collectives = options.ranks > 1.0 ? rules.collectives.value : 0.0;
    const double graphs = rules.graphs_inside ? rules.graphs.value : 0.0;
    switch (rules.fraction_of) {
        case EngineRules::FractionOf::total:
            return {memory, rules.runtime.value + collectives + graphs};
        case EngineRules::FractionOf::free_before:
            return {memory - rules.context.value - collectives, rules.runtime.value + graphs};
        case EngineRules::FractionOf::free_after:
            return {memory - rules.context.value - collectives - rules.runtime.value, graphs};
    }
    return {};
}

double final_context(const Workload& workload) {
    return std::max(workload.decode_context(), workload.prompt + workload.cached + workload.generate);
}

double blocks_of(const EngineMemory& memory, const PagePool& pool, double context) {
    const double bytes = std::max(memory.pool.value, 0.0) * memory.cache.share(pool, context);
    return std::floor(bytes / pool.block_bytes);
}

/// F45: sequences that decode at this context; the smallest of the pools decides.
double batch_at(const EngineMemory& memory, const EngineRules& rules, double context) {
    double batch = memory.sequences;
    for (const PagePool& pool : memory.cache.pools) {
        const double free =
            blocks_of(memory, pool, context) - rules.reserved_blocks.value - pool.in_flight(context, memory.in_flight);
        batch = std::min(batch, std::floor(std::max(free, 0.0) / (pool.held(context) * memory.here)));
    }
    return memory.pool.value < 0.0 ? 0.0 : batch;
}

/// F44: what the engine says of its pool when it starts.
void count_tokens(EngineMemory& memory, const EngineRules& rules) {
    if (memory.cache.pools.empty()) return;
    const auto blocks = [&](const PagePool& pool) { return blocks_of(memory, pool, memory.longest); };
    memory.pool_blocks = blocks(memory.cache.pools.front());
    memory.concurrency = unlimited;
    for (const PagePool& pool : memory.cache.pools) {
        const double each = rules.layout == EngineRules::Layout::tables
                                ? pool.admitted(memory.longest, memory.in_flight)
                                : pool.held(memory.longest);
        memory.concurrency = std::min(memory.concurrency, blocks(pool) / each);
    }
    switch (rules.prints) {
        case EngineRules::Prints::even:
            memory.pool_tokens = std::floor(memory.pool_blocks / memory.cache.tables()) * memory.cache.block_tokens;
            break;
        case EngineRules::Prints::concurrency:
            memory.pool_tokens = std::floor(memory.concurrency * memory.longest);
            break;
        case EngineRules::Prints::full:
            for (const PagePool& pool : memory.cache.pools) {
                if (pool.tables.front().keeps == PageTable::Keeps::everything)
                    memory.pool_tokens = blocks(pool) * pool.tables.front().block_tokens;
            }
            break;
    }
}

}  // namespace

std::optional<model::ExpertExchange> usual_exchange(const EngineRules& rules, std::string_view device) {
    using model::ExpertExchange;
    if (!rules.exchange) return std::nullopt;
    const bool gathers = (rules.exchange->way == ExpertExchange::gather) != is_one_of(device, rules.exchange->except);
    return gathers ? ExpertExchange::gather : ExpertExchange::all_to_all;
}

double allocated_bytes(const model::Lowered& lowered, const MemoryOptions& options, double context) {
    const double block = options.block_tokens.value_or(options.rules.block.value);
    return paged(lowered, options.rules, block).bytes(context);
}

double loaded_weights(const model::Lowered& lowered, const EngineRules& rules) {
    double bytes = model::count_parameters(lowered).stored_bytes;
    const double unit = rules.expert_padding.value;
    if (unit <= 0.0) return bytes;
    for (const model::Operator& op : lowered.operators) {
        const bool first = op.role == model::Role::expert_gate_up;
        if ((!first && op.role != model::Role::expert_down) || !op.extent.weights.starts_with("mxfp4")) continue;
        const double width = first ? op.extent.cols / 2.0 : op.extent.inner;
        if (width > 0.0) bytes += op.count * op.stored_bytes * (std::ceil(width / unit) * unit / width - 1.0);
    }
    return bytes;
}

double trial_activations(const model::Lowered& lowered, const EngineRules& rules, double step_tokens,
                         double sequences) {
    const bool has_head = lowered.logits_bytes > 0.0;
    const double rows = std::min(sequences, step_tokens);
    const double forward = step_tokens * (lowered.widest_activation + rules.streams.value * lowered.hidden_bytes);
    const double sampling =
        has_head ? rows * lowered.vocabulary * rules.sampler.value + step_tokens * lowered.hidden_bytes : 0.0;
    const double workspace = rules.expert_workspace ? step_tokens * expert_workspace(lowered) : 0.0;
    return std::max(forward, sampling) + workspace;
}

EngineMemory with_pool(EngineMemory memory, const EngineRules& rules, Bytes pool, double batch, double context) {
    memory.pool = pool;
    count_tokens(memory, rules);
    memory.allocated = Bytes(batch * memory.cache.bytes(context) * memory.here);
    double kept_back = 0.0;
    for (const PagePool& part : memory.cache.pools)
        kept_back =
            std::max(kept_back, rules.reserved_blocks.value * part.block_bytes / memory.cache.share(part, context));
    memory.needed = Bytes(memory.cache.needed(batch * memory.here, context, memory.in_flight) + kept_back);
    memory.largest_batch = batch_at(memory, rules, context);
    memory.fits = memory.pool.value >= 0.0 && batch <= memory.largest_batch;
    memory.shortfall = Bytes(std::max(memory.needed.value - memory.pool.value, 0.0));

    const auto holds = [&](double tokens) { return batch_at(memory, rules, tokens) >= batch; };
    memory.longest_context = longest_that(holds, memory.longest);
    return memory;
}

std::optional<EngineMemory> engine_memory(const model::Lowered& lowered, const Device& device, const Workload& workload,
                                          double longest_known, const MemoryOptions& options) {
    const Figure* usable = device.usable(Level::memory);
    if (usable == nullptr) return std::nullopt;
    const EngineRules& rules = options.rules;
    const double context = final_context(workload);

    EngineMemory memory;
    memory.engine = rules.name;
    memory.reported = Bytes(usable->value);
    memory.reported_known = device.level(Level::memory)->reported.has_value();
    const EngineRules::Step* step = default_step(rules, device, usable->value);
    memory.longest = options.longest.value_or(longest_known > 0.0 ? longest_known : context);
    memory.step_tokens = options.step_tokens.value_or(step != nullptr ? step->tokens.value : workload.prompt);
    memory.sequences = options.sequences.value_or(step != nullptr ? step->sequences.value : unlimited);
    memory.in_flight = rules.steps_in_flight.value * memory.step_tokens;

    const Base base = base_of(options, usable->value);
    memory.utilisation = utilisation_of(options, usable->value, memory.step_tokens, memory.sequences);
    memory.weights = Bytes(loaded_weights(lowered, rules) - weight_bytes_on_host(lowered));
    memory.here = 1.0 - lowered.host_kv;
    memory.activations = Bytes(trial_activations(lowered, rules, memory.step_tokens, memory.sequences));
    memory.overhead = Bytes(base.overhead);
    memory.activations_inside = rules.activations_inside;
    const double inside = rules.activations_inside ? memory.activations.value : 0.0;
    double pool = 0.0;
    if (rules.fraction_of == EngineRules::FractionOf::free_after) {
        // The fraction is of what is left once the model is loaded and has run; the budget is everything before it.
        const double free = base.bytes - memory.weights.value - inside - base.overhead;
        pool = free > 0.0 ? memory.utilisation * free : free;
        memory.budget = Bytes(base.bytes - free + pool);
    } else {
        memory.budget = Bytes(memory.utilisation * base.bytes);
        pool = memory.budget.value - memory.weights.value - inside - base.overhead;
    }
    const double block = options.block_tokens.value_or(rules.block.value);
    memory.cache = paged(lowered, rules, block);
    return with_pool(std::move(memory), rules, Bytes(pool), workload.batch, context);
}

}  // namespace roofline::predict
