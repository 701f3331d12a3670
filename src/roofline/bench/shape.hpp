// The layers of a model as a whole step runs them, read from the lowered model: attention over grouped heads or latent
// entries, an FFN with a gate or without, dense or of experts, norms before and after. What a model has beyond that is
// refused in one line that names it, so that a step is never one of another model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/dtype.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::bench {

/// y[n] = W[n, k] x[k], and a bias where there is one.
struct ProductShape {
    std::int64_t n = 0;
    std::int64_t k = 0;
    DType type = DType::bf16;
    bool bias = false;

    /// Whether there is such a product.
    explicit operator bool() const { return n > 0; }
};

/// Norms of queries and keys.
enum class HeadNorm { none, each_head, whole_width };

struct AttentionShape {
    std::int64_t query_heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;   // of queries and keys
    std::int64_t value_dim = 0;  // of values
    std::int64_t window = 0;     // entries in reach; 0: all of them
    bool sinks = false;          // the score of an entry without a value, for each head
    bool rotary = false;
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

    bool latent() const { return rank > 0; }
    std::int64_t entry() const { return rank + rope_dim; }
    /// Of a head what `kv_up` makes: the part of its key that is not turned, and its value.
    std::int64_t unturned() const { return head_dim - rope_dim; }
    /// Entries that are kept for `tokens` new ones that end at `context`: all that one of them sees.
    std::int64_t kept(std::int64_t tokens, std::int64_t context) const {
        return window > 0 ? std::min(context, window + tokens - 1) : context;
    }
};

/// A layer with a state in place of attention: Mamba-2. The first product makes a gate, values, keys, queries and a
/// step; all but gate and step go through a convolution.
struct StateMixerShape {
    std::int64_t heads = 0;  // 0: there is none
    std::int64_t groups = 0;
    std::int64_t key_dim = 0;
    std::int64_t value_dim = 0;
    std::int64_t taps = 0;  // of the convolution
    ProductShape in;
    ProductShape out;

    std::int64_t values() const { return heads * value_dim; }
    std::int64_t channels() const { return values() + 2 * groups * key_dim; }
    /// Numbers that a sequence keeps.
    std::int64_t kept() const { return values() * key_dim + (taps - 1) * channels(); }
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

    /// Times that a row is there for its experts.
    std::int64_t slots() const { return experts > 0 ? chosen : 1; }
};

struct LayerShape {
    std::string name;  // what names of its operators begin with
    std::int64_t count = 0;
    AttentionShape attention;  // without heads: there is none
    StateMixerShape state;
    FfnShape ffn;           // without `up`: there is none
    bool parallel = false;  // attention and FFN read the same input, and their results are added up together
    bool norm_before_attention = false;
    bool norm_after_attention = false;
    bool norm_before_ffn = false;
    bool norm_after_ffn = false;
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

    std::int64_t layers() const;
};
Result<StackShape> stack_shape(const predict::Scenario& scenario);

/// The sizes of a Llama-like model: layers of one kind with grouped attention, rotary embedding, a gated FFN, RMS
/// norms.
struct ModelShape {
    std::int64_t layers = 0;
    std::int64_t hidden = 0;
    std::int64_t query_heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t ffn_width = 0;       // of one expert where there are several
    std::int64_t experts = 0;         // routed ones of a layer; 0: the FFN is dense
    std::int64_t experts_chosen = 0;  // by a token
    std::int64_t vocabulary = 0;
    std::int64_t window = 0;  // entries in reach; 0: all of them
    bool qk_norm = false;
    bool bias = false;  // of the QKV product
    DType weights = DType::bf16;
    DType head = DType::bf16;  // the head stays wide where the layers are quantised
    DType kv = DType::bf16;
};
/// That of a dense model or a mixture of experts, or of a dense one alone; `whom` is who asks: "a step on CUDA needs".
enum class Mixtures { welcome, refused };
Result<ModelShape> llama_shape(const predict::Scenario& scenario, std::string_view whom, Mixtures mixtures);

}  // namespace roofline::bench
