// Every rank has something else for each other: tokens on their way to experts and back.
#include "roofline/predict/kernels/collective_path.hpp"

namespace roofline::predict {
namespace {

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const RankShape shape(k);
    return exchange_seconds(k, m, c, shape, (shape.local - 1.0) / shape.ranks,
                            (shape.ranks - shape.local) / shape.ranks);
}

}  // namespace

extern const KernelClass all_to_all_class;
const KernelClass all_to_all_class{"all_to_all", "E18", exchange_constants, seconds};

}  // namespace roofline::predict
