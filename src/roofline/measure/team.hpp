// Threads, each held on a processor of its own, that start a piece of work together. The caller is the first of them,
// so work for one thread involves nobody else. Between pieces of work the others sleep: spinning ones would take clock
// speed and caches away from what is being measured.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace roofline::measure {

/// How a piece of work went.
struct Ran {
    double seconds = 0.0;    // from the first start to the last end
    bool disturbed = false;  // the system took a thread off its processor meanwhile: the time says little
};

class Team {
  public:
    /// One thread for each processor. Fewer where the system allows no more (`size()` tells).
    explicit Team(std::vector<int> processors);
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    ~Team();

    std::size_t size() const;
    bool pinned() const;  // every thread could be held on its processor

    /// Runs body(0) ... body(threads - 1), all at once.
    Ran run(std::size_t threads, const std::function<void(std::size_t)>& body);

  private:
    struct Shared;
    std::unique_ptr<Shared> shared_;
};

/// Numbers too small to be normal take a slow path on many machines; measured loops never need them.
/// Returns the state from before, for `restore_denormals`.
unsigned long flush_denormals();
void restore_denormals(unsigned long before);

}  // namespace roofline::measure
