// Every rank ends up with its part of the sum: a gather the other way round, adding up on the way.
#include "roofline/predict/kernels/collective_path.hpp"

namespace roofline::predict {

extern const KernelClass reduce_scatter_class;
const KernelClass reduce_scatter_class{"reduce_scatter", "E17", exchange_constants, ring_seconds};

}  // namespace roofline::predict
