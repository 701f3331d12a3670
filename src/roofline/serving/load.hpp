// How requests come to a replica.
#pragma once

namespace roofline::serving {

struct Load {
    enum class Kind {
        saturated,  // there is always another request waiting
        users,      // `value` users, each of whom asks again as soon as the answer is there
        rate,       // `value` requests a second, whether answered or not
        trace       // the arrivals of the mix's trace
    };
    Kind kind = Kind::saturated;
    double value = 0.0;
    bool poisson = true;  // rate: arrivals at random; else evenly spaced

    static Load saturated() { return {}; }
    static Load users(double count) { return {.kind = Kind::users, .value = count}; }
    static Load rate(double per_second) { return {.kind = Kind::rate, .value = per_second}; }
    static Load even_rate(double per_second) { return {.kind = Kind::rate, .value = per_second, .poisson = false}; }
    static Load trace() { return {.kind = Kind::trace}; }
};

}  // namespace roofline::serving
