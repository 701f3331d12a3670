// The candidates that no other beats: more tokens a second from each device, more for each user, for less money.
#pragma once

#include <cstddef>
#include <vector>

namespace roofline::decide {

struct Merits {
    double per_device = 0.0;  // output tokens a second of each device; more is better
    double per_user = 0.0;    // output tokens a second that each user sees; more is better
    double cost = 0.0;        // of a million output tokens; less is better

    bool operator==(const Merits&) const = default;
};

/// At least as good in everything. Equal merits beat each other: the one that came first stays.
inline bool beats(const Merits& a, const Merits& b) {
    return a.per_device >= b.per_device && a.per_user >= b.per_user && a.cost <= b.cost;
}

/// Grows one candidate at a time and keeps those that none beats, with whatever is stored beside them.
template <class Item>
class Front {
  public:
    struct Entry {
        Merits merits;
        Item item;
    };

    /// True if it is on the front now.
    bool offer(const Merits& merits, const Item& item) {
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            if (!beats(entries_[i].merits, merits)) continue;
            // Who beats one often beats the next: asked first from now on.
            if (i > 0) std::swap(entries_[i], entries_[i / 2]);
            return false;
        }
        std::erase_if(entries_, [&](const Entry& entry) { return beats(merits, entry.merits); });
        entries_.push_back({merits, item});
        return true;
    }

    /// In no particular order.
    const std::vector<Entry>& entries() const { return entries_; }

  private:
    std::vector<Entry> entries_;
};

}  // namespace roofline::decide
