// Matrix products: y[m x n] = x[m x k] W, W in the format of the row.
#include "roofline/assess/measured.hpp"
#include "roofline/predict/kernel_type.hpp"

namespace roofline::assess {
namespace {

std::string read(const RowContext& row, Measurement& into) {
    const double m = row.size("m");
    const double n = row.size("n");
    const double k = row.size("k");
    if (m == 0.0 || n == 0.0 || k == 0.0) return "m, n or k is missing, or is no whole number up to a billion";
    const auto type = engine_type(into.type);
    if (!type) return "unknown number type";
    const double activation_bits = bits(*type);
    predict::Kernel kernel;
    kernel.pattern = Pattern::product;
    kernel.flops = 2.0 * m * n * k;
    kernel.weight_bytes = stored_bytes(into.type, k, n);
    kernel.input_bytes = m * k * activation_bits / 8.0;
    kernel.output_bytes = 2.0 * m * n;
    kernel.rows = m;
    kernel.cols = n;
    kernel.inner = k;
    into.calls = {call_of(row.device, "gemm", *type, kernel)};
    into.fit_type = predict::type_on(row.device, into.type, *type);
    // Everyone calls the same library for bf16; narrower types differ in who quantises the activations, and how.
    into.stack = into.type == "bf16" ? std::string() : lower_case(row.text("framework"));
    into.family = whole(n) + "x" + whole(k);
    into.label = "m " + whole(m) + ", n " + whole(n) + ", k " + whole(k);
    return {};
}

}  // namespace

extern const RowReader gemm_rows;
const RowReader gemm_rows{{"gemm"}, {"m", "n", "k"}, read};

}  // namespace roofline::assess
