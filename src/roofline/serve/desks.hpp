// Where questions are answered: a few desks, each with the memory of what was read there before. Whoever asks waits for
// a free one, first come first served. So however many connections there are, no more answers are computed at once than
// there are processors to speak of, and what is remembered stays as small as the desks are few.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "roofline/ask/request_library.hpp"

namespace roofline::serve {

class Desks {
  public:
    explicit Desks(std::size_t count);

    /// A desk that is held until this goes away.
    class Held {
      public:
        explicit Held(Desks& desks);
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;
        ~Held();
        ask::Memory& memory() { return *memory_; }

      private:
        Desks& desks_;
        std::unique_ptr<ask::Memory> memory_;
    };

  private:
    /// Each waits on a bell of its own: waking all of them for one desk would take longer than an answer.
    struct Waiting {
        std::unique_ptr<ask::Memory> memory;
        std::condition_variable bell;
    };

    std::mutex mutex_;
    std::vector<std::unique_ptr<ask::Memory>> free_;
    std::deque<Waiting*> waiting_;
};

}  // namespace roofline::serve
