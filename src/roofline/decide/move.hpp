// A move: one kind of change to how a model is run. Each is one file in moves/; the folder is the registry.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/decide/score.hpp"
#include "roofline/decide/surroundings.hpp"

namespace roofline::decide {

/// What becomes of the model's answers.
enum class Answers { same, rounded, another_model };
/// Which machines it takes.
enum class Machines { same, more, other };
std::string_view name(Answers answers);
std::string_view name(Machines machines);

/// What a move is told about the question.
struct Question {
    const Candidate& asked;
    const predict::Scenario& scenario;  // of what was asked
    const Score& score;
    const Surroundings& around;
    Goal goal;
};

struct Variant {
    std::string name;   // "fp8 weights and activations"
    std::string costs;  // in words: quality, memory, latency, machines
    /// Changes a candidate; what it returns are flags of `predict` that do the same (empty: there are none). An error
    /// is the reason why it does not apply. It may be asked of candidates that other moves have changed already.
    std::function<Result<std::string>(Candidate&)> apply;
    Answers answers = Answers::same;
    bool what_if = false;  // rests on something that cannot be had by changing a setting: never part of a combination
};

struct Move {
    std::string_view name;
    std::string_view title;
    /// Combined moves are applied in this order: what depends on memory that is left comes late.
    int order = 0;
    std::vector<Variant> (*variants)(const Question& question);
};

/// By name.
std::span<const Move* const> moves();

/// A variant that only says why there is nothing to try.
Variant not_here(std::string name, std::string reason);

}  // namespace roofline::decide
