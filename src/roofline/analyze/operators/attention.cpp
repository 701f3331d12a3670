// Attention cores of every backend: what differs is the order of dimensions and where the mask is named.
#include <algorithm>

#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

enum class Layout { heads_first, tokens_first, packed };

/// Attention of any backend: q, k, v are arguments 0 to 2. Counts the pairs that a causal mask leaves.
std::optional<Effort> attention(const Call& call, Layout layout, std::ptrdiff_t causal_at, std::size_t first = 0) {
    const std::size_t rank = layout == Layout::packed ? 3 : 4;
    const Tensor* q = call.tensor(first, rank);
    const Tensor* k = call.tensor(first + 1, rank);
    const Tensor* v = call.tensor(first + 2, rank);
    if (q == nullptr || k == nullptr || v == nullptr) return std::nullopt;
    AttentionSizes sizes;
    const std::ptrdiff_t heads = layout == Layout::heads_first ? -3 : -2;
    const std::ptrdiff_t tokens = layout == Layout::heads_first ? -2 : -3;
    sizes.batch = layout == Layout::packed ? 1.0 : at(*q, 0);
    sizes.heads = at(*q, heads);
    sizes.kv_heads = at(*k, heads);
    sizes.queries = at(*q, tokens);
    sizes.keys = at(*k, tokens);
    if (causal_at >= 0) sizes.causal = call.flag(static_cast<std::size_t>(causal_at));
    double pairs = sizes.queries * sizes.keys;
    if (sizes.causal && sizes.queries <= sizes.keys) pairs -= sizes.queries * (sizes.queries - 1.0) / 2.0;
    Effort effort;
    effort.kind = Kind::attention;
    effort.engine = Engine::matrix;
    effort.type = dtype_of(call.type(first));
    effort.flops = 2.0 * sizes.batch * sizes.heads * pairs * (at(*q, -1) + at(*v, -1));
    effort.kv = call.bytes(first + 1) + call.bytes(first + 2);
    const double out = sizes.batch * sizes.heads * sizes.queries * at(*v, -1) * call.size(first);
    effort.activations = call.bytes(first) + out;
    effort.attention = sizes;
    effort.estimated = layout == Layout::packed;  // the lengths of the sequences are not in the shapes
    return effort;
}

}  // namespace

void attention_operators(Formulas& table) {
    table["scaled_dot_product_attention"] = [](const Call& c) { return attention(c, Layout::heads_first, 5); };
    table["_scaled_dot_product_flash_attention"] = [](const Call& c) { return attention(c, Layout::heads_first, 4); };
    table["_scaled_dot_product_efficient_attention"] = [](const Call& c) {
        return attention(c, Layout::heads_first, 6);
    };
    table["_scaled_dot_product_cudnn_attention"] = [](const Call& c) { return attention(c, Layout::heads_first, 6); };
    table["_cudnn_attention_forward"] = [](const Call& c) { return attention(c, Layout::heads_first, 10); };
    table["_flash_attention_forward"] = [](const Call& c) {
        if (c.tensor(0, 4) == nullptr) return attention(c, Layout::packed, 8);
        return attention(c, Layout::tokens_first, 8);
    };
    table["_efficient_attention_forward"] = [](const Call& c) {
        auto effort = attention(c, Layout::tokens_first, -1);
        if (effort && c.integer(9, 0) > 0) {  // a number for the kind of mask
            const AttentionSizes& s = *effort->attention;
            const double pairs = s.queries * s.keys;
            effort->flops *= (pairs - s.queries * (s.queries - 1.0) / 2.0) / std::max(1.0, pairs);
            effort->attention->causal = true;
        }
        return effort;
    };
    table["_flash_attn_forward"] = [](const Call& c) { return attention(c, Layout::tokens_first, 5); };
    table["_flash_attn_varlen_forward"] = [](const Call& c) { return attention(c, Layout::packed, -1); };
    table["varlen_fwd"] = [](const Call& c) { return attention(c, Layout::packed, -1); };
}

}  // namespace roofline::analyze
