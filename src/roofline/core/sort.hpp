// std::stable_sort at a tenth of its size: each use of that one is four kilobytes of code of its own, and the page is a
// download. The order is the same to the last tie. Where a loop sorts again and again, take the standard one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace roofline {

/// The places of `count` things as they stand when sorted; what is equal keeps its order. `less` compares two places.
std::vector<std::size_t> sorted_places(std::size_t count, const void* things,
                                       bool (*less)(const void* things, std::size_t a, std::size_t b));

template <class Thing, class Less>
void sort_stably(std::vector<Thing>& things, const Less& less) {
    struct Compared {
        const std::vector<Thing>& things;
        const Less& less;
    };
    const Compared compared{things, less};
    const std::vector<std::size_t> places =
        sorted_places(things.size(), &compared, [](const void* all, std::size_t a, std::size_t b) -> bool {
            const auto& [those, first] = *static_cast<const Compared*>(all);
            return first(those[a], those[b]);
        });
    std::vector<Thing> sorted;
    sorted.reserve(things.size());
    for (const std::size_t place : places) sorted.push_back(std::move(things[place]));
    things = std::move(sorted);
}

}  // namespace roofline
