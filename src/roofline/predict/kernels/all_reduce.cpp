// Sums over devices. Libraries go round a ring; engines let every device read all others while messages are small, and
// leave large ones to the library; some switches add up what passes through them. One formula for all three: which way
// is taken follows from the time each would need, and whose kernels they are shows in the constants.
#include <array>

#include "roofline/predict/kernels/collective_path.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 10> constants = {{
    {"startup", "us", 4.0, 0.3, 100.0, "from launch until all ranks have met, and the end"},
    {"step", "us", 0.6, 0.005, 20.0, "latency of one of the 2 (n - 1) steps of a ring"},
    {"quick", "fraction", 0.4, 0.005, 1.0, "of the link on the quick way"},
    {"fan_out", "copies", 0.3, 0.02, 1.0,
     "that the quick way sends for each rank beyond two; 1: everybody to everybody"},
    {"chunk", "us", 4.0, 0.05, 200.0, "latency of a chunk on the bulk way"},
    {"overhead", "messages", 0.4, 0.02, 40.0, "more than a ring must send, in time of the link: staging and flags"},
    {"crowding", "times", 0.1, 0.01, 30.0, "by which links slow down from a pair of ranks to many, as behind one host"},
    {"in_switch", "fraction", 0.75, 0.3, 1.0, "of the link where the switch adds"},
    {"network_latency", "us", 15.0, 1.0, 400.0, "for each further node"},
    {"network", "fraction", 0.7, 0.01, 1.0, "of the network link"},
}};

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    const RankShape shape(k);
    if (shape.ranks <= 1.0) return c[0] * 1e-6;
    const double around = shape.local - 1.0;
    const double start = c[0] + c[1] * 2.0 * around + c[8] * (shape.nodes - 1.0);

    const double ring_bytes = 2.0 * around / shape.local * k.message_bytes;
    const double more = around > 0.0 ? c[5] * k.message_bytes : 0.0;
    const double link = m.link / shape.crowded(c[6]);
    double stream = over(std::max(ring_bytes, k.link_bytes) + more, link);
    // A switch that adds takes the vector once. (Less than once is what islands of a node must exchange.)
    if (k.link_bytes >= k.message_bytes && k.link_bytes < ring_bytes)
        stream = std::min(stream, over(k.link_bytes / c[7] + more, link));

    // A ring over all ranks enters and leaves each node once for every adapter that it is spread over.
    const double crossing =
        shape.nodes > 1.0 ? 2.0 * (shape.ranks - 1.0) / shape.ranks / shape.local * k.message_bytes : 0.0;
    const double network = over(std::max(crossing, k.network_bytes), c[9] * m.network);

    const double bulk = piped(std::max(stream, network), c[4] * 1e-6);
    if (shape.nodes > 1.0) return start * 1e-6 + bulk;
    const double copies = 1.0 + c[3] * (shape.local - 2.0);
    const double quick = over(std::max(copies * k.message_bytes, k.link_bytes), c[2] * link);
    return start * 1e-6 + std::min(quick, bulk);
}

}  // namespace

extern const KernelClass all_reduce_class;
const KernelClass all_reduce_class{"all_reduce", "E15", constants, seconds};

}  // namespace roofline::predict
