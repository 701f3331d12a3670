// Threads that stay: started once, given chunks of work again and again. Waiting ones spin for a moment before they
// sleep, because the next operator of a step comes within microseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "roofline/core/problem.hpp"

namespace roofline::bench {

/// [0, total) in parts for `abreast` threads, of which whoever is free takes the next: each round shares out half of
/// what is left, the last one all of it. Long parts come first, for those who read on without a jump, and short ones
/// last: nobody waits long for the slowest, of which there is one wherever others use the machine too. None is shorter
/// than `least`, but for what is left of a total that is.
class Parts {
  public:
    Parts(std::int64_t total, std::int64_t abreast, std::int64_t least = 1) : total_(total), abreast_(abreast) {
        while ((total_ >> last_round_) > 2 * abreast_ * least) ++last_round_;
    }
    std::int64_t count() const { return (last_round_ + 1) * abreast_; }
    /// Parts may be empty. begin(count()) is the total.
    std::int64_t begin(std::int64_t part) const {
        const std::int64_t round = part / abreast_;
        if (round > last_round_) return total_;
        const std::int64_t left = total_ >> round;
        const std::int64_t shared = round == last_round_ ? left : left - (left >> 1);
        return total_ - left + shared * (part % abreast_) / abreast_;
    }
    /// The same, at most one later: parts have odd numbers, but for the last where it cannot.
    std::int64_t odd_begin(std::int64_t part) const {
        const std::int64_t even = begin(part);
        // Of less than this some parts would be empty, and the one after would begin before it.
        if (total_ < abreast_ || even == total_) return even;
        return even + (even + part) % 2;
    }

  private:
    std::int64_t total_;
    std::int64_t abreast_;
    std::int64_t last_round_ = 0;
};

class Threads {
  public:
    /// The caller is one of them. Fails where the system allows no more threads.
    static Result<std::unique_ptr<Threads>> start(int count);
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    ~Threads();

    int count() const { return static_cast<int>(workers_.size()) + 1; }

    /// Calls work(chunk, thread) for every chunk in [0, chunks), each once, and returns when all are done. Whoever is
    /// free takes the next: a thread that the system does not run holds up nobody, unless in the middle of a chunk.
    void run(std::int64_t chunks, const std::function<void(std::int64_t, int)>& work);

    /// How many times `grain` a range has.
    enum class Multiple { any, odd };
    /// Ranges of [0, total) in multiples of `grain`, several for every thread (Parts); a lone thread has one. None but
    /// the last is shorter than `least`.
    void ranges(std::int64_t total, std::int64_t grain, const std::function<void(std::int64_t, std::int64_t)>& work,
                std::int64_t least = 1, Multiple multiple = Multiple::any);

  private:
    Threads() = default;
    void serve(int thread);
    void take(int thread);

    std::vector<std::thread> workers_;
    const std::function<void(std::int64_t, int)>* work_ = nullptr;
    // How many chunks there are (upper half) and the next of them: in one number, so that a thread that comes late, to
    // a round that is over or to the one after, knows whether what it has drawn is there to be done.
    alignas(64) std::atomic<std::uint64_t> next_{0};
    alignas(64) std::atomic<std::uint32_t> round_{0};
    alignas(64) std::atomic<std::int64_t> done_{0};
    std::atomic<bool> ending_{false};
};

/// Processors this process may run on, never more than the container's share of time pays for.
int usable_processors();

}  // namespace roofline::bench
