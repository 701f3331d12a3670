// What the page leaves to the command line because nothing on it asks: requests followed one by one (of the same there
// is the closed form, serving/steady.hpp), and commands that start an engine with a plan. Defined here, these keep the
// files with the real ones out of the module, which is a download.
#include "roofline/decide/emit.hpp"
#include "roofline/serving/simulation.hpp"

namespace roofline::serving {

Result<Outcome> simulate(const Replica&, const Policy&, const Mix&, const Load&, const Sampling&) {
    return fail("--simulate: the page does not; the command line does");
}

}  // namespace roofline::serving

namespace roofline::decide {

std::vector<Server> servers_of(const Deploy&, const PlanQuestion&, const std::string&) {
    return {};
}

std::vector<std::string> emitters() {
    return {};
}

Result<std::string> emit(std::string_view, const std::vector<Server>&) {
    return fail("--emit: the page does not; the command line does");
}

}  // namespace roofline::decide
