// Charts made of letters: a roofline of braille dots and bars of blocks, for a terminal of 80 columns.
#pragma once

#include <span>
#include <string>

#include "roofline/core/account.hpp"

namespace roofline::render {

struct TerminalOptions {
    bool colour = false;
    int columns = 80;
    bool heading = true;  // what it is of
};

/// Of a device alone (an account without stages) all its roofs; of operators, those that they use. Broken lines were
/// measured.
std::string terminal_roofline(std::span<const Account> accounts, const TerminalOptions& options);
/// A bar for each group of each stage.
std::string terminal_bars(std::span<const Account> accounts, const TerminalOptions& options);

}  // namespace roofline::render
