// What a plan chooses from: devices with counts, number types, ways to cut one replica, batches and step sizes. Each
// way to cut a replica is realised and checked against memory once; its steps are then priced once for every batch and
// step size, and all further candidates (copies, pools, splits) are arithmetic on those prices.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/predict/replica.hpp"
#include "roofline/predict/setup.hpp"
#include "roofline/serving/policy.hpp"

namespace roofline::decide {

/// Devices of one kind that may be used, up to a count.
struct Offer {
    Device device;
    predict::Execution execution;
    double count = 1.0;
    std::optional<double> price;  // of a device for an hour, in whatever currency
};

/// One replica: a device, types and a way to cut the model.
struct Layout {
    std::size_t offer = 0;
    std::size_t types = 0;
    model::Deployment deployment;
    bool speculates = false;  // tokens are guessed ahead and checked all at once

    double devices() const { return deployment.replica_devices(); }
};

/// The time of a round, in which every running sequence is given a token, or as many as were guessed right.
struct Round {
    double expected = 0.0;
    double limit = 0.0;
    Bound bound = Bound::memory;
};

/// A step size and what it leaves of the memory.
struct StepSize {
    double tokens = 0.0;         // budget of a step of one scheduler
    double largest_batch = 0.0;  // sequences of the replica that fit with it
    double prompt_tokens = 0.0;  // of a round that only computes prompts
    Round prompts;               // such a round
    Round alone;                 // one that computes a single prompt, or what a step takes of it
};

/// A round that decodes `batch` sequences and computes `prompt_tokens` beside them; one entry per step size.
struct Mixed {
    double prompt_tokens = 0.0;  // 0: no room for a prompt, or the batch does not fit with this step size
    double passes = 0.0;         // rounds that one prompt takes
    double own = 0.0;            // seconds of a round that computes, of all schedulers' prompts, its own
    Round round;
};

struct BatchPrice {
    double batch = 1.0;
    Round decode;
    std::vector<Mixed> mixed;
    serving::TokensPerStep tokens = {};  // that a round gives a sequence

    /// Rounds that an output of so many tokens takes after its first, as S2 counts them.
    double rounds(double output) const;
};

/// A layout that fits, with its prices.
struct PricedLayout {
    Layout layout;
    std::string weight_types;
    std::string kv_type;
    double prompt_bytes_on_device = 0.0;  // cache of one prompt that one device holds
    double weights_on_device = 0.0;       // bytes of the fullest device
    std::vector<StepSize> steps;
    std::vector<BatchPrice> batches;
    bool batch_held_by_memory = false;  // the largest batch is what fits, not what is asked for at most
};

struct Choices {
    std::vector<Offer> offers;
    std::vector<predict::TypeChoice> types = {{}};
    std::vector<double> steps = {512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0};
    double most_sequences = 1024.0;         // of one scheduler
    double longest = 0.0;                   // tokens of the longest request; 0: all are alike
    serving::Speculation speculation = {};  // tried beside none; without tokens: not tried
    double utilisation = 0.9;  // share of a device's memory, where the setup names no engine that shares it out
};

/// P1: what was passed over before it was priced, counted in candidates.
struct Passed {
    double impossible = 0.0;   // the model cannot be cut so
    double not_fitting = 0.0;  // weights and one sequence, or this batch, do not fit
};

/// The batches of one scheduler that are tried, at most `most`: every one while small, then 4 to the octave.
std::vector<double> batch_grid(double most);

/// What decides how a model can be cut at all.
struct Cuttable {
    double layers = 1.0;
    bool experts = false;  // the model has experts, which can be spread
    double tokens = 0.0;   // of a sequence, prompt and output: long ones can be shared by devices
};

/// Ways to cut one replica over at most `count` devices.
std::vector<model::Deployment> ways_to_cut(const Device& device, double count, const Cuttable& what);

/// True if any layer has routed experts.
bool has_experts(const predict::Setup& setup);

/// P1, P2. The workload of `setup` says how long prompts and outputs are; its device, types and deployment are
/// replaced. Empty: impossible or does not fit; `passed` counts why.
std::optional<PricedLayout> price(const predict::Setup& setup, const Choices& choices, const Layout& layout,
                                  Passed& passed);

/// The question of a layout as `predict` would ask it, for an engine with this step size and batch.
predict::Setup setup_of(const predict::Setup& setup, const Choices& choices, const Layout& layout, double step_tokens,
                        double sequences);

}  // namespace roofline::decide
