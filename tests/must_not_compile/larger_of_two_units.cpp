// error: no matching function for call to .*larger
#include "roofline/core/quantity.hpp"

auto slowest = roofline::larger(roofline::Seconds(1.0), roofline::Bytes(2.0));
