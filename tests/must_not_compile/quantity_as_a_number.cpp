// error: (cannot convert .*Bytes.* to .*double|no viable conversion)
#include "roofline/core/quantity.hpp"

double size = roofline::Bytes(2.0);
