// From values to places on paper: linear and logarithmic scales and their ticks. Logarithms are our own, made of
// operations that IEEE 754 rounds alike everywhere, so that a chart is the same to the byte on every machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace roofline::render::chart {

/// Of a positive finite number; right to about 1e-15.
double log10_of(double value);

/// Of an integer from -300 to 300; exact up to 1e22.
double power_of_ten(int exponent);

/// The largest whole exponent whose power of ten is not above the value.
int decade_of(double value);

struct Scale {
    double low = 0.0;  // the values at the two ends
    double high = 1.0;
    double from = 0.0;  // their places
    double to = 1.0;
    bool logarithmic = false;
    std::string_view unit = {};  // written at every tick, with the letter that fits: 10 us, 1 ms

    double at(double value) const;
    bool holds(double value) const { return value >= low && value <= high; }
};

struct Tick {
    double value = 0.0;
    std::string label;  // empty: a minor one
};

/// Every decade with a label and 2 to 9 without; where there are few decades 2 and 5 have labels too, where there are
/// many only every second or third has.
std::vector<Tick> log_ticks(double low, double high);
/// About `wanted` ticks at 1, 2 or 5 times a power of ten.
std::vector<Tick> linear_ticks(double low, double high, int wanted = 6);
std::vector<Tick> ticks_of(const Scale& scale);

/// As short as it goes, with the letter engineers use: 0.1, 20, 300, 1k, 50 G.
std::string engineering(double value);

/// The same with a unit, small values too: 10 us, 1 ms, 20 s.
std::string engineering(double value, std::string_view unit);

/// Whole decades around both, at least `least` of them.
Scale log_scale(double low, double high, double from, double to, int least = 1);
/// From zero, or from the lowest value where that is below, to a round number above the highest.
Scale linear_scale(double low, double high, double from, double to);

}  // namespace roofline::render::chart
