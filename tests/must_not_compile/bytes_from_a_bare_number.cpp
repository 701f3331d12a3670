// error: (conversion from .* to non-scalar type .*requested|no viable conversion)
#include "roofline/core/quantity.hpp"

roofline::Bytes size = 16e9;
