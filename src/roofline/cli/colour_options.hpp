// --color: whether a terminal is painted. NO_COLOR in the environment is obeyed where nothing else is said.
#pragma once

#include <string>

#include "roofline/cli/verb.hpp"

namespace roofline::cli {

struct ColourOptions {
    std::string when = "auto";

    void add_to(const Verb& verb);
    /// Of what goes to stdout.
    bool allowed() const;
};

/// Of the terminal that stdout is; 80 where it is none.
int terminal_columns();

}  // namespace roofline::cli
