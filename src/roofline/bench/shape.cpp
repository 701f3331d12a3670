#include "roofline/bench/shape.hpp"

#include <algorithm>
#include <cmath>
#include <expected>
#include <map>

#include <fmt/format.h>

#include "roofline/bench/task.hpp"

namespace roofline::bench {
namespace {

using model::Operator;

std::int64_t whole(double value) {
    return static_cast<std::int64_t>(std::llround(value));
}

/// Why there is no step of a model: what it has or has not ("has shared experts"), or that no kernel reads a weight.
struct Unfit {
    std::string because;
    bool unread = false;
};
template <class T>
using Fit = std::expected<T, Unfit>;

std::unexpected<Unfit> unfit(std::string because) {
    return std::unexpected(Unfit{std::move(because)});
}

/// The operators of a model by their names. What nobody has asked for in the end is more than a step does.
class Names {
  public:
    explicit Names(const predict::Scenario& scenario) : stored(scenario.weight_types) {
        for (const Operator& op : scenario.lowered.operators) left_.emplace(op.name, &op);
    }
    const std::string_view stored;  // types of the model's file

    const Operator* take(const std::string& name) {
        const auto found = left_.find(name);
        if (found == left_.end()) return nullptr;
        const Operator* op = found->second;
        left_.erase(found);
        return op;
    }
    const Operator* find(const std::string& name) const {
        const auto found = left_.find(name);
        return found != left_.end() ? found->second : nullptr;
    }
    bool has(const std::string& name) const { return find(name) != nullptr; }
    const Operator* any_left() const { return left_.empty() ? nullptr : left_.begin()->second; }

  private:
    std::multimap<std::string, const Operator*, std::less<>> left_;
};

/// A product that may be missing. Of routed experts the shape is that of one; `scales` are numbers that lie beside it
/// and belong to what is around it.
Fit<ProductShape> read_product(const Operator* op, std::string_view stored, double scales = 0.0) {
    ProductShape shape;
    if (op == nullptr) return shape;
    const auto type = weight_format(*op, stored);
    if (!type) return std::unexpected(Unfit{fmt::format("{}: {}", op->name, type.error().text), true});
    const double each = op->extent.experts_total > 0.0 ? op->extent.experts_total : 1.0;
    const double cells = op->extent.inner * op->extent.cols;
    // A head that shares the table has no parameters of its own.
    const double beside = op->parameters / each - (op->parameters < cells ? 0.0 : cells) - scales;
    if (op->extent.copies != 1.0 || (beside != 0.0 && beside != op->extent.cols))
        return unfit(fmt::format("has more than a matrix and a bias in {}", op->name));
    shape.n = whole(op->extent.cols);
    shape.k = whole(op->extent.inner);
    shape.type = type->format;
    shape.others = type->others;
    shape.bias = beside > 0.0;
    shape.narrow = bits(op->type) < 16;
    return shape;
}

/// The operators of one kind of layers.
class LayerReader {
  public:
    LayerReader(Names& names, std::string prefix) : names_(names), prefix_(std::move(prefix)) {}

    Fit<LayerShape> read() {
        LayerShape layer;
        layer.name = prefix_;
        const bool added = take("attention.residual") != nullptr;
        const bool ffn_added = take("ffn.residual") != nullptr;
        layer.norm_before_attention = take("attention.norm") != nullptr;
        layer.norm_after_attention = take("attention.post_norm") != nullptr;
        layer.norm_before_ffn = take("ffn.norm") != nullptr;
        layer.norm_after_ffn = take("ffn.post_norm") != nullptr;
        // A layer may be one of both blocks alone.
        const bool mixes = names_.has(prefix_ + ".attention.out");
        if (mixes) {
            const bool by_channels =
                names_.has(prefix_ + ".attention.select") || names_.has(prefix_ + ".attention.out_gate");
            auto found = by_channels                             ? read_channels(layer)
                         : names_.has(prefix_ + ".attention.in") ? read_state(layer)
                                                                 : read_attention(layer);
            if (!found) return std::unexpected(found.error());
        }
        if (ffn_added) {
            if (auto found = read_ffn(layer); !found) return std::unexpected(found.error());
        }
        layer.parallel = mixes && ffn_added && !added;
        if ((!added && !ffn_added) || layer.count == 0) return unfit("has layers without a residual stream");
        return layer;
    }

  private:
    const Operator* take(const std::string& name) { return names_.take(prefix_ + "." + name); }
    /// Whether the product was there to be read; what stands in its way is kept.
    bool product(const std::string& name, ProductShape& shape, double scales = 0.0) {
        auto found = read_product(take(name), names_.stored, scales);
        if (!found && !problem_) problem_ = found.error();
        if (found) shape = *found;
        return found && *found;
    }
    Fit<void> all_well() const {
        if (problem_) return std::unexpected(*problem_);
        return {};
    }

    Fit<void> read_attention(LayerShape& layer) {
        AttentionShape& shape = layer.attention;
        const Operator* core = take("attention.core");
        const Operator* absorbed = take("attention.core_absorbed");
        const Operator* expanded = take("attention.core_expanded");
        const Operator* norm = take("attention.qk_norm");
        shape.rotary = take("attention.rotary") != nullptr;
        if (take("attention.kv_write") == nullptr) return unfit("has layers without a KV cache");
        if (core != nullptr) {
            if (core->extent.pattern != Pattern::attention || core->extent.key_dim != core->extent.value_dim)
                return unfit("has another kind of attention");
            if (core->parameters != 0.0 && core->parameters != core->extent.heads)
                return unfit("has another kind of attention");
            shape.sinks = core->parameters > 0.0;
            shape.kv_heads = whole(core->extent.kv_heads);
        } else if (absorbed == nullptr || expanded == nullptr) {
            return unfit("has another kind of attention");
        }
        const Operator& heads = core != nullptr ? *core : *expanded;
        layer.count = whole(heads.count);
        shape.query_heads = whole(heads.extent.heads);
        shape.head_dim = whole(heads.extent.key_dim);
        shape.value_dim = whole(heads.extent.value_dim);
        shape.window = whole(heads.extent.window);
        if (core != nullptr) {
            product("attention.qkv", shape.qkv);
            const Operator* gate = take("attention.gate");
            shape.gated = gate != nullptr;
            const std::int64_t gates = gate != nullptr ? whole(gate->extent.read - gate->extent.written) : 0;
            shape.gate_a_head = gates == shape.query_heads;
            if (gates != shape.gates()) return unfit("has another kind of gates");
            const std::int64_t fused = shape.query_heads + shape.kv_heads;
            shape.keys_as_values = shape.qkv.n == fused * shape.head_dim + gates;
            const std::int64_t made = fused + (shape.keys_as_values ? 0 : shape.kv_heads);
            if (shape.qkv.n != made * shape.head_dim + gates && !problem_)
                return unfit("has more than Q, K, V and gates");
            if (norm != nullptr) {
                const bool whole_width = norm->parameters == norm->extent.written;
                shape.norm = whole_width ? HeadNorm::whole_width : HeadNorm::each_head;
            }
        } else {
            shape.kv_heads = 1;
            shape.rank = whole(absorbed->extent.value_dim);
            shape.rope_dim = whole(absorbed->extent.key_dim) - shape.rank;
            if (product("attention.q_down", shape.q_down) && take("attention.q_norm") == nullptr)
                return unfit("has no norm between the products of its queries");
            product(shape.q_down ? "attention.q_up" : "attention.q", shape.q);
            product("attention.kv_down", shape.kv_down);
            product("attention.kv_up", shape.kv_up);
            if (take("attention.kv_norm") == nullptr) return unfit("has no norm of its entries");
            shape.chosen = whole(absorbed->extent.chosen);
            if (const Operator* scores = take("attention.index_scores")) read_indexer(shape, *scores);
            const bool fits = shape.rotary && shape.q.n == shape.query_heads * shape.head_dim &&
                              shape.kv_down.n == shape.entry() && shape.kv_up.k == shape.rank &&
                              shape.kv_up.n == shape.query_heads * (shape.unturned() + shape.value_dim);
            if (!fits && !problem_) return unfit("has another kind of latent attention");
        }
        product("attention.out", shape.out);
        if (shape.out.k != shape.query_heads * shape.value_dim && !problem_)
            return unfit("has more than heads in its output");
        return all_well();
    }

    void read_indexer(AttentionShape& shape, const Operator& scores) {
        IndexerShape& indexer = shape.indexer;
        indexer.heads = whole(scores.extent.heads);
        indexer.dim = whole(scores.extent.key_dim);
        const double norm = 2.0 * scores.extent.key_dim;  // gain and bias
        product("attention.index_query", indexer.query);
        product("attention.index_key", indexer.key, norm);
        const bool fits = take("attention.index_write") != nullptr && shape.chosen > 0 &&
                          indexer.dim >= shape.rope_dim && indexer.query.k == shape.q_down.n &&
                          indexer.query.n == indexer.heads * indexer.dim &&
                          indexer.key.n == indexer.dim + indexer.heads;
        if (!fits && !problem_) problem_ = Unfit{"has another kind of indexer"};
    }

    Fit<void> read_state(LayerShape& layer) {
        StateMixerShape& shape = layer.state;
        const Operator* convolution = take("attention.convolution");
        const Operator* core = take("attention.core_recurrent");
        take("attention.core_chunked");
        const Operator* norm = take("attention.gated_norm");
        if (convolution == nullptr || core == nullptr || norm == nullptr) return unfit("has another kind of state");
        product("attention.in", shape.in);
        product("attention.out", shape.out);
        layer.count = whole(core->count);
        shape.heads = whole(core->extent.heads);
        shape.key_dim = whole(core->extent.key_dim);
        shape.value_dim = whole(core->extent.value_dim);
        shape.groups = (whole(convolution->extent.written) - shape.values()) / 2 / shape.key_dim;
        shape.taps = whole(convolution->flops.terms[0].factor / (2.0 * convolution->extent.written));
        // Of a delta net what comes out is normed head by head.
        shape.delta = norm->parameters < norm->extent.written;
        const auto normed = static_cast<double>(shape.delta ? shape.value_dim : shape.values());
        const bool fits = shape.groups > 0 && shape.channels() == whole(convolution->extent.written) &&
                          shape.in.n == shape.made() && shape.out.k == shape.values() && norm->parameters == normed;
        if (!fits && !problem_) return unfit("has another kind of state");
        return all_well();
    }

    Fit<void> read_channels(LayerShape& layer) {
        ChannelMixerShape& shape = layer.channels;
        const Operator* convolution = take("attention.convolution");
        const Operator* core = take("attention.core");
        const bool gates = take("attention.gate") != nullptr && take("attention.out_gate") != nullptr;
        shape.norms = take("attention.select_norm") != nullptr;
        if (convolution == nullptr || (core == nullptr) != gates) return unfit("has another kind of state");
        product("attention.in", shape.in);
        product("attention.select", shape.select);
        product("attention.step", shape.step);
        product("attention.out", shape.out);
        layer.count = whole(convolution->count);
        shape.channels = whole(convolution->extent.written);
        shape.taps = whole(convolution->flops.terms[0].factor / (2.0 * convolution->extent.written));
        if (core != nullptr) shape.key_dim = whole(core->extent.key_dim);
        const bool selects = gates ? !shape.select && !shape.step
                                   : shape.select.n == shape.step.k + 2 * shape.key_dim &&
                                         shape.select.k == shape.channels && shape.step.n == shape.channels;
        const bool fits = selects && shape.in.n == shape.made() && shape.out.k == shape.channels;
        if (!fits && !problem_) return unfit("has another kind of state");
        return all_well();
    }

    Fit<void> read_ffn(LayerShape& layer) {
        FfnShape& shape = layer.ffn;
        // Gemma 4: a dense FFN beside the experts, scales of the router's rows and of its choice, and one of the layer.
        const Operator* router = names_.find(prefix_ + ".ffn.router");
        shape.norms_apart = router != nullptr && names_.has(prefix_ + ".ffn.down");
        const double scales = shape.norms_apart ? router->extent.inner + router->extent.cols + 1.0 : 0.0;
        const bool routed = product("ffn.router", shape.router, scales);
        const std::string part = routed ? "ffn.experts." : "ffn.";
        if (routed) {
            const Operator* choose = take("ffn.choose");
            if (choose == nullptr || take("ffn.experts.combine") == nullptr) return unfit("has another kind of router");
            shape.experts = whole(choose->extent.read);
            shape.chosen = whole(choose->extent.written / 2.0);
            if (shape.router.n != shape.experts) return unfit("has another kind of router");
        }
        shape.gated = product(part + "gate_up", shape.up);
        if (!shape.gated && !product(part + "up", shape.up) && !problem_) return unfit("has layers without an FFN");
        if (const Operator* down = names_.find(prefix_ + "." + part + "down")) layer.count = whole(down->count);
        product(part + "down", shape.down);
        if (take(part + "activation") == nullptr || shape.up.n != (shape.gated ? 2 : 1) * shape.down.k) {
            if (!problem_) return unfit("has another kind of FFN");
        }
        if (product("ffn.latent_down", shape.latent_down)) product("ffn.latent_up", shape.latent_up);
        if (shape.norms_apart) {
            for (int i = 0; i < 3; ++i) {
                if (take("ffn.inner_norm") == nullptr)
                    return unfit("has no norms of experts and of the FFN beside them");
            }
        }
        const std::string beside = shape.norms_apart ? "ffn." : "ffn.shared.";
        const bool shared = product(beside + (shape.gated ? "gate_up" : "up"), shape.shared_up);
        if (shared) {
            product(beside + "down", shape.shared_down);
            product("ffn.shared.gate", shape.shared_gate);
            if (take(beside + "activation") == nullptr ||
                shape.shared_up.n != (shape.gated ? 2 : 1) * shape.shared_down.k) {
                if (!problem_) return unfit("has another kind of shared experts");
            }
        }
        const bool narrowed = shape.latent_down && shape.latent_up.k == shape.up.k && shape.latent_down.n == shape.up.k;
        if (shape.latent_down && !narrowed && !problem_) return unfit("has another kind of experts");
        return all_well();
    }

    Names& names_;
    std::string prefix_;
    std::optional<Unfit> problem_;
};

Fit<StackShape> read_stack(const predict::Scenario& scenario) {
    const model::Lowered& lowered = scenario.lowered;
    Names names(scenario);
    StackShape stack;
    const Operator* table = names.take("embedding");
    if (table == nullptr) return unfit("has no embedding");
    stack.hidden = whole(table->extent.written);
    if (const Operator* positions = names.take("positions"))
        stack.positions = whole(positions->parameters / positions->extent.written);
    stack.embedding_norm = names.take("embedding_norm") != nullptr;
    stack.final_norm = names.take("final_norm") != nullptr;
    names.take("sampling");
    auto head = read_product(names.take("head"), names.stored);
    if (!head) return std::unexpected(head.error());
    if (!*head) return unfit("has no head");
    stack.head = *head;
    stack.vocabulary = stack.head.n;
    for (const Operator& op : lowered.operators) {
        if (op.kind == Kind::norm && takes_off_the_mean(op)) stack.layer_norms = true;
        const std::size_t end = op.name.find('.');
        if (end == std::string::npos || !op.name.starts_with("layers")) continue;
        const std::string prefix = op.name.substr(0, end);
        if (!stack.kinds.empty() && stack.kinds.back().name == prefix) continue;
        auto layer = LayerReader(names, prefix).read();
        if (!layer) return std::unexpected(layer.error());
        stack.kinds.push_back(std::move(*layer));
    }
    if (const Operator* more = names.any_left()) return unfit("has " + more->name);
    const Format* kv = find_format(scenario.kv_type);
    const auto type = kv != nullptr ? cache_type(*kv) : std::nullopt;
    if (!type) return std::unexpected(Unfit{fmt::format("no kernel keeps a KV cache in {}", scenario.kv_type), true});
    stack.kv = *type;
    return stack;
}

Fit<LlamaShape> as_llama(const StackShape& stack) {
    if (stack.kinds.size() != 1) return unfit("mixes kinds of layers");
    const LayerShape& layer = stack.kinds.front();
    const AttentionShape& attention = layer.attention;
    const FfnShape& ffn = layer.ffn;
    if (layer.state.heads > 0 || layer.channels.channels > 0) return unfit("has layers with a state");
    if (attention.query_heads == 0 || !ffn.up) return unfit("has layers of one block");
    if (attention.latent()) return unfit("has latent attention");
    if (!attention.rotary) return unfit("has no rotary embedding");
    if (attention.norm == HeadNorm::whole_width) return unfit("has norms over all heads");
    if (attention.sinks) return unfit("has attention sinks");
    if (attention.gated) return unfit("has gates behind attention");
    if (layer.parallel) return unfit("has attention and FFN side by side");
    if (!layer.norm_before_attention || !layer.norm_before_ffn || !stack.final_norm)
        return unfit("has no norm before each block");
    if (layer.norm_after_attention || layer.norm_after_ffn) return unfit("has norms behind its blocks");
    if (stack.layer_norms) return unfit("has no RMS norm");
    if (stack.positions > 0 || stack.embedding_norm) return unfit("has more than a table of tokens");
    if (!ffn.gated) return unfit("has no gated FFN");
    if (ffn.experts > 0) return unfit("has experts");
    if (attention.out.bias || ffn.up.bias || ffn.down.bias || stack.head.bias)
        return unfit("has biases in its output, FFN or head");
    return LlamaShape{.layers = layer.count,
                      .hidden = stack.hidden,
                      .query_heads = attention.query_heads,
                      .kv_heads = attention.kv_heads,
                      .head_dim = attention.head_dim,
                      .ffn_width = ffn.down.k,
                      .vocabulary = stack.vocabulary,
                      .qk_norm = attention.norm != HeadNorm::none,
                      .bias = attention.qkv.bias};
}

std::unexpected<Problem> explain(const predict::Scenario& scenario, const Unfit& unfit, std::string_view whom,
                                 std::string_view what) {
    if (unfit.unread) return fail(unfit.because);
    return fail(fmt::format("{}: {} {}, and this one {}", scenario.model_name, whom, what, unfit.because));
}

}  // namespace

Result<StackShape> stack_shape(const predict::Scenario& scenario) {
    auto stack = read_stack(scenario);
    if (!stack)
        return explain(scenario, stack.error(), "a whole step needs", "layers of attention or states and an FFN");
    return std::move(*stack);
}

Result<LlamaShape> llama_shape(const predict::Scenario& scenario, std::string_view whom) {
    const auto stack = read_stack(scenario);
    const auto shape = stack ? as_llama(*stack) : std::unexpected(stack.error());
    if (!shape) return explain(scenario, shape.error(), whom, "a Llama-like model");
    return *shape;
}

}  // namespace roofline::bench
