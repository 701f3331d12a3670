#include "roofline/bench/task.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace roofline::bench {
namespace {

using model::Operator;

std::int64_t whole(double value) {
    return static_cast<std::int64_t>(std::llround(value));
}

std::string_view last_part(std::string_view name) {
    return name.substr(name.rfind('.') + 1);
}

/// The operator of this name that belongs to the same part of the same layers: kinds of layers differ in their sizes.
const Operator* beside(const model::Lowered& lowered, const Operator& op, std::string_view name) {
    const std::string wanted = op.name.substr(0, op.name.rfind('.') + 1) + std::string(name);
    const auto found = std::ranges::find(lowered.operators, wanted, &Operator::name);
    return found != lowered.operators.end() ? &*found : nullptr;
}

/// The attention of the same layers. Latent attention has two, and goes by one of them: widths of heads differ, their
/// number does not.
const Operator* attention_beside(const model::Lowered& lowered, const Operator& op) {
    for (const std::string_view name : {"core", "core_absorbed", "core_expanded"}) {
        if (const Operator* core = beside(lowered, op, name)) return core;
    }
    return nullptr;
}

Planned refuse(std::string reason) {
    return {std::nullopt, std::move(reason)};
}

/// An up-projection of latent entries that goes into queries and out of results. The attentions beside it, over
/// entries and over what they would be expanded to, know its widths.
Planned plan_absorption(const Operator& op, const Operator* latent, const Operator* expanded, std::string_view stored,
                        Task task) {
    const auto format = weight_format(op, stored);
    if (!format) return refuse(format.error().text);
    if (format->others.count > 0) return refuse("no kernel for products of each head apart in several types");
    if (latent == nullptr || expanded == nullptr) return refuse("no kernel for products of each head apart");
    task.kind = TaskKind::absorption;
    task.weights = format->format;
    task.k = whole(op.extent.inner);
    task.query_heads = whole(latent->extent.heads);
    task.head_dim = whole(expanded->extent.key_dim - (latent->extent.key_dim - op.extent.inner));
    task.value_dim = whole(expanded->extent.value_dim);
    task.width = task.query_heads * task.value_dim;
    const double flops = 2.0 * static_cast<double>(task.rows) * op.extent.inner * op.extent.cols;
    if (task.query_heads * (task.head_dim + task.value_dim) != whole(op.extent.cols) || flops != task.flops)
        return refuse("no kernel for products of each head apart");
    return {task, ""};
}

Planned plan_product(const Operator& op, const Record& record, double weight_bytes, std::string_view stored,
                     Task task) {
    const bool routed = op.extent.pattern == Pattern::experts;
    if ((op.extent.pattern != Pattern::product && !routed) || op.extent.copies != 1.0)
        return refuse("no kernel for block-diagonal products");
    const auto format = weight_format(op, stored);
    if (!format) return refuse(format.error().text);
    task.kind = TaskKind::product;
    task.n = whole(op.extent.cols);
    task.k = whole(op.extent.inner);
    task.m = whole(record.work.flops.value / record.count / (2.0 * op.extent.cols * op.extent.inner));
    task.weights = format->format;
    task.others = format->others;
    const bool wide = bits(task.weights) >= 16 && bits(op.type) < 16;
    task.activations = wide ? *parse_dtype(name(task.weights)) : op.type;
    if (task.m < 1) return {std::nullopt, "nothing to do in this step", true};
    if (routed) {
        // As many as are touched on the mean, in whole ones: what they read counts, not what the mean would.
        task.experts = std::clamp<std::int64_t>(whole(weight_bytes / bytes_of_one(op)), 1, task.m);
        task.settled = op.role == model::Role::expert_down;
        const double more = static_cast<double>(task.experts) * bytes_of_one(op) - weight_bytes;
        task.bytes += more;
        task.rotated += more;
    }
    return {task, ""};
}

/// What keys are turned, and entries written, for: keys and values of whole heads, or one entry for all of them.
bool grouped(const Operator* core) {
    return core != nullptr && core->extent.pattern == Pattern::attention &&
           core->extent.key_dim == core->extent.value_dim;
}
bool latent(const Operator* core) {
    return core != nullptr && core->extent.pattern == Pattern::latent;
}

/// What an indexer does with its small keys, which `keys` makes with the shares of heads beside them: it keeps them, or
/// finds `scores`.
Planned plan_indexer(const Operator& op, const Operator* keys, const Operator* scores,
                     const predict::StageReport& stage, Task task) {
    if (keys == nullptr || scores == nullptr || keys->extent.cols != scores->extent.key_dim + scores->extent.heads ||
        scores->extent.value_dim != 1.0)
        return refuse("no kernel for this kind of indexer");
    const auto& extent = scores->extent;
    if (&op != scores) {
        task.kind = TaskKind::index_write;
        task.width = task.head_dim = whole(extent.key_dim);
        task.context = task.tokens;  // where they are written is all the same
        return {task, ""};
    }
    if (task.prefill && stage.context > static_cast<double>(task.tokens))
        return refuse("no kernel for a prompt after a cached prefix");
    task.kind = TaskKind::index_scores;
    task.context = task.prefill ? task.tokens : whole(stage.context);
    task.query_heads = whole(extent.heads);
    task.head_dim = whole(extent.key_dim);
    task.width = task.query_heads * (task.head_dim + 1);  // a query and a share of each head
    const auto context = static_cast<double>(task.context);
    const double pairs = task.prefill ? context * (context + 1.0) / 2.0 : static_cast<double>(task.tokens) * context;
    const double flops = 2.0 * extent.heads * (extent.key_dim + 1.0) * stage.batch * pairs;
    if (std::abs(flops - task.flops) > 0.01 * flops) return refuse("no kernel for this kind of indexer");
    return {task, ""};
}

Planned plan_attention(const Operator& op, const predict::StageReport& stage, Task task) {
    const auto& extent = op.extent;
    const bool fused = extent.key_dim > 0.0 && extent.value_dim > 0.0;
    if (!fused || (extent.pattern != Pattern::attention && extent.pattern != Pattern::latent))
        return refuse("no kernel for this kind of attention");
    task.kind = TaskKind::attention;
    task.latent = extent.pattern == Pattern::latent && task.rotated > 0.0;  // else expanded beforehand
    task.sinks = op.parameters > 0.0;
    task.query_heads = whole(extent.heads);
    task.kv_heads = task.latent ? 1 : whole(extent.kv_heads);
    task.head_dim = whole(extent.key_dim);
    if (extent.value_dim != extent.key_dim) task.value_dim = whole(extent.value_dim);
    if (task.prefill) {
        if (stage.context > static_cast<double>(task.tokens))
            return refuse("no kernel for a prompt after a cached prefix");
        if (extent.window > 0.0 && extent.window < static_cast<double>(task.tokens)) task.window = whole(extent.window);
        task.context = task.tokens;
    } else {
        task.context = whole(stage.context);
        if (extent.window > 0.0) task.context = std::min(task.context, whole(extent.window));
    }
    if (task.latent && extent.chosen > 0.0 && extent.chosen < static_cast<double>(task.context))
        task.chosen = whole(extent.chosen);
    // Some attend to more than the newest entries, or keep less than keys and values: not what our kernels do.
    const auto near = [](double a, double b) { return std::abs(a - b) <= 0.01 * std::abs(b); };
    const auto context = static_cast<double>(task.context);
    const double sequences = stage.batch;
    const auto most = static_cast<double>(task.chosen > 0 ? task.chosen : task.window);
    const double unseen = most > 0.0 ? context - most : 0.0;  // by the last of them
    const double read = task.chosen > 0 && !task.prefill ? most : context;
    const double pairs = task.prefill ? (context * (context + 1.0) - unseen * (unseen + 1.0)) / 2.0
                                      : static_cast<double>(task.tokens) * read;
    const double widths = extent.key_dim + extent.value_dim;
    const double numbers = task.latent ? extent.key_dim : extent.kv_heads * widths;
    const double entry = numbers * bits(task.kv) / 8.0;
    if (!near(2.0 * extent.heads * widths * sequences * pairs, task.flops) ||
        (task.rotated > 0.0 && !near(entry * sequences * read, task.rotated)))
        return refuse("no kernel for this kind of attention");
    return {task, ""};
}

}  // namespace

std::optional<DType> cache_type(const Format& format) {
    const bool plain = format.scaling == Scaling::none && !format.weight_only;
    if (plain && (format.value == DType::fp32 || format.value == DType::bf16 || format.value == DType::fp16 ||
                  format.value == DType::fp8))
        return format.value;
    if (format.name == "int8") return DType::int8;
    if (format.name == "int4" || format.name == "awq" || format.name == "gptq") return DType::int4;
    return std::nullopt;
}

bool takes_off_the_mean(const Operator& norm) {
    constexpr double flops_of_rms = 4.0;  // F12, an element; where the mean is taken off it has more
    return norm.flops.terms[0].factor > flops_of_rms * norm.extent.written;
}

bool same_work(const Task& a, const Task& b) {
    const bool touches_cache = a.kind == TaskKind::attention || a.kind == TaskKind::kv_write;
    return a.kind == b.kind && a.prefill == b.prefill && a.m == b.m && a.n == b.n && a.k == b.k &&
           a.experts == b.experts && a.settled == b.settled && a.weights == b.weights && a.others == b.others &&
           a.activations == b.activations && a.batch == b.batch && a.tokens == b.tokens && a.context == b.context &&
           a.window == b.window && a.query_heads == b.query_heads && a.kv_heads == b.kv_heads &&
           a.head_dim == b.head_dim && a.value_dim == b.value_dim && a.latent == b.latent && a.sinks == b.sinks &&
           a.run == b.run && a.taps == b.taps && a.plain == b.plain && (!touches_cache || a.kv == b.kv) &&
           a.rows == b.rows && a.width == b.width && a.chosen == b.chosen;
}

std::string describe(const Task& task) {
    switch (task.kind) {
        case TaskKind::product: {
            const std::string others = task.others.count > 0 ? fmt::format(" + {}", name(task.others.format)) : "";
            const std::string sizes =
                fmt::format("{} x {} x {} {}{}", task.m, task.n, task.k, name(task.weights), others);
            return task.experts > 1 ? fmt::format("{}, {} experts", sizes, task.experts) : sizes;
        }
        case TaskKind::absorption:
            return fmt::format("{} x {} heads, {} to {}, {} to {} {}", task.rows, task.query_heads, task.head_dim,
                               task.k, task.k, task.value_dim, name(task.weights));
        case TaskKind::attention: {
            const std::string widths = has_even_heads(task) ? fmt::format("{}", task.head_dim)
                                                            : fmt::format("{}, {}", task.head_dim, value_width(task));
            const std::string window = task.window > 0 ? fmt::format(", the last {}", task.window) : "";
            const std::string chosen = task.chosen > 0 ? fmt::format(", the best {}", task.chosen) : "";
            return fmt::format("{} x {} of {}{}{}, {}/{} heads of {}", task.batch, task.tokens, task.context, window,
                               chosen, task.query_heads, task.kv_heads, widths);
        }
        case TaskKind::rotary:
        case TaskKind::kv_write:
            if (task.query_heads == 0) return fmt::format("{} x {}", task.rows, task.head_dim);
            return fmt::format("{} x {}/{} heads of {}", task.rows, task.query_heads, task.kv_heads, task.head_dim);
        case TaskKind::index_scores:
            return fmt::format("{} x {} of {}, {} heads of {}", task.batch, task.tokens, task.context, task.query_heads,
                               task.head_dim);
        case TaskKind::convolution:
            return fmt::format("{} x {}, {} taps", task.rows, task.width, task.taps);
        case TaskKind::state_space:
        case TaskKind::delta_rule:
            return fmt::format("{} x {} states of {} x {}{}", task.batch, task.query_heads, task.head_dim,
                               task.value_dim, task.tokens > 1 ? fmt::format(", {} tokens", task.tokens) : "");
        case TaskKind::selective_scan:
            return fmt::format("{} x {} states of {}{}", task.batch, task.query_heads, task.head_dim,
                               task.tokens > 1 ? fmt::format(", {} tokens", task.tokens) : "");
        case TaskKind::choice:
            return fmt::format("{} x {} of {}", task.rows, task.chosen, task.width);
        case TaskKind::expert_sum:
            return fmt::format("{} x {} x {}", task.rows, task.chosen, task.width);
        default:
            return fmt::format("{} x {}", task.rows, task.width);
    }
}

std::string_view name(TaskKind kind) {
    switch (kind) {
        case TaskKind::product:
            return "gemm";
        case TaskKind::absorption:
            return "absorption";
        case TaskKind::attention:
            return "attention";
        case TaskKind::norm:
            return "norm";
        case TaskKind::layer_norm:
            return "layer_norm";
        case TaskKind::gated_norm:
            return "gated_norm";
        case TaskKind::convolution:
            return "convolution";
        case TaskKind::state_space:
            return "state_space";
        case TaskKind::delta_rule:
            return "delta_rule";
        case TaskKind::selective_scan:
            return "selective_scan";
        case TaskKind::add:
            return "add";
        case TaskKind::add_two:
            return "add_two";
        case TaskKind::activation:
            return "activation";
        case TaskKind::plain_activation:
            return "plain_activation";
        case TaskKind::output_gate:
            return "output_gate";
        case TaskKind::multiply:
            return "multiply";
        case TaskKind::rotary:
            return "rotary";
        case TaskKind::kv_write:
            return "kv_write";
        case TaskKind::index_write:
            return "index_write";
        case TaskKind::index_scores:
            return "index_scores";
        case TaskKind::embedding:
            return "embedding";
        case TaskKind::sampling:
            return "sampling";
        case TaskKind::choice:
            return "choice";
        case TaskKind::expert_sum:
            return "expert_sum";
    }
    return "";
}

namespace {

Planned plan_norm(const Operator& op, const Operator* core, Task task) {
    if (op.extent.read != op.extent.written) {
        task.kind = TaskKind::gated_norm;
        task.width = whole(op.extent.written);
        task.run = whole(op.parameters);
        if (op.extent.read != 2.0 * op.extent.written || task.run < 1 || task.width % task.run != 0)
            return refuse("no kernel for norms with such a gate");
        return {task, ""};
    }
    task.kind = takes_off_the_mean(op) ? TaskKind::layer_norm : TaskKind::norm;
    task.width = whole(op.extent.written);
    const bool each_head = last_part(op.name) == "qk_norm" && op.parameters < op.extent.written;
    if (each_head) {
        const std::int64_t head_dim = core != nullptr ? whole(core->extent.key_dim) : 0;
        if (head_dim == 0 || task.width % head_dim != 0) return refuse("no kernel for norms of such heads");
        task.rows *= task.width / head_dim;
        task.width = head_dim;
    }
    return {task, ""};
}

/// A state that every sequence has, and the tokens that go into it; the convolution before it knows what goes in.
/// `recurrent`: the same of one token after the other, which tells what kind of state it is. Prompts are counted in
/// chunks; what comes out is the same.
Planned plan_scan(const Operator& op, const Operator* recurrent, const Operator* convolution, Task task) {
    const auto& extent = op.extent;
    const double elements = extent.heads * extent.key_dim * extent.value_dim;
    const double values = extent.heads * extent.value_dim;
    if (convolution == nullptr) return refuse("no kernel for this kind of state");
    if (recurrent == nullptr) recurrent = &op;  // there is one way only
    task.query_heads = whole(extent.heads);
    task.head_dim = whole(extent.key_dim);
    task.value_dim = whole(extent.value_dim);
    task.kv_heads = whole((convolution->extent.written - values) / 2.0 / extent.key_dim);
    task.width = whole(values);
    const double of_a_token = recurrent->flops.terms[0].factor;
    if (recurrent->flops.size == 1 && of_a_token == 9.0 * elements && extent.value_dim == 1.0) {
        task.kind = TaskKind::selective_scan;
        task.kv_heads = 1;
    } else if (recurrent->flops.size == 1 && of_a_token == 5.0 * elements + 2.0 * values) {
        task.kind = TaskKind::state_space;
    } else if (recurrent->flops.size == 1 && of_a_token == 7.0 * elements) {
        task.kind = TaskKind::delta_rule;
    } else {
        return refuse("no kernel for this kind of state");
    }
    if (task.kv_heads < 1 || task.query_heads % task.kv_heads != 0) return refuse("no kernel for this kind of state");
    task.kv = DType::fp32;
    if (task.rotated != 2.0 * 4.0 * elements * static_cast<double>(task.batch))
        return refuse("no kernel for states other than in fp32");
    return {task, ""};
}

/// Element-wise work, each at the sizes that its operator has. `core`: the attention beside it; `down`: the product
/// that reads what comes out; `gated_twice`: before and behind a short convolution, LFM2's.
Planned plan_elementwise(const Operator& op, const Operator* core, const Operator* down, bool gated_twice, Task task) {
    const std::string_view last = last_part(op.name);
    const std::int64_t read = whole(op.extent.read);
    const std::int64_t written = whole(op.extent.written);
    const std::int64_t chosen = down != nullptr ? std::max<std::int64_t>(1, whole(down->extent.experts_chosen)) : 1;
    if (last == "rotary" || last == "kv_write") {
        task.kind = last == "rotary" ? TaskKind::rotary : TaskKind::kv_write;
        task.width = written;
        std::int64_t heads = 0;
        if (grouped(core)) {
            task.query_heads = whole(core->extent.heads);
            task.kv_heads = whole(core->extent.kv_heads);
            task.head_dim = whole(core->extent.key_dim);
            heads = task.kind == TaskKind::rotary ? task.query_heads + task.kv_heads : 2 * task.kv_heads;
        } else if (latent(core)) {
            // Of queries and of the entry the rotary parts alone are turned; the entry is written whole.
            task.latent = true;
            task.query_heads = task.kind == TaskKind::rotary ? whole(core->extent.heads) : 0;
            task.kv_heads = 1;
            heads = task.query_heads + task.kv_heads;
            task.head_dim = written / heads;
        }
        if (heads == 0 || written != heads * task.head_dim) return refuse("no kernel for this kind of attention");
        return {task, ""};
    }
    if (last == "activation") {
        if (read != written && read != 2 * written) return refuse("no kernel for this activation");
        task.kind = read == written ? TaskKind::plain_activation : TaskKind::activation;
        task.rows *= chosen;
        task.width = written / chosen;
        return {task, ""};
    }
    if ((last == "gate" || last == "out_gate") && gated_twice) {
        if (read != 2 * written) return refuse("no kernel for this gate");
        task.kind = TaskKind::multiply;
        task.width = written;
        return {task, ""};
    }
    if (last == "gate" && grouped(core)) {
        task.kind = TaskKind::output_gate;
        task.width = written;
        task.run = read - written == whole(core->extent.heads) ? whole(core->extent.value_dim) : 1;
        if (task.width != (read - written) * task.run) return refuse("no kernel for this gate");
        return {task, ""};
    }
    if (last == "residual") {
        if (read != 2 * written && read != 3 * written) return refuse("no kernel for several residual streams");
        task.kind = read == 2 * written ? TaskKind::add : TaskKind::add_two;
        task.width = written;
        return {task, ""};
    }
    if (last == "choose") {
        task.kind = TaskKind::choice;
        task.width = read;
        task.chosen = written / 2;  // each with its share
        return {task, ""};
    }
    if (last == "combine") {
        if (read != chosen * written) return refuse("no kernel for a share of a row's experts");
        task.kind = TaskKind::expert_sum;
        task.width = written;
        task.chosen = chosen;
        return {task, ""};
    }
    if (last == "convolution") {
        task.kind = TaskKind::convolution;
        task.plain = gated_twice;
        task.width = written;
        task.taps = whole(op.flops.terms[0].factor / (2.0 * op.extent.written));
        if (read != written || task.taps < 2) return refuse("no kernel for this convolution");
        return {task, ""};
    }
    if (last == "sampling") {
        task.kind = TaskKind::sampling;
        task.rows = task.batch;
        task.width = read;
        return {task, ""};
    }
    return refuse("no kernel for this operator");
}

}  // namespace

std::vector<Planned> plan_tasks(const predict::Scenario& scenario, const predict::StageReport& stage) {
    const model::Lowered& lowered = scenario.lowered;
    const Format* kv_format = find_format(scenario.kv_type);
    const auto kv = kv_format != nullptr ? cache_type(*kv_format) : std::nullopt;
    std::vector<Planned> planned;
    for (std::size_t i = 0; i < stage.records.size(); ++i) {
        const Record& record = stage.records[i];
        const Operator& op = lowered.operators[stage.operators[i]];
        const Operator* core = attention_beside(lowered, op);
        Task task;
        task.name = record.name;
        task.prefill = stage.kind == predict::StageKind::prefill;
        task.batch = whole(stage.batch);
        task.tokens = whole(stage.tokens / stage.batch);
        task.context = whole(stage.context);
        task.rows = whole(stage.tokens);
        task.count = record.count;
        task.flops = record.work.flops.value / record.count;
        task.bytes = record.work.at(Level::memory).value / record.count;
        task.rotated = (stage.details[i].weight_bytes + stage.details[i].kv_bytes) / record.count;
        const std::string_view last = last_part(record.name);
        const bool cached = last == "kv_write" || (record.kind == Kind::attention && last != "index_scores");
        if (cached && !kv) {
            planned.push_back(refuse(fmt::format("no kernel keeps a KV cache in {}", scenario.kv_type)));
            continue;
        }
        task.kv = kv.value_or(DType::bf16);
        // Read as what it is only where entries are expanded, from the cache; else into queries and out of results.
        const double weight_bytes = stage.details[i].weight_bytes / record.count;
        if (op.role == model::Role::latent_kv_up && task.rotated <= weight_bytes) {
            planned.push_back(plan_absorption(op, beside(lowered, op, "core_absorbed"),
                                              beside(lowered, op, "core_expanded"), scenario.weight_types, task));
        } else if (record.kind == Kind::gemm && op.extent.cols > 0.0) {
            planned.push_back(plan_product(op, record, weight_bytes, scenario.weight_types, task));
        } else if (last == "index_write" || last == "index_scores") {
            planned.push_back(
                plan_indexer(op, beside(lowered, op, "index_key"), beside(lowered, op, "index_scores"), stage, task));
        } else if (record.kind == Kind::attention) {
            planned.push_back(plan_attention(op, stage, task));
        } else if (record.kind == Kind::scan) {
            planned.push_back(
                plan_scan(op, beside(lowered, op, "core_recurrent"), beside(lowered, op, "convolution"), task));
        } else if (record.kind == Kind::norm) {
            planned.push_back(plan_norm(op, core, task));
        } else if (record.kind == Kind::gather) {  // of tokens, or of positions
            task.kind = TaskKind::embedding;
            task.width = whole(op.extent.written);
            planned.push_back({task, ""});
        } else {
            const bool gated_twice = beside(lowered, op, "out_gate") != nullptr;
            planned.push_back(plan_elementwise(op, core, beside(lowered, op, "down"), gated_twice, task));
        }
    }
    return planned;
}

}  // namespace roofline::bench
