// The absorbed projections around latent attention in decode, as DeepSeek V3 has them: one small product per head, of
// the queries into the latent before the kernel, of the latent into values after it.
#include "roofline/assess/measured.hpp"
#include "roofline/predict/kernel_type.hpp"

namespace roofline::assess {
namespace {

constexpr double latent = 512.0;
constexpr double head_dim = 128.0;

std::string read(const RowContext& row, Measurement& into) {
    const double heads = row.size("heads");
    const double tokens = row.size("tokens");
    if (heads == 0.0 || tokens == 0.0) return "heads or tokens are missing or zero";
    const auto type = engine_type(into.type);
    if (!type) return "unknown number type";
    const bool before = into.kind == "mla_gen_pre";
    predict::Kernel kernel;
    kernel.pattern = Pattern::product;
    kernel.tokens = tokens;
    kernel.copies = heads;
    kernel.rows = tokens;
    kernel.cols = before ? latent : head_dim;
    kernel.inner = before ? head_dim : latent;
    kernel.flops = 2.0 * heads * kernel.rows * kernel.cols * kernel.inner;
    kernel.weight_bytes = heads * stored_bytes(into.type, kernel.inner, kernel.cols);
    kernel.input_bytes = heads * kernel.rows * kernel.inner * bits(*type) / 8.0;
    kernel.output_bytes = 2.0 * heads * kernel.rows * kernel.cols;
    into.calls = {call_of(row.device, "batched_gemm", *type, kernel)};
    into.fit_type = predict::type_on(row.device, into.type, *type);
    into.stack = lower_case(row.text("framework"));
    into.family = whole(heads);
    into.label =
        whole(tokens) + " tokens, " + whole(heads) + " heads, " + whole(kernel.inner) + " to " + whole(kernel.cols);
    return {};
}

}  // namespace

extern const RowReader batched_rows;
const RowReader batched_rows{{"mla_gen_pre", "mla_gen_post"}, {"heads", "tokens"}, read};

}  // namespace roofline::assess
