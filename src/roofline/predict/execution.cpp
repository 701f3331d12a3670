#include "roofline/predict/execution.hpp"

#include <algorithm>
#include <utility>

#include "roofline/predict/kernel_type.hpp"

namespace roofline::predict {
namespace {

/// The class whose formula fits a pattern of work.
std::string_view class_name(const model::Extent& extent, model::Phase phase) {
    const bool prefill = phase == model::Phase::prefill;
    switch (extent.pattern) {
        case Pattern::product:
            return extent.copies > 1.0 ? "batched_gemm" : "gemm";
        case Pattern::experts:
            return "expert_product";
        case Pattern::attention:
            return prefill ? "attention_prefill" : "attention_decode";
        case Pattern::latent:
            return prefill ? "mla_prefill" : "mla_decode";
        case Pattern::scan:  // one token at a time is a pass over the state, and no more
            return prefill ? "scan" : "elementwise";
        case Pattern::collective:
            return name(extent.collective);
        case Pattern::stream:
        case Pattern::step:
            return "elementwise";
    }
    return "elementwise";
}

const KernelClass& class_or(std::string_view wanted, std::string_view fallback) {
    const KernelClass* found = kernel_class(wanted);
    return found != nullptr ? *found : *kernel_class(fallback);
}

}  // namespace

DType multiplied_in(const Device& device, DType wanted) {
    const auto choice = choose_engine(device, wanted);
    if (!choice || choice->exact || bits(choice->type) >= 16) return choice ? choice->type : wanted;
    for (const DType unpacked : {DType::bf16, DType::fp16}) {
        if (device.rate(Engine::matrix, unpacked)) return unpacked;
    }
    return choice->type;
}

namespace {

/// Numbers narrower than 16 bits that the device's engines do not take.
bool unpacks(const Device& device, DType wanted) {
    return bits(wanted) < 16 && bits(multiplied_in(device, wanted)) >= 16;
}

}  // namespace

std::string type_on(const Device& device, std::string_view label, DType wanted) {
    if (!unpacks(device, wanted)) return std::string(label);
    return std::string(label.substr(0, label.find('/'))) + "/bf16";
}

std::string attention_type_on(const Device& device, std::string_view label, DType wanted) {
    if (!unpacks(device, wanted)) return std::string(label);
    const std::size_t cache = label.find('/');
    return "bf16/" + std::string(cache == std::string_view::npos ? label : label.substr(cache + 1));
}

std::string kernel_type(const model::Operator& op, model::Phase phase, const Device& device) {
    if (op.extent.pattern == Pattern::stream) {
        for (const std::string_view own : {"convolution", "rotary"}) {
            if (op.name.ends_with(own)) return std::string(own);
        }
        return std::string(name(op.kind));
    }
    if (op.extent.pattern == Pattern::scan && phase == model::Phase::decode) return "recurrence";
    const std::string_view weights = op.extent.weights.empty() ? std::string_view("bf16") : op.extent.weights;
    if (op.engine != Engine::matrix) return std::string(weights);
    const bool attends = op.extent.pattern == Pattern::attention || op.extent.pattern == Pattern::latent;
    return attends ? attention_type_on(device, weights, op.type) : type_on(device, weights, op.type);
}

Choice Execution::choose(const KernelClass& kernel_class, std::string_view type, const Device& device) const {
    static const Calibration none;
    const Calibration& known = calibration ? *calibration : none;
    Choice nearest = known.choose(kernel_class, type, profile.stacks, device);
    for (const KernelClass* other : kernel_classes()) {
        // They know how a kernel of a GPU cuts its work, which says nothing of a processor's loops.
        if (other->instead_of != kernel_class.name || device.kind == "cpu") continue;
        Choice choice = known.choose(*other, type, profile.stacks, device);
        if (choice.distance < nearest.distance) nearest = std::move(choice);
    }
    return nearest;
}

Choice Execution::choose_step(const Device& device) const {
    static const Calibration none;
    const Calibration& known = calibration ? *calibration : none;
    std::vector<std::string> stacks = {profile.name};
    stacks.insert(stacks.end(), profile.stacks.begin(), profile.stacks.end());
    return known.choose(class_or(profile.step, "graph_step"), "", stacks, device);
}

Links links_of(const Device& device) {
    Links links;
    links.wiring = wiring_of(device);
    links.limit = limit_roofs(device).seconds_per_byte;
    links.attainable = attainable_roofs(device).seconds_per_byte;
    if (device.bandwidth(Level::network) == nullptr) {
        links.network_assumed = true;
        links.limit[index(Level::network)] = links.attainable[index(Level::network)] = 1.0 / assumed_network.value;
    }
    return links;
}

Machine machine_of(const Device& device, Engine engine, DType type, double devices) {
    const auto value = [](const Figure* figure) { return figure != nullptr ? figure->value : 0.0; };
    Machine machine;
    if (const auto& rate = device.rate(engine, type)) machine.peak = rate->value;
    if (const auto& rate = device.rate(Engine::vector, DType::fp32)) machine.vector_peak = rate->value;
    machine.bandwidth = value(device.bandwidth(Level::memory));
    machine.cache = value(device.capacity(Level::cache));
    if (device.multiprocessors) machine.units = device.multiprocessors->value;
    if (device.matrix_tile) machine.tile = device.matrix_tile->value;
    // A processor's loops end where the rows do: padding to a GPU's tiles would make products of one row wait for
    // arithmetic, as its ridge is low.
    if (!device.matrix_tile && device.kind == "cpu") machine.tile = 1.0;
    machine.link = value(device.bandwidth(link_within(device, devices)));
    const Figure* network = device.bandwidth(Level::network);
    machine.network = network != nullptr ? network->value : assumed_network.value;
    return machine;
}

Kernel collective_kernel(Collective collective, const RankGroup& group, double message_bytes, const Device& device) {
    const LinkTraffic traffic = compulsory_traffic(collective, group, wiring_of(device));
    Kernel kernel;
    kernel.pattern = Pattern::collective;
    kernel.ranks = group.ranks;
    kernel.nodes = group.nodes;
    kernel.message_bytes = message_bytes;
    kernel.link_bytes = message_bytes * traffic.at(link_within(device, group.per_node()));
    kernel.network_bytes = message_bytes * traffic.network;
    return kernel;
}

std::string_view collective_type(const RankGroup& group, const Device& device) {
    const bool alone = group.per_node() <= 1.0;
    return !alone && link_within(device, group.per_node()) == Level::host ? "message, host" : "message";
}

Kernel Manner::share(const Kernel& kernel, model::Phase phase) const {
    const Profile::Rule& rule = this->rule(phase);
    const double launches = std::max(rule.launches, 1.0);
    Kernel one = kernel;
    const double part = rule.traffic / launches;
    one.flops /= launches;
    one.weight_bytes *= part;
    one.input_bytes *= part;
    one.output_bytes *= part;
    one.weight_bytes += rule.cache / launches * std::exchange(one.held_bytes, 0.0);
    one.pace = rule.pace;
    // q, k and v apart: the same input, fewer columns.
    if (kernel.pattern == Pattern::product || kernel.pattern == Pattern::experts) one.cols /= launches;
    return one;
}

Kernel Manner::nothing(const Kernel& kernel) {
    Kernel empty;
    empty.pattern = kernel.pattern;
    empty.tokens = kernel.tokens;
    return empty;
}

double Manner::seconds(const Kernel& kernel, model::Phase phase) const {
    const Choice& with = choice(phase);
    const Profile::Rule& how = rule(phase);
    if (how.plain()) return with.kernel_class->seconds(kernel, machine, with.constants);
    const double each = with.kernel_class->seconds(share(kernel, phase), machine, with.constants);
    if (!rides_along(phase)) return how.launches * each;
    // What is left is its bytes, at the speed of a kernel too large for its start-up to matter.
    return std::max(each - with.kernel_class->seconds(nothing(kernel), machine, with.constants), 0.0);
}

Manner manner_of(const model::Operator& op, Engine engine, DType type, const Device& device,
                 const Execution& execution) {
    const model::Extent& extent = op.extent;
    Manner manner;
    const bool together = extent.pattern == Pattern::collective;
    // An engine that was only timed as a whole was held against what stands in.
    const bool stands_in = op.engine == Engine::matrix && type != op.type && execution.profile.kernels.empty();
    manner.machine = machine_of(device, engine, stands_in ? multiplied_in(device, op.type) : type,
                                together ? extent.ranks.per_node() : 1.0);
    manner.prefill_rule = execution.profile.rule_for(op.name, op.kind, "prefill", op.style);
    manner.decode_rule = execution.profile.rule_for(op.name, op.kind, "decode", op.style);
    manner.by_sequences =
        extent.pattern == Pattern::attention || extent.pattern == Pattern::latent || extent.pattern == Pattern::scan;
    const auto choose = [&](model::Phase phase) {
        // An engine that was only timed as a whole has one class for everything.
        const std::string& all = execution.profile.kernels;
        const std::string_view own = class_name(extent, phase);
        const std::string_view general = extent.pattern == Pattern::product ? "gemm" : "elementwise";
        const bool one_for_all = !all.empty() && extent.pattern != Pattern::collective;
        const KernelClass& chosen = class_or(one_for_all ? std::string_view(all) : own, general);
        const std::string weights =
            together ? std::string(collective_type(extent.ranks, device)) : kernel_type(op, phase, device);
        return execution.choose(chosen, weights, device);
    };
    manner.prefill = choose(model::Phase::prefill);
    manner.decode = choose(model::Phase::decode);
    return manner;
}

Kernel kernel_of(const model::Extent& extent, double flops, double weights, double cached, double activations,
                 const model::FeatureValues& values, const model::Sequences& group, double tokens) {
    const auto at = [&](int feature) { return values[static_cast<std::size_t>(feature)]; };
    Kernel kernel;
    kernel.pattern = extent.pattern;
    kernel.flops = flops;
    kernel.weight_bytes = weights + cached;
    kernel.input_bytes = activations / 2.0;
    kernel.output_bytes = activations / 2.0;
    kernel.tokens = tokens;
    switch (extent.pattern) {
        case Pattern::product:
        case Pattern::experts:
            kernel.inner = extent.inner;
            kernel.cols = extent.cols;
            kernel.copies = extent.experts >= 0 ? at(extent.experts) : extent.copies;
            kernel.experts_total = extent.experts_total;
            kernel.experts_chosen = extent.experts_chosen;
            // Engines choose a tile by the rows an expert would get if tokens were spread evenly.
            if (extent.experts_total > 0.0)
                kernel.queries = flops / (2.0 * extent.inner * extent.cols * extent.experts_total);
            if (kernel.copies > 0.0) kernel.rows = flops / (2.0 * extent.inner * extent.cols * kernel.copies);
            break;
        case Pattern::attention:
        case Pattern::latent:
        case Pattern::scan:
            kernel.rows = group.count * extent.heads;
            kernel.sequences = group.count;
            kernel.queries = group.new_tokens;
            kernel.keys = extent.keys >= 0 ? at(extent.keys) / group.count : 0.0;
            kernel.context = group.past + group.new_tokens;
            kernel.window = extent.window;
            kernel.heads = extent.heads;
            kernel.kv_heads = extent.kv_heads;
            kernel.key_dim = extent.key_dim;
            kernel.value_dim = extent.value_dim;
            break;
        case Pattern::stream:
            if (extent.rows >= 0) kernel.rows = at(extent.rows);
            break;
        case Pattern::collective:
            kernel.ranks = extent.ranks.ranks;
            kernel.nodes = extent.ranks.nodes;
            break;
        case Pattern::step:
            break;
    }
    return kernel;
}

}  // namespace roofline::predict
