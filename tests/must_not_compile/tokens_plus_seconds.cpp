// error: (no match for .*operator[+]|invalid operands to binary expression)
#include "roofline/core/quantity.hpp"

auto sum = roofline::Tokens(128.0) + roofline::Seconds(1.0);
