// Matrix products that serving engines bring along: scaled ones of eight and four bits, of packed weights, of experts.
#include <algorithm>

#include "roofline/analyze/call.hpp"

namespace roofline::analyze {
namespace {

/// Bytes of every tensor from an index on: packed weights with their scales, zeros and order.
double bytes_from(const Call& call, std::size_t first) {
    double sum = 0.0;
    for (std::size_t i = first; i < call.signature().arguments.size(); ++i) sum += call.bytes(i);
    return sum;
}

/// (out, a, b, scales..., bias): sizes are those of what is written. `packed`: numbers in one element of `a`.
std::optional<Effort> written_product(const Call& call, double packed, std::string_view type) {
    const Tensor* out = call.tensor(0, 2);
    const Tensor* a = call.tensor(1, 2);
    const Tensor* b = call.tensor(2, 2);
    if (out == nullptr || a == nullptr || b == nullptr || at(*a, 0) != at(*out, 0)) return std::nullopt;
    const Product sizes{at(*out, 0), at(*out, 1), at(*a, 1) * packed, 1.0};
    if (elements(*b) * packed != sizes.columns * sizes.inner) return std::nullopt;
    return product(sizes, type.empty() ? call.type(1) : type, bytes_from(call, 2), call.bytes(0) + call.bytes(1));
}

/// (a, b [k x n] or [n x k], ...): what is written is of sixteen bits.
std::optional<Effort> scaled_product(const Call& call) {
    const Tensor* a = call.tensor(0, 2);
    const Tensor* b = call.tensor(1, 2);
    if (a == nullptr || b == nullptr || at(*a, -1) == 0.0) return std::nullopt;
    const double inner = at(*a, -1);
    const double columns = at(*b, 0) == inner ? at(*b, 1) : at(*b, 1) == inner ? at(*b, 0) : 0.0;
    const Product sizes{elements(*a) / inner, columns, inner, 1.0};
    if (columns == 0.0) return std::nullopt;
    return product(sizes, call.type(0), bytes_from(call, 1), call.bytes(0) + 2.0 * sizes.rows * sizes.columns);
}

/// (a, its scales, b [n x k], its scales, out), of DeepGEMM.
std::optional<Effort> deep_product(const Call& call) {
    const Tensor* a = call.tensor(0, 2);
    const Tensor* b = call.tensor(2, 2);
    const Tensor* out = call.tensor(4, 2);
    if (a == nullptr || b == nullptr || out == nullptr || at(*b, -1) != at(*a, -1)) return std::nullopt;
    const Product sizes{elements(*a) / at(*a, -1), at(*b, 0), at(*a, -1), 1.0};
    return product(sizes, call.type(0), call.bytes(2) + call.bytes(3),
                   call.bytes(0) + call.bytes(1) + 2.0 * sizes.rows * sizes.columns);
}

/// (a [m x k/2], b [n x k/2] or turned, their scales, ...): two numbers of four bits a byte.
std::optional<Effort> four_bit_product(const Call& call) {
    const Tensor* a = call.tensor(0, 2);
    const Tensor* b = call.tensor(1, 2);
    if (a == nullptr || b == nullptr || at(*a, -1) == 0.0) return std::nullopt;
    const double inner = at(*a, -1);
    const double columns = at(*b, -1) == inner ? at(*b, 0) : at(*b, 0) == inner ? at(*b, -1) : 0.0;
    if (columns == 0.0) return std::nullopt;
    const Product sizes{elements(*a) / inner, columns, 2.0 * inner, 1.0};
    return product(sizes, "Float4", call.bytes(1) + call.bytes(3),
                   call.bytes(0) + call.bytes(2) + 2.0 * sizes.rows * sizes.columns);
}

/// (packed weight, x, type, columns), of GGUF's formats.
std::optional<Effort> gguf_product(const Call& call) {
    const Tensor* x = call.tensor(1, 2);
    const auto columns = static_cast<double>(call.integer(3, 0));
    if (call.tensor(0, 2) == nullptr || x == nullptr || columns <= 0.0) return std::nullopt;
    const Product sizes{elements(*x) / at(*x, -1), columns, at(*x, -1), 1.0};
    return product(sizes, call.type(1), call.bytes(0), call.bytes(1) + sizes.rows * columns * call.size(1));
}

/// Packed weights of fewer bits, unpacked on the way: the product is of the type of `a`.
Effort packed_product(const Call& call, double columns, double weights) {
    const Tensor& a = *call.tensor(0, 2);
    const Product sizes{elements(a) / at(a, -1), columns, at(a, -1), 1.0};
    return product(sizes, call.type(0), weights,
                   call.bytes(0) + sizes.rows * sizes.columns * std::max(2.0, call.size(0)));
}

/// Columns are those of the last dimension of argument `of`, times `packed`.
std::optional<Effort> packed_by(const Call& call, std::size_t of, std::ptrdiff_t dimension, double packed = 1.0) {
    const Tensor* a = call.tensor(0, 2);
    const Tensor* told = call.tensor(of, 1);
    if (a == nullptr || told == nullptr || at(*a, -1) == 0.0) return std::nullopt;
    return packed_product(call, at(*told, dimension) * packed, bytes_from(call, 1));
}

/// Where the sizes m, n, k stand among the arguments as plain numbers, m and k known: gives n.
double columns_named(const Call& call, double rows, double inner) {
    for (std::size_t i = 1; i + 2 < call.signature().arguments.size(); ++i) {
        if (static_cast<double>(call.integer(i, -1)) == rows && static_cast<double>(call.integer(i + 2, -1)) == inner)
            return static_cast<double>(std::max<std::int64_t>(0, call.integer(i + 1, 0)));
    }
    return 0.0;
}

/// Marlin in all its versions: (a, out?, packed weight, scales, ..., m, n, k, ...).
std::optional<Effort> marlin(const Call& call) {
    const Tensor* a = call.tensor(0, 2);
    if (a == nullptr || at(*a, -1) == 0.0) return std::nullopt;
    const double columns = columns_named(call, at(*a, 0), at(*a, -1));
    if (columns == 0.0) return std::nullopt;
    return packed_product(call, columns, bytes_from(call, 2));
}

/// What even routing of so many rows touches of so many experts on average.
double experts_used(double experts, double rows) {
    double missed = 1.0;
    for (double row = 0.0; row < rows && missed > 1e-9; row += 1.0) missed *= 1.0 - 1.0 / experts;
    return experts * (1.0 - missed);
}

/// `rows` pairs of a token and an expert; the weights of all experts take `bytes`.
Effort experts_product(Product sizes, std::string_view type, double experts, double bytes, double activations) {
    Effort effort = product(sizes, type, bytes * experts_used(experts, sizes.rows) / experts, activations);
    effort.estimated = true;
    return effort;
}

/// (out [rows x n], a, b [experts x ...], ...).
std::optional<Effort> grouped_product(const Call& call, std::size_t first, double packed) {
    const Tensor* out = call.tensor(0, 2);
    const Tensor* a = call.tensor(first, 2);
    const Tensor* b = call.tensor(first + 1, 3);
    if (out == nullptr || a == nullptr || b == nullptr || at(*b, 0) < 1.0) return std::nullopt;
    const Product sizes{at(*out, 0), at(*out, -1), at(*a, -1) * packed, 1.0};
    return experts_product(sizes, call.type(first), at(*b, 0), call.bytes(first + 1),
                           call.bytes(0) + call.bytes(first));
}

/// (tokens [t x h], w1 [experts x 2i x h], w2 [experts x h x i], weights [t x k], ids [t x k], ...): both products of
/// the experts. What else it starts (activation, sorting) are operators of their own in the trace.
std::optional<Effort> experts(const Call& call) {
    const Tensor* x = call.tensor(0, 2);
    const Tensor* first = call.tensor(1, 3);
    const Tensor* second = call.tensor(2, 3);
    const Tensor* chosen = call.tensor(3, 2);
    if (x == nullptr || first == nullptr || second == nullptr || chosen == nullptr) return std::nullopt;
    const double count = at(*first, 0);
    const double rows = at(*x, 0) * at(*chosen, 1);
    if (count < 1.0 || at(*first, 2) != at(*x, 1) || at(*second, 1) != at(*x, 1)) return std::nullopt;
    const double wide = at(*first, 1);
    const double inner = at(*second, 2);
    // One product stands for both: their FLOPs and bytes are added.
    const Product sizes{rows, wide, at(*x, 1), 1.0};
    Effort effort = experts_product(sizes, call.type(0), count, call.bytes(1) + call.bytes(2),
                                    call.bytes(0) + rows * (wide + inner + at(*x, 1)) * call.size(0) + call.bytes(0));
    effort.flops += 2.0 * rows * at(*x, 1) * inner;
    effort.own_kernels = true;
    return effort;
}

/// (a, out?, packed weights [experts x ...], ..., block size, top-k, ..., m, n, k, ...): the first two plain numbers
/// behind the tensors are the size of a block and how many experts a token has.
std::optional<Effort> marlin_experts(const Call& call) {
    const Tensor* a = call.tensor(0, 2);
    const Tensor* weight = call.tensor(2, 3);
    if (a == nullptr || weight == nullptr || at(*weight, 0) < 1.0) return std::nullopt;
    const double columns = columns_named(call, at(*a, 0), at(*a, -1));
    double each = 0.0;
    std::size_t seen = 0;
    for (std::size_t i = 3; i < call.signature().arguments.size() && seen < 2; ++i) {
        if (call.tensor(i, 1) != nullptr || call.integer(i, -1) < 0) continue;
        if (++seen == 2) each = static_cast<double>(call.integer(i, 0));
    }
    if (columns == 0.0 || each == 0.0) return std::nullopt;
    const Product sizes{at(*a, 0) * each, columns, at(*a, -1), 1.0};
    double packed = 0.0;  // what is one per expert: weights, scales, zeros
    for (std::size_t i = 2; i < call.signature().arguments.size(); ++i) {
        const Tensor* some = call.tensor(i, 2);
        if (some != nullptr && at(*some, 0) == at(*weight, 0)) packed += call.bytes(i);
    }
    return experts_product(sizes, call.type(0), at(*weight, 0), packed,
                           call.bytes(0) + sizes.rows * sizes.columns * call.size(0));
}

/// (a, out, packed weights [experts x n x ...], scales, zeros, ..., top-k as the tenth): without the names of Marlin.
std::optional<Effort> packed_experts(const Call& call) {
    const Tensor* a = call.tensor(0, 2);
    const Tensor* weight = call.tensor(2, 3);
    const auto each = static_cast<double>(call.integer(9, 0));
    if (a == nullptr || weight == nullptr || at(*weight, 0) < 1.0 || each < 1.0) return std::nullopt;
    const Product sizes{at(*a, 0) * each, at(*weight, 1), at(*a, -1), 1.0};
    return experts_product(sizes, call.type(0), at(*weight, 0), call.bytes(2) + call.bytes(3) + call.bytes(4),
                           call.bytes(0) + sizes.rows * sizes.columns * call.size(0));
}

}  // namespace

void engine_products_operators(Formulas& table) {
    for (const char* name :
         {"cutlass_scaled_mm", "cutlass_scaled_mm_azp", "dsv3_fused_a_gemm", "dsv3_router_gemm", "fp32_router_gemm"})
        table[name] = [](const Call& c) { return written_product(c, 1.0, ""); };
    table["cutlass_scaled_fp4_mm"] = [](const Call& c) { return written_product(c, 2.0, "Float4"); };
    for (const char* name : {"fp8_scaled_mm", "int8_scaled_mm", "fp8_blockwise_scaled_mm", "triton_scaled_mm",
                             "w8a8_triton_block_scaled_mm_func", "w8a8_block_fp8_matmul", "rocm_unquantized_gemm",
                             "rocm_unquantized_gemm_impl", "_weight_int8pack_mm", "bf16_gemm_dispatch",
                             "flashinfer_bmm_fp8", "flashinfer_gemm_fp8_nt_groupwise", "flashinfer_mm_mxfp8"})
        table[name] = scaled_product;
    for (const char* name :
         {"marlin_gemm", "gptq_marlin_gemm", "awq_marlin_gemm", "fp8_marlin_gemm", "gptq_marlin_24_gemm"})
        table[name] = marlin;
    table["gptq_gemm"] = [](const Call& c) { return packed_by(c, 1, 1); };
    table["awq_gemm"] = [](const Call& c) { return packed_by(c, 2, -1); };  // the scales are as wide as the result
    table["machete_mm"] = [](const Call& c) { return packed_by(c, 1, -1); };
    table["_weight_int4pack_mm"] = [](const Call& c) { return packed_by(c, 3, 1); };
    table["allspark_w8a16_gemm"] = [](const Call& c) -> std::optional<Effort> {
        if (c.tensor(0, 2) == nullptr || c.integer(4, 0) <= 0) return std::nullopt;
        return packed_product(c, static_cast<double>(c.integer(4, 0)), bytes_from(c, 1));
    };
    for (const char* name : {"fp8_gemm_nt_op", "deep_gemm_fp8_fp8_bf16_nt", "deep_gemm_mxfp8_fp8_bf16_nt"})
        table[name] = deep_product;
    for (const char* name : {"flashinfer_mm_fp4", "fp4_gemm", "matmul_mxf4_bf16", "matmul_nvf4_bf16"})
        table[name] = four_bit_product;
    for (const char* name : {"ggml_mul_mat_a8", "ggml_mul_mat_vec_a8"}) table[name] = gguf_product;
    table["cutlass_w4a8_mm"] = [](const Call& c) { return packed_by(c, 4, -1); };  // a scale for each column
    table["apply_fp8_marlin_linear"] = table["allspark_w8a16_gemm"];               // n is the fifth of both
    for (const char* name : {"cutlass_moe_mm", "cutlass_w4a8_moe_mm", "es_fp8_blockwise_scaled_grouped_mm"})
        table[name] = [](const Call& c) { return grouped_product(c, 1, 1.0); };
    for (const char* name : {"cutlass_fp4_group_mm", "cutlass_mxfp4_group_mm"})
        table[name] = [](const Call& c) { return grouped_product(c, 1, 2.0); };
    table["fp8_blockwise_scaled_grouped_mm"] = [](const Call& c) { return grouped_product(c, 6, 1.0); };
    for (const char* name : {"inplace_fused_experts", "outplace_fused_experts", "fused_experts"}) table[name] = experts;
    table["moe_wna16_marlin_gemm"] = marlin_experts;
    table["moe_wna16_gemm"] = packed_experts;
}

}  // namespace roofline::analyze
