// Whole steps that were timed without looking inside: a prompt, a token, a request, a server under load. Benchmarks of
// engines give these. Each becomes a stage of the account; where the model is known it is held against its prediction,
// and where only its size is, against the time its weights take.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "roofline/analyze/analysis.hpp"

namespace roofline::analyze {

struct Run {
    enum class Kind { prefill, decode, request };
    Kind kind = Kind::decode;
    std::string name;  // of the stage: "prefill", "decode at 4096"
    double batch = 1.0;
    double prompt = 0.0;       // new tokens of a sequence, in prefill and request
    double context = 0.0;      // tokens in the cache before it (prefill) or when a token is written (decode)
    double generate = 0.0;     // of a request
    double chunk = 0.0;        // prompts are done in pieces of this many tokens; zero: in one
    double repetitions = 1.0;  // steps or runs that were averaged
    Seconds measured{};        // of one step or request
};

struct RunsOf {
    std::string title;
    std::string model;        // as the file names it; empty: not said
    std::string device;       // likewise
    double parameters = 0.0;  // zero: not said
    double weight_bytes = 0.0;
    std::string profile;  // of the program that ran, for predictions: "llama.cpp"; empty: the one that was asked for
    std::vector<Run> runs;
    std::vector<std::string> notes;
};

/// The device that is meant: the one asked for, else the one the file names. Empty where neither is known, which is
/// then in `notes`.
std::optional<Device> device_meant(const std::string& named, const Options& options, std::vector<std::string>& notes);

Result<Analysis> analysis_of(const RunsOf& file, const Options& options);

/// The setup of the options with the device and workload that ran, and with the constants of that device. `profile`:
/// how the program that ran launches its kernels, in place of the one that stands where nobody chose; empty: that one.
Result<predict::Setup> setup_for(const Options& options, const Device& device, const predict::Workload& workload,
                                 const std::string& profile = {});

}  // namespace roofline::analyze
