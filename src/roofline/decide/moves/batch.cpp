// More sequences share each reading of the weights; fewer wait less for each other.
#include <cmath>

#include <fmt/format.h>

#include "roofline/decide/move.hpp"

namespace roofline::decide {
namespace {

// Engines do not run more sequences at once than this unless told to, and beyond it steps are long.
constexpr double most_sequences = 4096.0;

Result<std::string> set_batch(Candidate& candidate, double batch) {
    candidate.setup.workload.batch = batch;
    return fmt::format("--batch {:.0f}", batch);
}

Variant times(double factor) {
    return {.name = fmt::format("batch x{:g}", factor),
            .costs = "each token waits for more sequences; KV memory grows",
            .apply = [factor](Candidate& candidate) {
                return set_batch(candidate, factor * candidate.setup.workload.batch);
            }};
}

Variant half() {
    return {.name = "batch halved",
            .costs = "fewer sequences served at once",
            .apply = [](Candidate& candidate) -> Result<std::string> {
                const double batch = candidate.setup.workload.batch;
                if (batch < 2.0) return fail("the batch is a single sequence already");
                return set_batch(candidate, std::floor(batch / 2.0));
            }};
}

Variant largest() {
    return {.name = "largest batch that fits",
            .costs = "each token waits for more sequences; no memory to spare",
            .apply = [](Candidate& candidate) -> Result<std::string> {
                const auto scenario = predict::realise(candidate.setup);
                if (!scenario) return std::unexpected(scenario.error());
                const auto most = predict::fit_deployment(*scenario).largest_batch;
                if (!most) return fail("the size of the device's memory is not known");
                if (*most < 1.0) return fail("not even one sequence fits");
                const double batch = std::min(*most, most_sequences);
                if (batch <= candidate.setup.workload.batch)
                    return fail(fmt::format("a batch of {:.0f} is as large as fits", candidate.setup.workload.batch));
                return set_batch(candidate, batch);
            }};
}

std::vector<Variant> variants(const Question&) {
    return {half(), times(2.0), times(4.0), largest()};
}

}  // namespace

extern const Move batch_move;
const Move batch_move{"batch", "another batch", 80, variants};

}  // namespace roofline::decide
