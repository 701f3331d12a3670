// Prices of steps read off a small table, for whoever asks for many that differ little.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "roofline/serving/replica.hpp"

namespace roofline::serving {

/// Costs of steps by their prompt tokens, by how far into their prompts those are, and by decoding sequences; between
/// the points linear.
struct StepTable {
    static constexpr std::size_t counts = 5;  // of decoding sequences: none to the most, evenly
    using ByDecoding = std::array<StepCost, counts>;
    struct Row {
        double tokens = 0.0;
        // What a token of them looks at on average, itself in the middle: at the head of prompts and at their end.
        double near = 0.0;
        double far = 0.0;
        ByDecoding at_head{};
        ByDecoding at_end{};
        StepCost per_key{};  // that sequences which write look at beyond the mean
    };
    double most_decoding = 1.0;  // sequences
    double mean_context = 0.0;   // tokens of each
    std::vector<Row> rows;       // by tokens, ascending from 0

    /// `keys`: tokens that the sequences which write look at, all together.
    StepCost at(double prompt_tokens, double looked_at, double decoding, double keys) const;
};

}  // namespace roofline::serving
