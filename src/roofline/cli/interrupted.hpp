// Ctrl-C, seen by what runs for long: it ends cleanly, and nothing is left half-written.
#pragma once

namespace roofline::cli {

/// While one lives, Ctrl-C sets a flag instead of ending the program; a second one ends it at once.
class Interruptible {
  public:
    Interruptible();
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;
    ~Interruptible();
};

bool interrupted();

}  // namespace roofline::cli
