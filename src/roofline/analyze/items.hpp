// What ran, as pieces of work: one item is one call of an operator with all kernels it started, or a kernel that no
// operator explains, or a copy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "roofline/analyze/effort.hpp"
#include "roofline/analyze/timeline.hpp"

namespace roofline::analyze {

struct Item {
    std::uint32_t signature = none;  // of the call that explains it, or of the innermost one around it
    std::uint32_t effort = none;     // into Items::efforts; none: not explained
    std::uint32_t step = none;
    std::uint32_t role = none;  // into the names of roles
    std::int64_t begin = 0;     // on the device
    std::int64_t end = 0;
    std::int64_t time = 0;      // sum over its kernels
    std::int64_t started = 0;   // when the host asked for it; its begin where that is unknown
    std::uint32_t last = none;  // of its events: into Timeline::ran; Items::events gives all
    std::uint32_t count = 0;    // of its events
    Ran ran = Ran::kernel;
    bool in_graph = false;
    bool inferred = false;  // its work is that of the model, not of shapes in the file
    bool likely = false;    // no formula: its work is what its tensors leave likely
};

/// The events of an item in the order they ran: a ring through a table of followers, four bytes an event.
class EventRing {
  public:
    EventRing(const Spool<std::uint32_t>& next, std::uint32_t last) : next_(next), last_(last) {}
    class Place {
      public:
        Place(const EventRing& ring, std::uint32_t at) : ring_(ring), at_(at) {}
        std::uint32_t operator*() const { return at_; }
        Place& operator++() {
            at_ = at_ == ring_.last_ ? none : ring_.next_[at_];
            return *this;
        }
        bool operator==(const Place& other) const { return at_ == other.at_; }

      private:
        const EventRing& ring_;
        std::uint32_t at_;
    };
    Place begin() const { return {*this, last_ == none ? none : next_[last_]}; }
    Place end() const { return {*this, none}; }

  private:
    const Spool<std::uint32_t>& next_;
    std::uint32_t last_;
};

struct Items {
    Spool<Item> all;                       // by begin
    std::vector<Effort> efforts;           // one per signature that has one, more for what is inferred
    std::vector<std::uint32_t> effort_of;  // by signature
    Spool<std::uint32_t> item_of;          // by event of the timeline
    Spool<std::uint32_t> next;             // by event: the one after it of the same item, the first after the last
    EventRing events(const Item& item) const { return {next, item.last}; }
    std::uint32_t first_event(const Item& item) const { return next[item.last]; }  // of an item that has one
    const Effort* effort(const Item& item) const { return item.effort == none ? nullptr : &efforts[item.effort]; }
};

/// Operators are not needed any more when it is done, and are gone.
Items collect_items(Timeline& timeline);

/// The name of the operator of an item, or of its kernel.
std::string item_name(const Timeline& timeline, const Items& items, const Item& item, bool with_shapes);

}  // namespace roofline::analyze
