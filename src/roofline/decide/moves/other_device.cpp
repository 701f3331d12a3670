// The same on another device, with what is known of its kernels.
#include <fmt/format.h>

#include "roofline/decide/move.hpp"
#include "roofline/decide/spread.hpp"

namespace roofline::decide {
namespace {

std::vector<Variant> variants(const Question& question) {
    std::vector<Variant> result;
    for (const OtherDevice& other : question.around.devices) {
        if (other.device.name == question.asked.setup.device.name) continue;
        result.push_back({.name = fmt::format("{} instead", other.device.name),
                          .costs = other.device.status == "announced" ? "announced, not sold yet" : "another machine",
                          .apply = [&other](Candidate& candidate) -> Result<std::string> {
                              candidate.setup.device = other.device;
                              candidate.setup.execution = other.execution;
                              model::Deployment& deployment = candidate.setup.deployment();
                              const double node = node_size(other.device);
                              deployment.node = deployment.replica_devices() <= node ? 0.0 : node;
                              return std::string();
                          }});
    }
    if (result.empty()) result.push_back(not_here("another device", "none was named (--or-device)"));
    return result;
}

}  // namespace

extern const Move other_device_move;
const Move other_device_move{"other_device", "another device", 0, variants};

}  // namespace roofline::decide
