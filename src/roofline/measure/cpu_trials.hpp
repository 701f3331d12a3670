// Kernels made into trials: on how many threads, over which memory, checked after every window.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "roofline/measure/arena.hpp"
#include "roofline/measure/cpu_kernels.hpp"
#include "roofline/measure/rounds.hpp"
#include "roofline/measure/team.hpp"

namespace roofline::measure {

/// Three arrays of equal length for each thread.
struct Arrays {
    std::byte* a = nullptr;
    std::byte* b = nullptr;
    std::byte* c = nullptr;
    std::size_t bytes = 0;  // of each
};

/// Arrays for several threads in one arena, written by the threads that will use them, so that each page lies near its
/// thread. The threads' parts of an array lie behind each other: together they are an array for one thread.
class Field {
  public:
    static Result<Field> make(Team& team, std::size_t threads, std::size_t bytes_each);
    const std::vector<Arrays>& arrays() const { return arrays_; }
    /// The parts of the first `threads` as one.
    Arrays joined(std::size_t threads) const;

  private:
    Field(Arena arena, std::vector<Arrays> arrays) : arena_(std::move(arena)), arrays_(std::move(arrays)) {}
    Arena arena_;
    std::vector<Arrays> arrays_;
};

/// Bytes of each array so that `arrays(motion)` of them make up `working_set`: whole pages for every stream.
std::size_t span_of(const MemoryKernel& kernel, double working_set);

Trial flop_trial(std::string name, Team& team, std::size_t threads, const FlopKernel& kernel);

/// Over and over the same working set, on every thread its own: what stays in a cache.
Trial resident_trial(std::string name, Team& team, std::span<const Arrays> arrays, const MemoryKernel& kernel,
                     double working_set, double window_s);

/// Through all of a large array, piece by piece, on from where the last window ended: what no cache holds. With
/// `together`, all threads walk through the first one's arrays, each from a place of its own.
Trial walking_trial(std::string name, Team& team, std::span<const Arrays> arrays, const MemoryKernel& kernel,
                    double window_s, std::size_t together_bytes = 0, std::size_t threads = 0);

/// Additions that wait for each other: one a cycle on every machine there is. Its rate is the clock.
Trial clock_trial(std::string name, Team& team, std::size_t threads);

}  // namespace roofline::measure
