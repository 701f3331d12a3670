// What `analyze` finds in a file, whatever its format: an account (device, stages, records) that every other verb can
// read, and beside it what only something that really ran has: streams that were busy or idle, steps in their order,
// what could not be explained, and what all that means in words.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "roofline/core/account.hpp"
#include "roofline/predict/setup.hpp"

namespace roofline::analyze {

/// One queue of a device (a CUDA stream of a rank) over the time that was traced. The parts add up to the wall time:
/// attributed + unattributed + idle = wall. What ran at the same time on one stream is counted once.
struct StreamTime {
    std::string name;  // "device 0 stream 7"
    Seconds wall{};
    Seconds attributed{};    // to an operator whose FLOPs or bytes are known
    Seconds unattributed{};  // kernels that no operator explains
    Seconds idle{};
    double kernels = 0.0;
};

/// Where the wall time of a stage (or of everything) went, over all streams of a device together.
struct WhereTimeWent {
    Seconds wall{};
    Seconds computing{};             // at least one kernel of an operator ran
    Seconds copying{};               // nothing but copies and fills
    Seconds communicating{};         // nothing but collectives: communication that nothing hides
    Seconds idle{};                  // nothing ran
    Seconds idle_launch{};           // of it: the host was busy starting the next kernel
    Seconds idle_host{};             // of it: the host was busy with something else, or waited
    Seconds hidden_communication{};  // collectives that ran beside kernels; part of `computing`
};

/// One step as it ran: a prefill, the third decode.
struct StepTime {
    std::string stage;     // the name of its AccountStage
    std::string name;      // "prefill", "decode 3"
    double begin_s = 0.0;  // since the first event
    Seconds wall{};
    Seconds busy{};
    double kernels = 0.0;
    double graph_kernels = 0.0;  // of them: started by the launch of a graph
    double batch = 0.0;          // sequences; zero: unknown
    double tokens = 0.0;         // new tokens; zero: unknown
    double context = 0.0;        // zero: unknown
    double layers = 0.0;         // that repeat in it; zero: none were found
};

/// A kernel or a copy of a step, for a picture of it.
struct RanInStep {
    std::string name;  // its role in the model, or what ran
    Group group = Group::other;
    double begin_s = 0.0;  // since the step began
    double end_s = 0.0;
    std::size_t stream = 0;
};

/// The last step of a stage, kernel by kernel.
struct StepEvents {
    std::string stage;
    std::string step;
    std::vector<std::string> streams;
    std::vector<RanInStep> events;
};

/// One thing worth knowing, with the evidence, what to do about it, and what that would buy here.
struct Diagnosis {
    std::string stage;     // empty: the whole run
    std::string words;     // "decode is launch-bound: 61% of its time passes between kernels of 4 us"
    std::string evidence;  // the figures it rests on
    std::string move;      // what answers it: "cuda-graphs"; empty where nothing does
    std::string advice;    // the move in words
    Seconds saved{};       // at most, of the wall time of `stage`; zero: not known
    double gain = 0.0;     // at most: wall / (wall - saved); zero: not known
};

/// Time that no operator explains, by the name of what ran.
struct Unexplained {
    std::string name;
    double count = 0.0;
    Seconds time{};
    std::string why;  // "no operator launched it", "aten::foo: no formula"
};

/// Expected against real, of one operator or of a stage as a whole.
struct Joined {
    std::string stage;
    std::string name;
    Seconds limit{};
    Seconds expected{};
    Seconds measured{};
};

/// What one of several ranks of a run is among the others.
struct RankShare {
    double number = -1.0;  // as the file says; -1: it does not
    double of = 0.0;       // ranks of the run; zero: the file does not say
    Seconds collectives{};
    Seconds waiting{};  // of that: beyond the rank that spends least in them
    bool slowest = false;
};

struct Analysis {
    Account account;     // records carry `measured`; limit and attainable are those of the device, where one is known
    std::string format;  // "PyTorch profiler trace"
    std::string file;
    std::optional<RankShare> rank;  // of a distributed run
    std::vector<StreamTime> streams;
    WhereTimeWent whole;                    // of the whole run
    std::vector<WhereTimeWent> time_went;   // one per stage of the account, each of one step; or empty
    std::vector<AccountStage> by_operator;  // other ways to cut the stages of the account: operators with their shapes,
    std::vector<AccountStage> by_kernel;    // kernels; empty where the account is all there is
    std::vector<StepTime> steps;
    std::vector<StepEvents> timelines;  // one per stage that has steps; empty where the file has no times
    std::vector<Diagnosis> diagnoses;
    std::vector<Unexplained> unattributed;
    std::vector<std::string> memory_notes;  // what counters say about how memory was used
    std::vector<Joined> joined;             // with a prediction to hold it against
    bool counted_bytes = false;             // bytes of the cache are all that it gave, those of memory among them
    bool device_known = false;              // false: no ceilings, so no percentages
    bool partial = false;                   // the file was cut off; a note says where
    double events = 0.0;
    double bytes_read = 0.0;
    double layers = 0.0;                // that repeat in a step; zero: none were found
    Seconds kernel_time{};              // all kernels of the file
    Seconds inferred_time{};            // of those explained: by the model, not by shapes
    std::vector<std::string> inferred;  // names of records that hold such
    Seconds explained_time{};           // those of operators whose FLOPs and bytes are known
};

struct Options {
    std::optional<predict::Setup> model;  // what ran, where it is known; its workload is replaced by what was traced
    std::optional<Device> device;         // instead of the one the file names
    std::string command;
    std::function<void(double done)> progress;  // 0 to 1, as the file is read; may be empty
};

}  // namespace roofline::analyze
