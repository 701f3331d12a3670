#include "roofline/serving/elementary.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace roofline::serving {
namespace {

using std::numbers::ln2;
constexpr double sqrt_half = 0.707106781186547524400844362105;
constexpr double inverse_sqrt_two_pi = 0.398942280401432677939946059934;

/// Phi(z) - 1/2 for z >= 0: z + z^3/3 + z^5/(3 x 5) + ... times the density. All terms are positive.
double above_middle(double z, double density) {
    double term = z;
    double sum = z;
    for (double odd = 3.0; term > sum * 1e-17; odd += 2.0) {
        term *= z * z / odd;
        sum += term;
    }
    return sum * density;
}

}  // namespace

double natural_logarithm(double x) {
    if (!(x > 0.0)) return -std::numeric_limits<double>::infinity();
    int exponent = 0;
    double mantissa = std::frexp(x, &exponent);  // exact
    if (mantissa < sqrt_half) {
        mantissa *= 2.0;
        --exponent;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)), the argument at most 0.172: eleven terms reach the last bit.
    const double s = (mantissa - 1.0) / (mantissa + 1.0);
    const double square = s * s;
    double sum = 0.0;
    for (int odd = 23; odd >= 1; odd -= 2) sum = sum * square + 1.0 / odd;
    return 2.0 * s * sum + exponent * ln2;
}

double exponential(double x) {
    if (x > 709.0) return std::numeric_limits<double>::infinity();
    if (x < -745.0) return 0.0;
    const double whole = std::floor(x / ln2 + 0.5);
    const double rest = x - whole * ln2;  // within +-0.35: fifteen terms reach the last bit
    double sum = 1.0;
    for (int i = 15; i >= 1; --i) sum = 1.0 + sum * rest / i;
    return std::ldexp(sum, static_cast<int>(whole));
}

double power(double base, double exponent) {
    if (exponent == 0.0) return 1.0;
    return base > 0.0 ? exponential(exponent * natural_logarithm(base)) : 0.0;
}

double normal_below(double z) {
    const double size = z < 0.0 ? -z : z;
    if (size > 8.0) return z < 0.0 ? 0.0 : 1.0;
    const double half = above_middle(size, inverse_sqrt_two_pi * exponential(-size * size / 2.0));
    return z < 0.0 ? 0.5 - half : 0.5 + half;
}

double normal_quantile(double probability) {
    const bool upper = probability > 0.5;
    const double wanted = upper ? probability - 0.5 : 0.5 - probability;
    // Phi is concave above the middle, so Newton from the middle climbs towards the answer without passing it.
    double z = 0.0;
    for (int round = 0; round < 60; ++round) {
        const double density = inverse_sqrt_two_pi * exponential(-z * z / 2.0);
        if (density <= 0.0) break;
        const double step = (wanted - above_middle(z, density)) / density;
        z += step;
        if (!(step > 1e-13)) break;
    }
    return upper ? z : -z;
}

}  // namespace roofline::serving
