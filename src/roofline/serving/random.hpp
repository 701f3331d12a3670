// Random numbers that are the same on every machine: SplitMix64 and our own elementary functions, nothing of <random>,
// whose distributions each library writes its own way.
#pragma once

#include <cstdint>

#include "roofline/serving/elementary.hpp"

namespace roofline::serving {

class Random {
  public:
    /// Streams of one seed are independent: arrivals, lengths and luck do not shift each other.
    explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : state_(seed + stream * 0xd1342543de82ef95ULL) {
        next();
        const std::uint64_t mixed = next();
        state_ ^= mixed;
    }

    std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15ULL;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31U);
    }
    /// In (0, 1): the middle of one of 2^52 cells, so neither end is ever met.
    double uniform() { return (static_cast<double>(next() >> 12U) + 0.5) * 0x1p-52; }
    double waiting_time(double mean) { return -mean * natural_logarithm(uniform()); }

  private:
    std::uint64_t state_;
};

}  // namespace roofline::serving
