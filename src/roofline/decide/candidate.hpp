// What is weighed against what was asked: a setup, and the two things that no setup says: whether tokens are drafted
// ahead, and whether prompts are computed elsewhere.
#pragma once

#include <optional>

#include "roofline/predict/setup.hpp"

namespace roofline::decide {

/// D2. Assumptions, all of them: nothing about a draft can be derived from the model it drafts for.
struct Speculation {
    double draft_tokens = 3.0;  // guessed ahead of every step
    double acceptance = 0.7;    // probability that a guess is right, given that those before it were
    double draft_cost = 0.05;   // of guessing one token, as a share of a decode step

    /// Guesses up to the first wrong one, and the token that the model itself adds.
    double tokens_per_step() const;
};

struct Candidate {
    predict::Setup setup;
    std::optional<Speculation> speculation;
    bool prompts_elsewhere = false;  // other devices compute the prompts: no step of these holds a chunk of one
};

}  // namespace roofline::decide
