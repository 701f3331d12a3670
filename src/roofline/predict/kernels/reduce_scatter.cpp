// Every rank ends up with its part of the sum: a gather the other way round, adding up on the way.
#include "roofline/predict/kernels/collective_path.hpp"

namespace roofline::predict {
namespace {

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const RankShape shape(k);
    return exchange_seconds(k, m, c, shape, (shape.local - 1.0) / shape.local,
                            (shape.nodes > 1.0 ? (shape.ranks - 1.0) / shape.ranks / shape.local : 0.0));
}

}  // namespace

extern const KernelClass reduce_scatter_class;
const KernelClass reduce_scatter_class{"reduce_scatter", "E17", exchange_constants, seconds};

}  // namespace roofline::predict
