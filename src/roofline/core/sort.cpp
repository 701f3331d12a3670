#include "roofline/core/sort.hpp"

namespace roofline {

std::vector<std::size_t> sorted_places(std::size_t count, const void* things,
                                       bool (*less)(const void* things, std::size_t a, std::size_t b)) {
    std::vector<std::size_t> places(count);
    for (std::size_t i = 0; i < count; ++i) places[i] = i;
    std::vector<std::size_t> merged(count);
    // Runs of one, two, four ... are merged in pairs; of equals the left one goes first.
    for (std::size_t run = 1; run < count; run *= 2) {
        for (std::size_t begin = 0; begin < count; begin += 2 * run) {
            const std::size_t middle = std::min(begin + run, count);
            const std::size_t end = std::min(begin + 2 * run, count);
            std::size_t left = begin;
            std::size_t right = middle;
            for (std::size_t at = begin; at < end; ++at) {
                const bool take_right = left == middle || (right < end && less(things, places[right], places[left]));
                merged[at] = places[take_right ? right++ : left++];
            }
        }
        std::swap(places, merged);
    }
    return places;
}

}  // namespace roofline
