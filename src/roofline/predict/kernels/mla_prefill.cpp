// MLA attention over a prompt, causal, on expanded keys and values (or on the latent where the kernel keeps it
// absorbed: then key_dim and value_dim say so). Tiles of queries are dealt out to the units; the diagonal of the causal
// triangle and short prompts fill their tiles only partly.
#include <algorithm>
#include <array>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 9> constants = {{
    {"startup", "us", 10.0, 0.3, 100.0, "rotary, cache write and attention launches, from first to last useful byte"},
    {"host", "us", 20.0, 0.1, 500.0, "issuing the launches when no graph does it; hides behind the kernels"},
    {"bandwidth", "fraction", 0.75, 0.02, 0.95, "of the memory bandwidth"},
    {"compute", "fraction", 0.6, 0.01, 0.95, "of the matrix peak, on whole tiles"},
    {"activations", "passes", 2.0, 0.2, 30.0, "over queries, keys, values and results: copies, quantising"},
    {"item", "us", 2.0, 0.01, 50.0, "for each tile of queries on a unit, beside its keys"},
    {"serial", "us", 0.01, 0.00001, 0.5, "per key, for the longest tile of a lone sequence"},
    {"tile", "queries", 128.0, 8.0, 512.0, "that a unit works on together"},
    {"overlap", "fraction", 0.3, 0.01, 1.0, "of the shorter limits that is not hidden behind the longest"},
}};

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const double startup = c[0], host = c[1], bandwidth = c[2], compute = c[3], activations = c[4];
    const double item = c[5], serial = c[6], tile = c[7], overlap = c[8];

    const double queries = std::max(k.queries, 1.0);
    const double keys = std::max(k.keys, queries);
    const double load = m.units > 0.0 ? k.sequences * k.heads * std::max(1.0, queries / tile) / m.units : 0.0;

    // Every row of a tile walks to the last key of the tile, half a tile further than it needs on average.
    const double needed = keys - 0.5 * (queries - 1.0);
    const double padding = std::max(1.0, tile / queries) * (needed + 0.5 * (tile - 1.0)) / needed;
    const double products = m.peak > 0.0 ? k.flops * padding / (compute * m.peak) * 1e6 : 0.0;
    const double stream = m.bandwidth > 0.0 ? (k.weight_bytes + activations * (k.input_bytes + k.output_bytes)) /
                                                  (bandwidth * m.bandwidth) * 1e6
                                            : 0.0;
    const double chain = serial * keys;
    const double longest = std::max({chain, stream, products});

    const double device = startup + item * load + longest + overlap * (chain + stream + products - longest);
    return 1e-6 * (device + host * host / (device + host));  // a smooth maximum of the two
}

}  // namespace

extern const KernelClass mla_prefill_class;
const KernelClass mla_prefill_class{"mla_prefill", "E11", constants, seconds};

}  // namespace roofline::predict
