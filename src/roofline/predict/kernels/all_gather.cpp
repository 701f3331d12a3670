// Every rank ends up with the parts of all: each part goes round a ring.
#include "roofline/predict/kernels/collective_path.hpp"

namespace roofline::predict {
namespace {

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const RankShape shape(k);
    return exchange_seconds(k, m, c, shape, (shape.local - 1.0) / shape.local,
                            (shape.nodes > 1.0 ? (shape.ranks - 1.0) / shape.ranks / shape.local : 0.0));
}

}  // namespace

extern const KernelClass all_gather_class;
const KernelClass all_gather_class{"all_gather", "E16", exchange_constants, seconds};

}  // namespace roofline::predict
