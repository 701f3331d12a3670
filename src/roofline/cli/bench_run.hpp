// What `bench` does between its options and its report: models and stages are predicted, their operators and steps run
// where they were asked to run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "roofline/ask/scenario_options.hpp"
#include "roofline/bench/report.hpp"
#include "roofline/core/problem.hpp"

namespace roofline::cli {

struct BenchOptions {
    std::string model;
    std::string device = "cpu";
    std::string roofs;  // empty: `this`, or the built-in device of that name, or none
    std::string batch = "1";
    std::string context = "prompt";
    std::string prompt = "512";
    std::string dtype;
    std::string kv_dtype;
    std::string stage = "decode";
    std::string only;  // operators or steps; empty: both
    std::string backends;
    std::vector<std::string> plugins;
    std::string layers;
    int threads = 0;  // 0: every processor this process may use
    std::string seconds;
    bool quick = false;
    // A real engine instead of kernels.
    std::string engine;
    std::string gguf;
    std::string node_modules;
    std::string generate = "32";
};

Result<bench::Run> run_bench(const BenchOptions& options);

/// llama.cpp on a GGUF, as the whole steps of the same report (bench_engine.cpp).
Result<bench::Run> run_engine(const BenchOptions& options);

/// A question about a device that has no name: one that was measured, or of which nothing is known.
Result<predict::Setup> setup_on(ask::ScenarioOptions asked, const Device& device,
                                std::optional<double> layers = std::nullopt);
/// What to hold results of this place against, by as many threads as the run has (bench_roofs.cpp); where nothing is
/// known, a device without figures and a note.
Result<Device> choose_roofs(const BenchOptions& options, bool cuda, const std::string& title, bench::Run& run);
/// How fast as many threads read memory now, as `measure` looks at it for a moment. Empty where the ceilings are not
/// measured ones of as many threads.
std::optional<double> memory_read_now(const Device& roofs, int threads);
std::string processor_name();

}  // namespace roofline::cli
