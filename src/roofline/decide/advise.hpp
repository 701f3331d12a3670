// Every move alone, then the best combinations, ranked by what is asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "roofline/decide/compute_bound.hpp"
#include "roofline/decide/move.hpp"
#include "roofline/decide/sensitivity.hpp"

namespace roofline::decide {

/// What came of a variant. `helps` and the two after it fit; where what was asked does not, all that fits helps.
enum class Verdict { helps, changes_nothing, hurts, does_not_fit, does_not_apply };
std::string_view name(Verdict verdict);

struct Outcome {
    std::string move;
    std::string variant;
    std::string flags;  // of `predict`, that do the same; empty: it has none
    std::string costs;
    Verdict verdict = Verdict::does_not_apply;
    std::string reason;           // why it does not apply
    Score score;                  // unless it does not apply
    double value = 0.0;           // what the goal makes small: seconds, or money where devices have a price
    double gain = 1.0;            // so many times better under the goal; 1 where what was asked does not fit
    std::optional<double> price;  // of its device and hour, where cost is asked for
    Answers answers = Answers::same;
    Machines machines = Machines::same;
    bool what_if = false;
};

struct Combination {
    std::string title;  // what it was chosen among
    std::vector<std::string> parts;
    std::vector<double> gains;  // of the first part, of the first two, ...
    std::vector<std::string> flags;
    std::vector<std::string> costs;
    Score score;
    double gain = 1.0;
    Machines machines = Machines::same;
};

struct Advice {
    Goal goal = Goal::tpot;
    predict::Scenario scenario;
    Score asked;
    std::optional<double> price;  // money per hour of the device asked about
    std::vector<Sensitivity> sensitivities;
    std::vector<Outcome> outcomes;  // by verdict, best first, then by name
    std::vector<Combination> combinations;
    ComputeBoundBatch compute_bound;
    std::vector<std::string> notes;
};

/// Refused where the question itself makes no sense: a model that cannot be cut as asked.
Result<Advice> advise(const Candidate& asked, Goal goal, const Surroundings& around);

}  // namespace roofline::decide
