// error: (no match for .*operator<|invalid operands to binary expression)
#include "roofline/core/quantity.hpp"

bool less = roofline::Seconds(1.0) < roofline::Bytes(1.0);
