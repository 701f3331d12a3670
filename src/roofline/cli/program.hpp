// What the verbs share: the command line they add themselves to, and the one thing that will be done. Each verb is one
// file in verbs/; the folder is the registry.
#pragma once

#include <functional>
#include <string>

#include "roofline/cli/verb.hpp"
#include "roofline/core/problem.hpp"

namespace roofline::cli {

enum ExitCode { done = 0, no_answer = 1, bad_input = 2, internal_fault = 3, not_here = 4, stopped = 130 };

struct Program {
    CLI::App& app;
    std::string command;                  // as typed, for reports
    std::function<Result<int>()> action;  // set by the verb that was named; returns an exit code

    Verb verb(const std::string& name, const std::string& help);
};

int run(int argc, char** argv);

}  // namespace roofline::cli
