// How long an answer may take. Whoever answers for others says when to give up; what loops for long asks now and then
// and ends early. What was found by then is worth nothing and is thrown away by whoever set the limit, so a loop may
// leave with whatever it has. Nobody here looks at a clock: the page has none to look at, and the command line no
// limit.
#pragma once

#include <functional>

namespace roofline {

/// A limit for what this thread computes until it goes away.
class Patience {
  public:
    explicit Patience(std::function<bool()> over);
    Patience(const Patience&) = delete;
    Patience& operator=(const Patience&) = delete;
    ~Patience();

  private:
    friend bool out_of_patience();
    std::function<bool()> over_;
    bool is_over_ = false;  // once over, always over
    Patience* before_ = nullptr;
};

/// Never, where nobody set a limit.
bool out_of_patience();

}  // namespace roofline
