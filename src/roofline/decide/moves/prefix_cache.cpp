// What if part of every prompt were in the cache already? How much really is depends on the requests.
#include <cmath>

#include <fmt/format.h>

#include "roofline/decide/move.hpp"

namespace roofline::decide {
namespace {

std::vector<Variant> variants(const Question& question) {
    const double share = question.around.cached_share;
    return {{.name = fmt::format("{:g}% of the prompt is a cached prefix", 100.0 * share),
             .costs = "assumed of the requests, not won by a setting; the prefix takes memory",
             .apply = [share](Candidate& candidate) -> Result<std::string> {
                 predict::Workload& workload = candidate.setup.workload;
                 const double cached = std::floor(share * workload.prompt);
                 if (cached < 1.0) return fail("the prompt is a single token");
                 workload.prompt -= cached;
                 workload.cached += cached;
                 return fmt::format("--prompt {:g} --cached-prefix {:g}", workload.prompt, workload.cached);
             },
             .what_if = true}};
}

}  // namespace

extern const Move prefix_cache_move;
const Move prefix_cache_move{"prefix_cache", "a cache of prefixes", 51, variants};

}  // namespace roofline::decide
