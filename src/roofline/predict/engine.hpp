// How an engine shares out a device's memory: what it takes for itself, what it keeps aside, and in what pieces it
// hands the rest to sequences. Data (data/engines/*.json): an engine, or a version of one that behaves differently, is
// a file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/device.hpp"
#include "roofline/model/deployment.hpp"

namespace roofline::predict {

struct EngineRules {
    /// Of what the utilisation is a fraction: of all memory, of what is free before the weights are loaded, or of what
    /// is free after a trial run.
    enum class FractionOf { total, free_before, free_after };
    /// ideal: bytes, no pages. tables: layers of one size share blocks of one pool, each kind with tables of its own.
    /// pools: each kind of layer has a pool of its own, split once when the engine starts.
    enum class Layout { ideal, tables, pools };
    /// How the engine counts the tokens its pool holds: blocks divided evenly among the tables; sequences of the
    /// longest length times that length; or the tokens of the pool without windows.
    enum class Prints { even, concurrency, full };

    /// The largest step and batch an engine starts with, for devices with at least this much memory.
    struct Step {
        Figure from;  // bytes
        Figure tokens;
        Figure sequences;
        std::vector<std::string> except;  // devices whose name begins so take the next line
    };

    /// Memory left for activations and graphs, where the fraction is worked out from it.
    struct Reserve {
        Figure fixed;
        Figure per_token;  // of the largest step
        Figure per_rank;
        Figure per_sequence;  // of the largest captured batch
        Figure least;         // on devices with more memory than `least_above`
        Figure least_above;
    };

    std::string name = "none";
    std::string title;
    std::string versions;   // those whose behaviour this is
    bool reserves = false;  // a request is admitted when all it may write will fit; else it may be thrown out later

    Figure utilisation{1.0, "", ""};
    FractionOf fraction_of = FractionOf::total;
    std::optional<Reserve> reserve;   // replaces the utilisation unless one is asked for
    bool activations_inside = false;  // true: the trial run's activations come out of the fraction
    bool graphs_inside = false;       // likewise captured graphs

    std::vector<Step> steps;  // most memory first

    Figure context{};               // of the process on the device, before anything is loaded
    Figure runtime{};               // what libraries take beside tensors once the model runs
    Figure collectives{};           // further buffers where several devices run one model
    Figure graphs{};                // captured graphs
    Figure sampler{};               // bytes per row of logits and vocabulary entry in the trial run
    Figure streams{};               // residual streams alive beside the widest operator
    Figure expert_padding{};        // width to which experts in mxfp4 are filled up; 0: they are not
    bool expert_workspace = false;  // grouped experts keep their inputs and outputs in a workspace that stays

    Layout layout = Layout::ideal;
    Prints prints = Prints::full;
    Figure block{1.0, "", ""};  // tokens
    Figure group_slack{1.0, "",
                       ""};  // layers of the larger kind per layer of the smaller up to which both are one group
    Figure steps_in_flight{1.0, "", ""};  // whose blocks a window has not given back yet
    Figure state_blocks{1.0, "", ""};     // of a recurrent state, for each sequence
    Figure reserved_blocks{};             // never handed out
    std::optional<Figure>
        window_ratio;  // tokens of a windowed pool per token of the full one; empty: as one sequence needs
    std::optional<Figure> state_ratio;  // bytes of the pool of states per byte of the others; empty: likewise

    /// F37: how it brings tokens to spread experts unless it is told.
    struct Exchange {
        model::ExpertExchange way = model::ExpertExchange::all_to_all;
        std::vector<std::string> except;  // devices whose name begins so: the other way
        std::string source;
        std::string note;
    };
    std::optional<Exchange> exchange;

    std::map<std::string, Source> sources;
};

/// The engine's own way on a device; empty: it does not say.
std::optional<model::ExpertExchange> usual_exchange(const EngineRules& rules, std::string_view device);

/// What is asked of an engine's memory. What is not said is the engine's default.
struct MemoryOptions {
    EngineRules rules;
    std::optional<double> utilisation;   // --gpu-memory-utilization
    std::optional<double> block_tokens;  // --block-size
    std::optional<double> longest;       // --max-model-len
    std::optional<double> sequences;     // --max-num-seqs
    std::optional<double> step_tokens;   // --max-num-batched-tokens
    double ranks = 1.0;                  // devices that run one copy of the model together
};

}  // namespace roofline::predict
