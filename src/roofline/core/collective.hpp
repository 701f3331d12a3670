// What several devices do together: sums, gathers and exchanges over links. Here only what must cross the links,
// whoever implements it; how long a library really takes is a kernel class like any other (predict/kernels).
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "roofline/core/device.hpp"

namespace roofline {

/// What a message is differs, and every count below is per byte of it:
///   all_reduce      the vector that each rank has before and after
///   all_gather      all that each rank has afterwards
///   reduce_scatter  all that each rank has before
///   all_to_all      all that each rank sends, the part it keeps included
///   send_receive    what one rank sends to another
enum class Collective { all_reduce, all_gather, reduce_scatter, all_to_all, send_receive };
inline constexpr std::size_t collective_count = 5;
inline constexpr std::array<Collective, collective_count> all_collectives = {
    Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all,
    Collective::send_receive};
std::string_view name(Collective collective);

/// The devices that take part: `ranks` in all, spread evenly over `nodes`. Links within a node differ from those
/// between.
struct RankGroup {
    double ranks = 1.0;
    double nodes = 1.0;

    double per_node() const { return ranks / nodes; }
    bool operator==(const RankGroup&) const = default;
};

/// How the devices of a node are wired, as far as it changes what must cross a link.
struct Wiring {
    bool reduces_in_switch = false;  // the switch adds up what passes through it and copies what goes to many
    int torus_dimensions = 0;        // 0: every device reaches every other in one hop
    int joined = 0;  // devices that the peer link joins, beyond which traffic takes the host link; 0: all of a node
};

/// As far as the device's own description says: without a peer link every device stands alone, and its host link
/// carries all.
Wiring wiring_of(const Device& device);

/// Devices in a node: what the peer link joins; eight where nobody says, as accelerators are usually sold.
double node_size(const Device& device);

/// The slowest kind of link that `devices` of one node need between them: the peer link, or where it does not join
/// them all, the host link.
Level link_within(const Device& device, double devices);

/// Bytes that each rank must send over each kind of link, per byte of message.
struct LinkTraffic {
    double peer = 0.0;
    double network = 0.0;
    double host = 0.0;  // between islands of a node that the peer link does not join

    double at(Level level) const {
        return level == Level::peer ? peer : level == Level::network ? network : level == Level::host ? host : 0.0;
    }
};

/// F35: the least that any algorithm moves. Between nodes every device has its own adapter, and a node exchanges each
/// byte once.
LinkTraffic compulsory_traffic(Collective collective, const RankGroup& group, const Wiring& wiring = {});

}  // namespace roofline
