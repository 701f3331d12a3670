// What a simulation has under way: requests from their arrival to their end, and steps.
#pragma once

#include <cstdint>
#include <vector>

#include "roofline/serving/mix.hpp"
#include "roofline/serving/replica.hpp"

namespace roofline::serving {

/// A request from its arrival to its end. Tokens are whole numbers held in doubles.
struct Live {
    Request request;
    double eligible = 0.0;   // when the scheduler sees it
    double entered = -1.0;   // when it was first admitted
    double first = 0.0;      // when its first token came
    double last = 0.0;       // and its latest
    double computed = 0.0;   // tokens whose keys and values are there
    double target = 0.0;     // tokens to compute before the next one can be written
    double generated = 0.0;  // tokens written, of each sample
    double held = 0.0;       // bytes of the pool
    int flights = 0;         // steps under way that it is part of
    bool writing = false;    // one of them will write a token
    bool counted = false;    // belongs to the measured requests
    bool guest = false;      // found half-way at the start: never measured
};

/// A step under way.
struct Flight {
    struct Part {
        std::uint32_t id = 0;
        bool chunk = false;
        bool writes = false;
    };
    double finish = 0.0;
    StepCost cost;
    double decoding = 0.0;
    double chunk_tokens = 0.0;
    std::vector<Part> parts;
};

}  // namespace roofline::serving
