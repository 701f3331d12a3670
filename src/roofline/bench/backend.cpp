#include "roofline/bench/backend.hpp"

#include <cmath>

#include <fmt/format.h>

namespace roofline::bench {

#define ROOFLINE_ENTRY(name) std::unique_ptr<Backend> name##_backend();
#include "roofline/bench/backends.inc"
#undef ROOFLINE_ENTRY

std::vector<std::unique_ptr<Backend>> cpu_backends() {
    std::vector<std::unique_ptr<Backend>> backends;
#define ROOFLINE_ENTRY(name) backends.push_back(name##_backend());
#include "roofline/bench/backends.inc"
#undef ROOFLINE_ENTRY
    return backends;
}

Outcome run_task(Backend& backend, Operands& operands, Threads& threads, const Pace& pace) {
    const Task& task = operands.task;
    Outcome outcome;
    outcome.task = task.name;
    outcome.backend = backend.name();
    outcome.flops = task.flops;
    outcome.bytes = task.bytes;
    outcome.buffers = operands.copies();
    outcome.tolerance = tolerance(task);
    if (const auto reason = backend.refuses(task)) {
        outcome.problem = *reason;
        outcome.declined = true;
        return outcome;
    }
    operands.poison();
    auto kernel = backend.prepare(operands, threads);
    if (!kernel) {
        outcome.problem = kernel.error().text;
        return outcome;
    }
    // A residual is added in place; every other output must be overwritten whole.
    if (task.kind == TaskKind::add || task.kind == TaskKind::add_two)
        std::copy_n(operands.x.begin(), operands.y.size(), operands.y.begin());
    (*kernel)->run(0);
    (*kernel)->collect();
    if (const auto failure = (*kernel)->failure()) {
        outcome.problem = *failure;
        return outcome;
    }
    outcome.error = largest_error(reference(operands), operands.y);
    if (!(outcome.error <= outcome.tolerance)) {
        outcome.problem = std::isfinite(outcome.error)
                              ? fmt::format("wrong: off by {:.2g} of the typical value, allowed {:.2g}", outcome.error,
                                            outcome.tolerance)
                              : "wrong: some outputs were not written or are no numbers";
        return outcome;
    }
    outcome.timing = time_calls([&](std::size_t copy) { (*kernel)->run(copy); }, operands.copies(), pace.budget);
    if (const auto failure = (*kernel)->failure()) outcome.problem = *failure;
    return outcome;
}

}  // namespace roofline::bench
