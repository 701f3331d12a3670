// The layers of a model as a whole step runs them, as plain sizes: attention over grouped heads or latent entries, or a
// state; an FFN with a gate or without, dense or of experts; norms before and behind. `shape.hpp` reads them from a
// lowered model; the CUDA plugin gets them as JSON, field by field as `each_field` lists them.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "roofline/bench/weight_format.hpp"
#include "roofline/core/dtype.hpp"

namespace roofline::bench {

/// y[n] = W[n, k] x[k], and a bias where there is one.
struct ProductShape {
    std::int64_t n = 0;
    std::int64_t k = 0;
    WeightFormat type = WeightFormat::bf16;
    bool bias = false;
    bool narrow = false;    // activations are multiplied as narrow as weights, where a kernel can
    OtherRows others = {};  // on processors

    /// Whether there is such a product.
    explicit operator bool() const { return n > 0; }
    StoredAs stored() const { return {type, others}; }
};

/// Norms of queries and keys.
enum class HeadNorm { none, each_head, whole_width };

/// Small queries and keys beside those of attention, by which a token chooses the entries that it sees.
struct IndexerShape {
    std::int64_t heads = 0;  // 0: there is none
    std::int64_t dim = 0;
    ProductShape query;  // of the row that queries come from
    ProductShape key;    // and a share for each head
};

struct AttentionShape {
    std::int64_t query_heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;   // of queries and keys
    std::int64_t value_dim = 0;  // of values
    std::int64_t window = 0;     // entries in reach; 0: all of them
    bool sinks = false;          // the score of an entry without a value, for each head
    bool rotary = false;
    bool gated = false;           // results are multiplied by gates, which are made beside queries, keys and values
    bool gate_a_head = false;     // and all of a head by the same one
    bool keys_as_values = false;  // the product makes no values: they are its keys before these are normed and turned
    HeadNorm norm = HeadNorm::none;
    ProductShape qkv;  // of grouped heads
    // Latent entries: `rank` numbers, which keys and values of all heads are made of, and `rope_dim` that are turned.
    std::int64_t rank = 0;  // 0: heads are grouped
    std::int64_t rope_dim = 0;
    ProductShape q_down;  // where queries come from a latent row too
    ProductShape q;
    ProductShape kv_down;
    ProductShape kv_up;
    ProductShape out;
    std::int64_t chosen = 0;  // latent entries that a token sees, where there are more; 0: it sees all
    IndexerShape indexer;     // none: the layer sees what one before it has chosen

    bool latent() const { return rank > 0; }
    std::int64_t entry() const { return rank + rope_dim; }
    /// Numbers of a row of gates.
    std::int64_t gates() const { return !gated ? 0 : gate_a_head ? query_heads : query_heads * head_dim; }
    /// Of a head what `kv_up` makes: the part of its key that is not turned, and its value.
    std::int64_t unturned() const { return head_dim - rope_dim; }
    /// Entries that are kept for `tokens` new ones that end at `context`: all that one of them sees.
    std::int64_t kept(std::int64_t tokens, std::int64_t context) const {
        return window > 0 ? std::min(context, window + tokens - 1) : context;
    }
};

/// A layer with a state in place of attention. The first product makes all that goes in; values, keys and queries go
/// through a convolution. Mamba-2: gates, values, keys, queries, a step for each head. A gated delta net: queries,
/// keys, values, gates, a step and a share for each head.
struct StateMixerShape {
    std::int64_t heads = 0;  // 0: there is none
    bool delta = false;      // a gated delta net
    std::int64_t groups = 0;
    std::int64_t key_dim = 0;
    std::int64_t value_dim = 0;
    std::int64_t taps = 0;  // of the convolution
    ProductShape in;
    ProductShape out;

    std::int64_t values() const { return heads * value_dim; }
    std::int64_t channels() const { return values() + 2 * groups * key_dim; }
    /// Rows of the first product: what is convolved, gates, and numbers of each head.
    std::int64_t made() const { return channels() + values() + (delta ? 2 : 1) * heads; }
    /// Numbers that a sequence keeps.
    std::int64_t kept() const { return values() * key_dim + (taps - 1) * channels(); }
};

/// A layer that mixes tokens channel by channel in place of attention. Mamba-1: the first product makes values and
/// gates; values go through a convolution, which a second product makes steps (of few numbers, and a third all of
/// them), keys and queries of; a state of each channel takes them. LFM2: the first product makes two gates and values,
/// and the convolution stands between the gates.
struct ChannelMixerShape {
    std::int64_t channels = 0;  // 0: there is none
    std::int64_t taps = 0;      // of the convolution
    std::int64_t key_dim = 0;   // numbers of a state; 0: there is none, LFM2
    bool norms = false;         // of what makes steps, of keys and of queries
    ProductShape in;
    ProductShape select;
    ProductShape step;
    ProductShape out;

    /// Rows of the first product.
    std::int64_t made() const { return (key_dim > 0 ? 2 : 3) * channels; }
    /// Numbers that a sequence keeps.
    std::int64_t kept() const { return channels * (key_dim + taps - 1); }
};

struct FfnShape {
    bool gated = true;
    std::int64_t experts = 0;  // routed ones; 0: the FFN is dense
    std::int64_t chosen = 0;   // of these by a token
    ProductShape router;
    ProductShape up;  // with the gate, where there is one; of one expert
    ProductShape down;
    ProductShape shared_up;  // of experts that every token goes to, as one
    ProductShape shared_down;
    ProductShape shared_gate;
    ProductShape latent_down;  // where experts work on narrower rows: into these,
    ProductShape latent_up;    // and their sum back out of them
    bool norms_apart = false;  // results of experts and of the shared one are normed before they are added up, and so
                               // is what the router and the experts read

    /// Times that a row is there for its experts.
    std::int64_t slots() const { return experts > 0 ? chosen : 1; }
};

struct LayerShape {
    std::string name;  // what names of its operators begin with
    std::int64_t count = 0;
    AttentionShape attention;  // without heads: there is none
    StateMixerShape state;
    ChannelMixerShape channels;
    FfnShape ffn;           // without `up`: there is none
    bool parallel = false;  // attention and FFN read the same input, and their results are added up together
    bool norm_before_attention = false;
    bool norm_after_attention = false;
    bool norm_before_ffn = false;
    bool norm_after_ffn = false;

    /// Whether there is something in place of an FFN alone: attention, or what stands for it.
    bool mixes() const { return attention.query_heads > 0 || state.heads > 0 || channels.channels > 0; }
};

/// Kinds of layers come one after the other, however a model mixes them.
struct StackShape {
    std::int64_t hidden = 0;
    std::int64_t vocabulary = 0;
    std::int64_t positions = 0;  // rows of a table of positions; 0: there is none
    bool layer_norms = false;    // the mean is taken off, and a bias is added
    bool embedding_norm = false;
    bool final_norm = true;
    ProductShape head;
    DType kv = DType::bf16;
    std::vector<LayerShape> kinds;

    std::int64_t layers() const {
        return std::accumulate(kinds.begin(), kinds.end(), std::int64_t{0},
                               [](std::int64_t sum, const LayerShape& kind) { return sum + kind.count; });
    }
};

// Names and members, in the order of the structures: `visit(name, member)`. One list for whoever writes them and for
// whoever reads them.
template <class Shape, class Visit>
    requires std::same_as<std::remove_const_t<Shape>, ProductShape>
void each_field(Shape& shape, const Visit& visit) {
    visit("n", shape.n);
    visit("k", shape.k);
    visit("dtype", shape.type);
    visit("bias", shape.bias);
    visit("narrow", shape.narrow);
}

template <class Shape, class Visit>
    requires std::same_as<std::remove_const_t<Shape>, IndexerShape>
void each_field(Shape& shape, const Visit& visit) {
    visit("heads", shape.heads);
    visit("dim", shape.dim);
    visit("query", shape.query);
    visit("key", shape.key);
}

template <class Shape, class Visit>
    requires std::same_as<std::remove_const_t<Shape>, AttentionShape>
void each_field(Shape& shape, const Visit& visit) {
    visit("query_heads", shape.query_heads);
    visit("kv_heads", shape.kv_heads);
    visit("head_dim", shape.head_dim);
    visit("value_dim", shape.value_dim);
    visit("window", shape.window);
    visit("sinks", shape.sinks);
    visit("rotary", shape.rotary);
    visit("gated", shape.gated);
    visit("gate_a_head", shape.gate_a_head);
    visit("keys_as_values", shape.keys_as_values);
    visit("norm", shape.norm);
    visit("qkv", shape.qkv);
    visit("rank", shape.rank);
    visit("rope_dim", shape.rope_dim);
    visit("q_down", shape.q_down);
    visit("q", shape.q);
    visit("kv_down", shape.kv_down);
    visit("kv_up", shape.kv_up);
    visit("out", shape.out);
    visit("chosen", shape.chosen);
    visit("indexer", shape.indexer);
}

template <class Shape, class Visit>
    requires std::same_as<std::remove_const_t<Shape>, FfnShape>
void each_field(Shape& shape, const Visit& visit) {
    visit("gated", shape.gated);
    visit("experts", shape.experts);
    visit("chosen", shape.chosen);
    visit("router", shape.router);
    visit("up", shape.up);
    visit("down", shape.down);
    visit("shared_up", shape.shared_up);
    visit("shared_down", shape.shared_down);
    visit("shared_gate", shape.shared_gate);
    visit("latent_down", shape.latent_down);
    visit("latent_up", shape.latent_up);
    visit("norms_apart", shape.norms_apart);
}

template <class Shape, class Visit>
    requires std::same_as<std::remove_const_t<Shape>, StateMixerShape>
void each_field(Shape& shape, const Visit& visit) {
    visit("heads", shape.heads);
    visit("delta", shape.delta);
    visit("groups", shape.groups);
    visit("key_dim", shape.key_dim);
    visit("value_dim", shape.value_dim);
    visit("taps", shape.taps);
    visit("in", shape.in);
    visit("out", shape.out);
}

template <class Shape, class Visit>
    requires std::same_as<std::remove_const_t<Shape>, ChannelMixerShape>
void each_field(Shape& shape, const Visit& visit) {
    visit("channels", shape.channels);
    visit("taps", shape.taps);
    visit("key_dim", shape.key_dim);
    visit("norms", shape.norms);
    visit("in", shape.in);
    visit("select", shape.select);
    visit("step", shape.step);
    visit("out", shape.out);
}

template <class Shape, class Visit>
    requires std::same_as<std::remove_const_t<Shape>, LayerShape>
void each_field(Shape& shape, const Visit& visit) {
    visit("name", shape.name);
    visit("count", shape.count);
    visit("attention", shape.attention);
    visit("state", shape.state);
    visit("channels", shape.channels);
    visit("ffn", shape.ffn);
    visit("parallel", shape.parallel);
    visit("norm_before_attention", shape.norm_before_attention);
    visit("norm_after_attention", shape.norm_after_attention);
    visit("norm_before_ffn", shape.norm_before_ffn);
    visit("norm_after_ffn", shape.norm_after_ffn);
}

template <class Shape, class Visit>
    requires std::same_as<std::remove_const_t<Shape>, StackShape>
void each_field(Shape& shape, const Visit& visit) {
    visit("hidden", shape.hidden);
    visit("vocabulary", shape.vocabulary);
    visit("positions", shape.positions);
    visit("layer_norms", shape.layer_norms);
    visit("embedding_norm", shape.embedding_norm);
    visit("final_norm", shape.final_norm);
    visit("head", shape.head);
    visit("kv_dtype", shape.kv);
    visit("kinds", shape.kinds);
}

}  // namespace roofline::bench
