// error: (conversion from .* to non-scalar type .*requested|no viable conversion)
#include "roofline/core/quantity.hpp"

roofline::Bytes size = roofline::Flops(8.0) / roofline::Bytes(2.0);
