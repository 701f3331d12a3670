// A whole MLA block measured as one: latent projections, norms, rotary, absorbed or expanded attention, output product.
// Here `rows`, `inner`, `cols` are all projections taken together (inner x cols weights, rows tokens), `weight_bytes`
// their bytes, `output_bytes` the activations between the kernels, `input_bytes` what the attention streams (the cache
// in decode, expanded heads in prefill) and `flops` its products, halved where it multiplies 8-bit numbers. The peak is
// that of 16-bit numbers; narrower weights raise it by their width.
#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 10> constants = {{
    {"startup", "us", 40.0, 1.0, 500.0, "of some ten dependent kernels"},
    {"quantise", "us", 15.0, 0.3, 200.0, "more launches where weights are narrower than 16 bits"},
    {"bandwidth", "fraction", 0.7, 0.05, 0.95, "of the memory bandwidth"},
    {"gemm", "fraction", 0.6, 0.05, 0.95, "of the matrix peak in the projections"},
    {"narrow", "fraction", 0.6, 0.1, 1.0, "of that efficiency left with weights narrower than 16 bits"},
    {"activations", "passes", 3.0, 0.2, 30.0, "over what passes between the kernels"},
    {"compute", "fraction", 0.4, 0.01, 0.95, "of the matrix peak in the attention"},
    {"item", "us", 2.0, 0.05, 200.0, "for each tile of attention on a unit, beside its keys"},
    {"serial", "us", 0.003, 0.00001, 0.5, "per key of one sequence"},
    {"merge", "us", 4.0, 0.05, 30.0, "joining the parts of a long sequence"},
}};

constexpr double tile = 128.0;        // query rows of an item: heads of one token, or tokens of one head
constexpr double padded_rows = 16.0;  // the shortest side of a matrix instruction
constexpr double long_keys = 1024.0;  // from about here kernels split a sequence
constexpr double overlap = 0.3;       // of the shorter limits that is not hidden behind the longest

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const double startup = c[0], quantise = c[1], bandwidth = c[2], gemm = c[3], narrow = c[4], activations = c[5];
    const double compute = c[6], item = c[7], serial = c[8], merge = c[9];
    const auto stream = [&](double bytes) { return m.bandwidth > 0.0 ? bytes / (bandwidth * m.bandwidth) * 1e6 : 0.0; };
    const auto products = [&](double flops, double rate) { return m.peak > 0.0 ? flops / (rate * m.peak) * 1e6 : 0.0; };

    const double weights = k.inner * k.cols;
    const double width = weights > 0.0 && k.weight_bytes > 0.0 ? std::min(k.weight_bytes / weights, 2.0) : 2.0;
    const bool thin = width < 1.99;
    const double load_weights = stream(k.weight_bytes);
    const double multiply = products(2.0 * k.rows * weights, gemm * (thin ? narrow : 1.0) * 2.0 / width);
    const double projections = std::max(load_weights, multiply) + overlap * std::min(load_weights, multiply) +
                               stream(activations * k.output_bytes);

    const double queries = std::max(k.queries, 1.0);
    const double kv_heads = std::max(k.kv_heads, 1.0);
    const double rows = queries * std::max(k.heads, 1.0) / kv_heads;
    const double load = m.units > 0.0 ? k.sequences * kv_heads * std::max(1.0, rows / tile) / m.units : 0.0;
    // A prompt brings enough tiles to even out; decode waits for its last round.
    const double waves = queries <= 1.0 && load > 1.0 ? 0.5 * (load + std::ceil(load - 1e-9)) : 1.0;
    const double chain = serial * k.keys * waves;
    const double read = stream(k.input_bytes);
    const double pairs = products(k.flops * std::max(1.0, padded_rows / rows), compute);
    const double longest = std::max({chain, read, pairs});
    const double attention =
        item * load + merge * k.keys / (k.keys + long_keys) + longest + overlap * (chain + read + pairs - longest);

    return 1e-6 * (startup + (thin ? quantise : 0.0) + projections + attention);
}

}  // namespace

extern const KernelClass mla_module_class;
const KernelClass mla_module_class{"mla_module", "E12", constants, seconds};

}  // namespace roofline::predict
