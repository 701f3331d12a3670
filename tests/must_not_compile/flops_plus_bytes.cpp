// error: (no match for .*operator[+]|invalid operands to binary expression)
#include "roofline/core/quantity.hpp"

auto sum = roofline::Flops(1.0) + roofline::Bytes(1.0);
