// The right way to write what the files beside this folder get wrong. It compiles, so they fail for their own reason.
#include "roofline/core/quantity.hpp"

using namespace roofline;

auto sum = Flops(1.0) + Flops(1.0);
bool less = Seconds(1.0) < Seconds(2.0);
Bytes size{16e9};
Tokens tokens = Tokens(128.0) + Tokens(1.0);
FlopsPerByte intensity = Flops(8.0) / Bytes(2.0);
FlopsPerSecond peak{989.4e12};
Seconds time = Bytes(16e9) / BytesPerSecond(3.35e12);
Seconds slowest = larger(Seconds(1.0), time);
double number = Bytes(2.0).value;

void grow(Seconds& total) {
    total += Seconds(1e-6);
}
