// error: (conversion from .* to non-scalar type .*requested|no viable conversion)
#include "roofline/core/quantity.hpp"

// Multiplying where one should divide.
roofline::Seconds time = roofline::Bytes(16e9) * roofline::BytesPerSecond(3.35e12);
