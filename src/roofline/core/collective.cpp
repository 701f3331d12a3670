#include "roofline/core/collective.hpp"

#include <algorithm>
#include <cmath>

namespace roofline {
namespace {

/// Hops that a byte takes on average between two devices of a torus: a quarter of the way round in each dimension.
double torus_hops(double ranks, int dimensions) {
    if (dimensions <= 0 || ranks <= 1.0) return 1.0;
    const double side = dimensions == 1 ? ranks : dimensions == 2 ? std::sqrt(ranks) : std::cbrt(ranks);
    return std::max(1.0, dimensions * side / 4.0);
}

}  // namespace

std::string_view name(Collective collective) {
    static constexpr std::array<std::string_view, collective_count> names = {
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_receive"};
    return names[static_cast<std::size_t>(collective)];
}

Wiring wiring_of(const Device& device) {
    const auto& peer = device.level(Level::peer);
    if (!peer) return {.joined = 1};
    Wiring wiring;
    wiring.reduces_in_switch = peer->reduces_in_switch;
    wiring.torus_dimensions = peer->topology == "torus3d" ? 3 : peer->topology == "torus2d" ? 2 : 0;
    wiring.joined = peer->devices;
    return wiring;
}

double node_size(const Device& device) {
    constexpr double usual = 8.0;
    const auto& peer = device.level(Level::peer);
    return peer && peer->devices > 0 ? peer->devices : usual;
}

Level link_within(const Device& device, double devices) {
    const int joined = wiring_of(device).joined;
    return joined == 0 || devices <= joined ? Level::peer : Level::host;
}

LinkTraffic compulsory_traffic(Collective collective, const RankGroup& group, const Wiring& wiring) {
    if (group.ranks <= 1.0) return {};
    const double local = group.per_node();
    const double island = wiring.joined > 0 ? std::min<double>(wiring.joined, local) : local;
    const double islands = local / island;
    const double others_here = (island - 1.0) / island;
    const double other_islands = (islands - 1.0) / islands;
    const double other_nodes = (group.nodes - 1.0) / group.nodes;
    switch (collective) {
        case Collective::all_reduce: {
            // Reduce-scatter in the node, all-reduce of each shard between nodes, all-gather in the node; within a node
            // the same between islands. Through a switch that adds, each rank sends what it has once and receives the
            // sum once.
            const double ring = 2.0 * others_here;
            const double peer = wiring.reduces_in_switch ? std::min(ring, 1.0) : ring;
            return {peer, 2.0 * other_nodes / local, 2.0 * other_islands / island};
        }
        case Collective::all_gather:
        case Collective::reduce_scatter:
            return {others_here, other_nodes / local, other_islands / island};
        case Collective::all_to_all: {
            const double stays_here = (island - 1.0) / group.ranks;
            const double leaves = (group.ranks - local) / group.ranks;
            return {stays_here * torus_hops(local, wiring.torus_dimensions), leaves, (local - island) / group.ranks};
        }
        case Collective::send_receive:
            if (group.nodes > 1.0) return {0.0, 1.0, 0.0};
            return islands > 1.0 ? LinkTraffic{0.0, 0.0, 1.0} : LinkTraffic{1.0, 0.0, 0.0};
    }
    return {};
}

}  // namespace roofline
