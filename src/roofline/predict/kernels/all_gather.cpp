// Every rank ends up with the parts of all: each part goes round a ring.
#include "roofline/predict/kernels/collective_path.hpp"

namespace roofline::predict {

extern const KernelClass all_gather_class;
const KernelClass all_gather_class{"all_gather", "E16", exchange_constants, ring_seconds};

}  // namespace roofline::predict
