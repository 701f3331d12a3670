// What if products with one row a sequence were done inside the memory, where its banks read faster than its pins?
#include <fmt/format.h>

#include "roofline/decide/move.hpp"
#include "roofline/decide/resources.hpp"

namespace roofline::decide {
namespace {

// Published processing-in-memory parts read their banks about four times as fast as their interface does.
constexpr double banks_over_pins = 4.0;

std::vector<Variant> variants(const Question&) {
    return {
        {.name = "near-memory compute",
         .costs = fmt::format("assumed: all of memory is read {:g} times as fast, compute as it is; no such product",
                              banks_over_pins),
         .apply = [](Candidate& candidate) -> Result<std::string> {
             if (candidate.setup.device.bandwidth(Level::memory) == nullptr)
                 return fail("the device states no memory bandwidth");
             Resource memory;
             memory.kind = ResourceKind::bandwidth;
             memory.level = Level::memory;
             scale(candidate, memory, banks_over_pins);
             return fmt::format("--set memory.bandwidth={:g}x", banks_over_pins);
         },
         .what_if = true}};
}

}  // namespace

extern const Move near_memory_move;
const Move near_memory_move{"near_memory", "near-memory compute", 1, variants};

}  // namespace roofline::decide
