// Operators of serving engines that touch a cache or a state of all sequences: the tensor they are given is as large as
// the engine's memory, and only what is new, or what they name, moves. Names and arguments are those of vLLM 0.28 and
// SGLang of 2026-08.
#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

double numbers(const Call& call, std::size_t index) {
    const Tensor* tensor = call.tensor(index, 1);
    return tensor == nullptr ? 0.0 : elements(*tensor);
}

/// Rows that positions pick of a table of sines and cosines.
double picked(const Call& call, std::size_t table, std::size_t positions) {
    const Tensor* rows = call.tensor(table, 2);
    return rows == nullptr ? 0.0 : numbers(call, positions) * at(*rows, -1) * call.size(table);
}

/// Two tensors of new keys and values (or a latent and its positions) from `first` on, in the type of the cache that
/// follows them where one is given.
template <std::size_t First>
std::optional<Effort> appended(const Call& call) {
    if (call.tensor(First, 2) == nullptr || call.tensor(First + 1, 2) == nullptr) return std::nullopt;
    Effort effort = moved(Kind::copy, 0.0, call.bytes(First) + call.bytes(First + 1));
    const bool given = call.tensor(First + 2, 3) != nullptr;
    effort.kv = (numbers(call, First) + numbers(call, First + 1)) * call.size(given ? First + 2 : First);
    return effort;
}

/// Queries and keys turned in place: 3 FLOPs a number.
std::optional<Effort> turned(const Call& call, std::size_t q, std::size_t k, std::size_t table, std::size_t positions) {
    if (call.tensor(q, 2) == nullptr) return std::nullopt;
    return moved(Kind::elementwise, 3.0 * (numbers(call, q) + numbers(call, k)),
                 2.0 * (call.bytes(q) + call.bytes(k)) + call.bytes(positions) + picked(call, table, positions));
}

/// The same, and the keys and values behind them into a cache of the type of argument `cache`.
std::optional<Effort> turned_into_cache(const Call& call, std::size_t q, std::size_t k, std::size_t v,
                                        std::size_t table, std::size_t positions, std::size_t cache) {
    auto effort = turned(call, q, k, table, positions);
    if (!effort) return std::nullopt;
    effort->activations += call.bytes(v);
    effort->kv = (numbers(call, k) + numbers(call, v)) * call.size(call.tensor(cache, 3) != nullptr ? cache : k);
    return effort;
}

/// (cache, where to, ...): what is written was read, in the cache's type.
std::optional<Effort> gathered(const Call& call) {
    if (call.tensor(0, 2) == nullptr || call.tensor(1, 2) == nullptr) return std::nullopt;
    Effort effort = moved(Kind::copy, 0.0, call.bytes(1));
    effort.kv = numbers(call, 1) * call.size(0);
    return effort;
}

/// A short convolution over the tokens, in place: 2 FLOPs for each number and tap. The last inputs of each sequence are
/// kept for the next call.
std::optional<Effort> convolved(const Call& call, std::size_t weight, bool one_by_one) {
    const Tensor* x = call.tensor(0, 2);
    const Tensor* taps = call.tensor(weight, 2);
    if (x == nullptr || taps == nullptr) return std::nullopt;
    const double width = at(*taps, -1);
    Effort effort = moved(Kind::elementwise, 2.0 * width * elements(*x), 2.0 * call.bytes(0));
    effort.weights = call.bytes(weight);
    if (one_by_one) effort.kv = 2.0 * (width - 1.0) * call.bytes(0);
    return effort;
}

/// (u, delta, A [channels x states], B, C, ...): a state of so many numbers a channel goes from token to token.
std::optional<Effort> scanned(const Call& call) {
    const Tensor* u = call.tensor(0, 2);
    const Tensor* a = call.tensor(2, 2);
    if (u == nullptr || a == nullptr) return std::nullopt;
    double read = 0.0;
    for (const std::size_t i : {0U, 1U, 3U, 4U, 6U}) read += call.bytes(i);
    Effort effort = moved(Kind::scan, 9.0 * elements(*u) * at(*a, -1), read + call.bytes(0));
    effort.weights = call.bytes(2) + call.bytes(5) + call.bytes(7);
    return effort;
}

}  // namespace

void engine_caches_operators(Formulas& table) {
    for (const char* name :
         {"unified_kv_cache_update", "unified_mla_kv_cache_update", "store_cache", "concat_and_cache_mla_grouped"})
        table[name] = appended<0>;
    table["indexer_k_quant_and_cache"] = [](const Call& c) -> std::optional<Effort> {
        if (c.tensor(0, 2) == nullptr) return std::nullopt;
        Effort effort = moved(Kind::copy, 0.0, c.bytes(0));
        effort.kv = numbers(c, 0);  // eight bits each
        return effort;
    };
    for (const char* name : {"cp_gather_cache", "gather_and_maybe_dequant_cache",
                             "cp_gather_and_upconvert_fp8_kv_cache", "cp_gather_indexer_k_quant_cache"})
        table[name] = gathered;

    table["apply_rope_inplace"] = [](const Call& c) { return turned(c, 0, 1, 2, 3); };
    table["fused_inplace_qknorm_rope"] = [](const Call& c) { return turned(c, 0, 1, 4, 5); };
    for (const char* name : {"flashinfer_rotary_embedding", "rotary_embedding_with_key"})
        table[name] = [](const Call& c) { return turned(c, 1, 2, 4, 0); };
    table["rotary_embedding_without_key"] = [](const Call& c) { return turned(c, 1, 2, 3, 0); };
    table["apply_rope_inplace_with_kvcache"] = [](const Call& c) { return turned_into_cache(c, 0, 1, 2, 5, 6, 3); };
    table["fused_rope_and_unified_kv_cache_update"] = [](const Call& c) {
        return turned_into_cache(c, 0, 1, 2, 4, 3, 1);
    };
    table["concat_and_cache_mla_rope_fused"] = [](const Call& c) { return turned_into_cache(c, 1, 2, 3, 4, 0, 7); };

    for (const char* name : {"causal_conv1d_fwd", "mamba_causal_conv1d_fwd"})
        table[name] = [](const Call& c) { return convolved(c, 1, false); };
    for (const char* name : {"causal_conv1d_update", "mamba_causal_conv1d_update"})
        table[name] = [](const Call& c) { return convolved(c, 2, true); };
    table["selective_scan_fwd"] = scanned;
}

}  // namespace roofline::analyze
