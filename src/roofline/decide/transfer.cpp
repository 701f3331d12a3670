#include "roofline/decide/transfer.hpp"

#include "roofline/core/collective.hpp"
#include "roofline/predict/execution.hpp"

namespace roofline::decide {

Transfer transfer_of(const predict::Scenario& scenario) {
    const model::Deployment& spread = scenario.deployment;
    const double prompt = scenario.workload.prompt + scenario.workload.cached;
    const double both = 2.0 * spread.devices();
    Transfer result;
    // Of all stages in a row; each sends and is sent its own layers.
    result.bytes = Bytes(model::cache_bytes(scenario.lowered, prompt) / spread.pipeline);
    const Device& device = scenario.device;
    const bool one_node = both <= node_size(device);
    result.level = one_node ? link_within(device, both) : Level::network;
    const Figure* bandwidth = device.bandwidth(result.level);
    result.assumed = bandwidth == nullptr;
    result.seconds =
        result.bytes / BytesPerSecond(bandwidth != nullptr ? bandwidth->value : predict::assumed_network.value);
    return result;
}

}  // namespace roofline::decide
