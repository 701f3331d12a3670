// Numbers that know their unit: flops, bytes, seconds, tokens and their ratios. `Flops + Bytes` does not compile.
// Inside: base units (one flop, one byte, one second) as a double. GB is 1e9 and GiB is 2^30; neither lives here.
#pragma once

namespace roofline {

/// A product of powers of the base units, e.g. Quantity<1, 0, -1, 0> is flops per second.
template <int FlopPower, int BytePower, int SecondPower, int TokenPower>
struct Quantity {
    double value = 0.0;

    constexpr Quantity() = default;
    constexpr explicit Quantity(double base_units) : value(base_units) {}

    constexpr Quantity& operator+=(Quantity other) {
        value += other.value;
        return *this;
    }
    friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value + b.value); }
    friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value - b.value); }
    friend constexpr Quantity operator*(Quantity a, double factor) { return Quantity(a.value * factor); }
    friend constexpr Quantity operator*(double factor, Quantity a) { return Quantity(factor * a.value); }
    friend constexpr Quantity operator/(Quantity a, double divisor) { return Quantity(a.value / divisor); }

    // Written out: a defaulted <=> makes g++ 12 emit a chain of branches here.
    friend constexpr bool operator<(Quantity a, Quantity b) { return a.value < b.value; }
    friend constexpr bool operator>(Quantity a, Quantity b) { return a.value > b.value; }
    friend constexpr bool operator<=(Quantity a, Quantity b) { return a.value <= b.value; }
    friend constexpr bool operator>=(Quantity a, Quantity b) { return a.value >= b.value; }
    friend constexpr bool operator==(Quantity a, Quantity b) { return a.value == b.value; }
};

/// Units multiply; when all of them cancel, what is left is a plain number.
template <int F1, int B1, int S1, int T1, int F2, int B2, int S2, int T2>
constexpr auto operator*(Quantity<F1, B1, S1, T1> a, Quantity<F2, B2, S2, T2> b) {
    if constexpr (F1 + F2 == 0 && B1 + B2 == 0 && S1 + S2 == 0 && T1 + T2 == 0) {
        return a.value * b.value;
    } else {
        return Quantity<F1 + F2, B1 + B2, S1 + S2, T1 + T2>(a.value * b.value);
    }
}

template <int F1, int B1, int S1, int T1, int F2, int B2, int S2, int T2>
constexpr auto operator/(Quantity<F1, B1, S1, T1> a, Quantity<F2, B2, S2, T2> b) {
    if constexpr (F1 == F2 && B1 == B2 && S1 == S2 && T1 == T2) {
        return a.value / b.value;
    } else {
        return Quantity<F1 - F2, B1 - B2, S1 - S2, T1 - T2>(a.value / b.value);
    }
}

using Flops = Quantity<1, 0, 0, 0>;
using Bytes = Quantity<0, 1, 0, 0>;
using Seconds = Quantity<0, 0, 1, 0>;
using Tokens = Quantity<0, 0, 0, 1>;
using FlopsPerSecond = Quantity<1, 0, -1, 0>;
using BytesPerSecond = Quantity<0, 1, -1, 0>;
using TokensPerSecond = Quantity<0, 0, -1, 1>;
using FlopsPerByte = Quantity<1, -1, 0, 0>;
using Watts = double;  // energy is not part of the algebra yet: only ever shown beside it

template <class Q>
constexpr Q larger(Q a, Q b) {
    return a < b ? b : a;
}

}  // namespace roofline
