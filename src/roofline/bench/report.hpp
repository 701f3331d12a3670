// What a run of `bench` found: an account whose records carry the best measured time beside the three predicted ones,
// and behind each of them what every backend did.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "roofline/bench/backend.hpp"
#include "roofline/bench/step.hpp"
#include "roofline/bench/task.hpp"
#include "roofline/core/account.hpp"
#include "roofline/io/report_json.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::bench {

/// One stage in one number type at one batch.
struct StageRun {
    std::string dtype;                           // as asked for; empty: the checkpoint's
    AccountStage stage;                          // names, work and predicted times as `predict` gives them
    Bound bound = Bound::memory;                 // of the whole stage
    std::vector<Planned> planned;                // one per record
    std::vector<std::vector<Outcome>> outcomes;  // one list per record; empty where nothing could be run
    std::vector<StepOutcome> steps;
    std::string no_step;  // why there is no whole step
};

/// How fast processors read memory just before and just after everything that was run, in bytes a second.
struct MemoryRead {
    double before = 0.0;
    double after = 0.0;
};

struct Run {
    Account account;
    std::vector<StageRun> stages;
    std::vector<std::string> backends;  // in the order they were asked for
    std::vector<std::string> descriptions;
    bool roofs_known = false;
    int threads = 0;                        // 0: not on the processors
    std::optional<MemoryRead> memory_read;  // where the account's device is one that as many threads were measured on
    std::vector<std::string> busy_because;  // what disturbed the machine meanwhile; empty: nothing was seen
};

/// A stage as predicted, nothing measured yet.
StageRun start_stage(const predict::Scenario& scenario, const predict::StageReport& stage, std::string dtype);

/// The fastest of those that were right; null where none was.
const Outcome* winner(const std::vector<Outcome>& outcomes);
const StepOutcome* winner(const std::vector<StepOutcome>& steps);

/// A measured time that is shorter than its limit: the limit is not the truth, and the reader is told what to doubt.
struct FasterThanLimit {
    double ratio = 0.0;   // limit over measured: above 1
    std::string because;  // which of the two explanations there are: a cache, or a ceiling that is too low
};
/// Empty where the roofs are not known or the time keeps to them. A limit of a record is that of one call here.
std::optional<FasterThanLimit> faster_than_limit(const Run& run, const StageRun& stage, std::size_t record,
                                                 const Outcome& outcome);
std::optional<FasterThanLimit> faster_than_limit(const Run& run, const StageRun& stage, const StepOutcome& step);

/// Puts the winners' times into the records and the stages into the account. Without a whole step a stage has no
/// measured time: sums of operators are no step. What is faster than its limit, a busy machine, and ceilings that hold
/// no longer are among the notes.
void settle(Run& run);

/// The account and, under "bench", what every backend did.
io::OrderedJson run_json(const Run& run, const io::RunInfo& info);

}  // namespace roofline::bench
