// Logarithm, exponential and the normal distribution from additions, multiplications, divisions and square roots alone.
// IEEE rounds those alike everywhere; libm's versions differ in the last digit from one C library to the next, and one
// digit is enough to send a simulation another way.
#pragma once

namespace roofline::serving {

double natural_logarithm(double x);  // x > 0
double exponential(double x);
double power(double base, double exponent);  // base >= 0

/// The probability that a standard normal variable lies below z.
double normal_below(double z);
/// The z below which a standard normal variable lies with this probability, 0 < probability < 1.
double normal_quantile(double probability);

}  // namespace roofline::serving
