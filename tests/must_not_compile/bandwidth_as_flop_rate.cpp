// error: (conversion from .* to non-scalar type .*requested|no viable conversion)
#include "roofline/core/quantity.hpp"

roofline::FlopsPerSecond peak = roofline::BytesPerSecond(3.35e12);
