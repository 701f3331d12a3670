// Attention cores of every backend: what differs is the order of dimensions and where the mask is named.
#include <algorithm>

#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

enum class Layout { heads_first, tokens_first };

/// Attention of any backend: q, k, v are arguments 0 to 2. Counts the pairs that a causal mask leaves.
std::optional<Effort> attention(const Call& call, Layout layout, std::ptrdiff_t causal_at, std::size_t first = 0) {
    const Tensor* q = call.tensor(first, 4);
    const Tensor* k = call.tensor(first + 1, 4);
    const Tensor* v = call.tensor(first + 2, 4);
    if (q == nullptr || k == nullptr || v == nullptr) return std::nullopt;
    AttentionSizes sizes;
    const std::ptrdiff_t heads = layout == Layout::heads_first ? -3 : -2;
    const std::ptrdiff_t tokens = layout == Layout::heads_first ? -2 : -3;
    sizes.batch = at(*q, 0);
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
    return effort;
}

/// Where arguments stand in a call whose sequences lie one behind another.
struct Packed {
    std::size_t starts = 0;  // of the sequences in q: one more than there are sequences
    std::size_t most_queries = 0;
    std::size_t most_keys = 0;
    std::size_t causal = 0;
};

/// q [tokens x heads x d], k and v the same or pages [pages x page x heads x d]. The lengths of the sequences are on
/// the device; what is known is how many there are, how many tokens in all, and the longest. Sequences are taken as
/// alike: each with its share of the queries, and as many keys as the longest (in a first prompt: as it has queries).
std::optional<Effort> packed_attention(const Call& call, Packed places) {
    const Tensor* q = call.tensor(0, 3);
    const Tensor* k = call.tensor(1, 3);
    const Tensor* v = call.tensor(2, 3);
    const Tensor* starts = call.tensor(places.starts, 1);
    const auto most_queries = static_cast<double>(call.integer(places.most_queries, 0));
    const auto most_keys = static_cast<double>(call.integer(places.most_keys, 0));
    if (q == nullptr || k == nullptr || v == nullptr || starts == nullptr || q->dims.size() != 3) return std::nullopt;
    AttentionSizes sizes;
    sizes.batch = at(*starts, 0) - 1.0;
    if (sizes.batch < 1.0 || most_queries < 1.0 || most_keys < 1.0) return std::nullopt;
    sizes.heads = at(*q, -2);
    sizes.kv_heads = at(*k, -2);
    sizes.queries = at(*q, 0) / sizes.batch;
    sizes.keys = most_queries == most_keys ? std::min(most_keys, sizes.queries) : most_keys;
    sizes.causal = call.flag(places.causal);
    double pairs = sizes.queries * sizes.keys;
    if (sizes.causal && sizes.queries <= sizes.keys) pairs -= sizes.queries * (sizes.queries - 1.0) / 2.0;
    Effort effort;
    effort.kind = Kind::attention;
    effort.engine = Engine::matrix;
    effort.type = dtype_of(call.type(0));
    effort.flops = 2.0 * sizes.batch * sizes.heads * pairs * (at(*q, -1) + at(*v, -1));
    effort.kv = sizes.batch * sizes.keys * sizes.kv_heads * (at(*k, -1) + at(*v, -1)) * call.size(1);
    effort.activations = call.bytes(0) + at(*q, 0) * sizes.heads * at(*v, -1) * call.size(0);
    effort.attention = sizes;
    // One sequence, or all of one length, and nothing is left to guess.
    effort.estimated = sizes.batch > 1.0 && sizes.queries != most_queries;
    return effort;
}

}  // namespace

void attention_operators(Formulas& table) {
    table["scaled_dot_product_attention"] = [](const Call& c) { return attention(c, Layout::heads_first, 5); };
    table["_scaled_dot_product_flash_attention"] = [](const Call& c) { return attention(c, Layout::heads_first, 4); };
    table["_scaled_dot_product_flash_attention_for_cpu"] = [](const Call& c) {
        return attention(c, Layout::heads_first, 4);
    };
    table["_scaled_dot_product_efficient_attention"] = [](const Call& c) {
        return attention(c, Layout::heads_first, 6);
    };
    table["_scaled_dot_product_cudnn_attention"] = [](const Call& c) { return attention(c, Layout::heads_first, 6); };
    table["_cudnn_attention_forward"] = [](const Call& c) { return attention(c, Layout::heads_first, 10); };
    table["_flash_attention_forward"] = [](const Call& c) {
        if (c.tensor(0, 4) == nullptr) return packed_attention(c, {3, 5, 6, 8});
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
    table["_flash_attn_varlen_forward"] = [](const Call& c) { return packed_attention(c, {3, 5, 6, 9}); };
    table["varlen_fwd"] = [](const Call& c) { return packed_attention(c, {4, 10, 11, 15}); };  // flash attention 2
    table["fwd"] = [](const Call& c) { return packed_attention(c, {7, 12, 13, 24}); };         // flash attention 3
}

}  // namespace roofline::analyze
