// A library or a set of kernels that can run tasks in this machine's memory. One file in backends/ each, with
// NAME_backend(); the folder is the registry. Every backend gets the same operands, is held against the same answer in
// fp64 before it is timed, and is refused if it is wrong.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/bench/harness.hpp"
#include "roofline/bench/operands.hpp"
#include "roofline/bench/task.hpp"
#include "roofline/bench/threads.hpp"
#include "roofline/core/problem.hpp"

namespace roofline::bench {

/// A task made ready: whatever a library converts or packs once is done.
class Kernel {
  public:
    virtual ~Kernel() = default;
    /// On one of the copies of the weights or of the cache; the answer goes to Operands::y.
    virtual void run(std::size_t copy) = 0;
    /// After the run that is checked: brings into y what was written elsewhere.
    virtual void collect() {}
    /// What any run so far said went wrong.
    virtual std::optional<std::string> failure() const { return std::nullopt; }
};

class Backend {
  public:
    virtual ~Backend() = default;
    virtual std::string name() const = 0;
    virtual std::string describe() const = 0;  // "OpenBLAS 0.3.21, neoversev1": for the report
    /// Whether it is on this machine; the problem says what is missing.
    virtual Result<void> available() = 0;
    /// Why it cannot run a task; empty: it can.
    virtual std::optional<std::string> refuses(const Task& task) const = 0;
    virtual Result<std::unique_ptr<Kernel>> prepare(Operands& operands, Threads& threads) = 0;
};

/// In the order of their names.
std::vector<std::unique_ptr<Backend>> cpu_backends();

/// What came of one task on one backend.
struct Outcome {
    std::string task;
    std::string backend;
    Timing timing;
    double flops = 0.0;  // of one call
    double bytes = 0.0;
    double error = 0.0;      // relative to the size of the values
    double tolerance = 0.0;  // that it was allowed
    std::size_t buffers = 1;
    std::string problem;    // why there is no time: not empty means nothing else counts
    bool declined = false;  // nothing went wrong: the backend does not do such tasks

    bool measured() const { return problem.empty(); }
};

/// How long each task is measured.
struct Pace {
    Budget budget;
    std::int64_t rotate_past = 192LL << 20;  // bytes: three times a large last-level cache
};

/// Checks, then times. What goes wrong is in the outcome.
Outcome run_task(Backend& backend, Operands& operands, Threads& threads, const Pace& pace);

}  // namespace roofline::bench
