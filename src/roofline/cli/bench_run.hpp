// What `bench` does between its options and its report: models and stages are predicted, their operators and steps run
// where they were asked to run.
#pragma once

#include <string>
#include <vector>

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
    double seconds = 0.0;
    bool quick = false;
};

Result<bench::Run> run_bench(const BenchOptions& options);

}  // namespace roofline::cli
