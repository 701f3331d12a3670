// Element-wise kernels by the bytes they move: norms, rotary, activations, adds, cache writes, as `bytes` says.
#include "roofline/assess/measured.hpp"

namespace roofline::assess {
namespace {

/// What the operators of a model call such kernels.
std::string_view kind_of(std::string_view op) {
    if (op.ends_with(":rotary")) return "rotary";
    if (op.find("norm") != std::string_view::npos) return name(Kind::norm);
    if (op.find("write") != std::string_view::npos) return name(Kind::copy);
    if (op.find("embedding") != std::string_view::npos) return name(Kind::gather);
    if (op.find("argmax") != std::string_view::npos) return name(Kind::select);
    return name(Kind::elementwise);
}

std::string read(const RowContext& row, Measurement& into) {
    const double bytes = row.amount("bytes");
    const double tokens = row.size("tokens");
    if (bytes == 0.0 || tokens == 0.0) return "bytes or tokens are missing, zero or too large";
    predict::Kernel kernel;
    kernel.rows = tokens;
    kernel.input_bytes = bytes / 2.0;
    kernel.output_bytes = bytes / 2.0;
    const std::string_view kind = kind_of(into.kind);
    const bool selects = kind == name(Kind::select);
    Call call = call_of(row.device, selects ? "selection" : "elementwise", DType::bf16, kernel);
    // The operands were driven out of the cache first: as if there were none.
    call.cold = row.text("cache") == "cold";
    if (call.cold) call.machine.cache = 0.0;
    into.calls = {call};
    into.fit_type = kind;
    into.stack = lower_case(row.text("framework"));
    if (into.kind.ends_with("index_copy")) into.stack += "/index_copy";  // PyTorch's own way of writing a cache
    into.family = std::string(into.kind) + "/" + std::string(row.text("width"));
    into.label = std::string(row.text("tokens")) + " x " + std::string(row.text("width")) + ", " +
                 std::string(row.text("cache")) + ", " + std::string(row.text("kernel"));
    return {};
}

}  // namespace

extern const RowReader elementwise_rows;
const RowReader elementwise_rows{{"elementwise:"}, {"bytes", "tokens", "width", "cache", "launches"}, read};

}  // namespace roofline::assess
