// Records of accounts as points: how intense, how fast, how much of its stage. Roofline charts, number lines, pages and
// terminals draw the same ones.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "roofline/core/account.hpp"

namespace roofline::render::chart {

struct Spot {
    std::size_t account = 0;
    std::size_t stage = 0;  // index in the account
    const Record* record = nullptr;
    const AccountStage* of = nullptr;
    double intensity = 0.0;       // FLOP per byte of memory
    double rate = 0.0;            // FLOP/s in the time below
    double seconds = 0.0;         // measured where it was, else expected, else the limit
    double share = 0.0;           // of the records' time of its stage
    Bound bound = Bound::memory;  // at the limit
};

/// What cannot stand on logarithmic axes: work without FLOPs, and work that never touches memory.
struct Unseen {
    int without_flops = 0;
    double without_flops_share = 0.0;  // of the time of all stages
    int on_chip = 0;
    double on_chip_share = 0.0;
    int beyond = 0;  // with figures that no machine has
};

struct Spots {
    std::vector<Spot> spots;
    Unseen unseen;
};

Spots spots_of(std::span<const Account> accounts);

/// All records of a stage as one: their FLOPs over their bytes, in the sum of their times. `record` is null.
std::vector<Spot> sums_of(std::span<const Account> accounts);

/// Measured where it was, else expected, else the limit.
Seconds shown_time(const Times& times);
/// Whether anybody predicted it. Of what ran without a model to hold it against, attainable stands in for expected.
bool has_expected(const Times& times);
bool has_measured(std::span<const Account> accounts);

/// "attention.qkv": without what all of them begin with; "attention.qkv, sliding" where other kinds of layers have one
/// too.
std::string short_name(const Record& record, const AccountStage& stage);
/// The same for a point that others stand beside: "ffn.down, int8" where its report has the stage in other number types
/// too and their operator of that name lies elsewhere.
std::string point_name(const Spot& spot, const Account& account);
/// "decode, batch 1, context 4,096"
std::string describe_stage(const AccountStage& stage);
/// The same with its rates: "...: 151.1 tokens/s expected, 215.5 at the limit".
std::string stage_line(const AccountStage& stage);
/// What tells the stages apart, in the order of accounts and their stages ("bf16, batch 8"), and what they have in
/// common
/// ("decode, context 1,024").
struct StageNames {
    std::vector<std::vector<std::string>> own;
    std::string common;
};
StageNames stage_names(std::span<const Account> accounts);
/// What a mouse that rests on it is told.
std::string explain_spot(const Spot& spot, const Account& account);
/// What tells an account from the others beside it: the device, the model, or both.
std::string short_title(std::span<const Account> accounts, std::size_t account);
/// "llama-3.1-8b on h200-sxm and h100-sxm"
std::string common_title(std::span<const Account> accounts);
/// For the foot of a chart; empty where all can be seen.
std::vector<std::string> notes_about(const Unseen& unseen);

}  // namespace roofline::render::chart
