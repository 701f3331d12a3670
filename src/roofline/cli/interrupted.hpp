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

/// While one lives, Ctrl-C ends the program at once, with a line: for what may take minutes between two looks at a
/// flag, and has nothing to tidy up.
class EndsAtOnce {
  public:
    EndsAtOnce();
    EndsAtOnce(const EndsAtOnce&) = delete;
    EndsAtOnce& operator=(const EndsAtOnce&) = delete;
    ~EndsAtOnce();
};

}  // namespace roofline::cli
