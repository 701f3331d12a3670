// error: (no match for .*operator[+]=|no viable overloaded)
#include "roofline/core/quantity.hpp"

void grow(roofline::Seconds& time) {
    time += 1e-6;
}
