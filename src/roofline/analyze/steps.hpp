// The steps of a run: prefills and decodes, found by the ranges people named, by the embedding that begins each pass
// through a model, or by launches of a graph. Steps that are alike form a stage.
#pragma once

#include <string>
#include <vector>

#include "roofline/analyze/items.hpp"
#include "roofline/analyze/structure.hpp"

namespace roofline::analyze {

struct Step {
    std::string name;        // as annotated, or "decode 3"
    std::string kind;        // prefill, decode, mixed, encode, train, step
    std::int64_t begin = 0;  // on the device
    std::int64_t end = 0;
    std::int64_t host_end = 0;  // of its annotation; zero: none
    std::vector<std::uint32_t> items;
    double batch = 0.0;
    double tokens = 0.0;
    double context = 0.0;
    double chunk = 0.0;  // of a mixed step: tokens of prompts among `tokens`; `batch` are the sequences that write
    double layers = 0.0;
    bool experts = false;
    bool graph = false;  // most of it was started by launches of graphs
    std::uint32_t stage = none;

    std::int64_t wall() const { return end - begin; }
};

struct Stage {
    std::string name;
    std::string kind;
    std::vector<std::uint32_t> steps;
    double batch = 0.0;
    double tokens = 0.0;
    double context = 0.0;  // mean over its steps
    double chunk = 0.0;    // of mixed steps: tokens of prompts
    bool graph = false;    // as its steps
};

struct Steps {
    std::vector<Step> all;
    std::vector<Stage> stages;
    std::vector<std::string> roles;  // by number; Item::role refers to them
    double layers = 0.0;             // that repeat in a step, or in all that ran where there are no steps
    std::string found_by;            // "annotations", "embeddings", "graph launches"; empty: none were found
};

/// Finds them and writes step and role into the items.
Steps find_steps(const Timeline& timeline, Items& items);

/// What the search for roles sees of an item.
Piece piece_of(const Timeline& timeline, const Items& items, const Item& item);

}  // namespace roofline::analyze
