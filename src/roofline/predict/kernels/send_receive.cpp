// One rank hands something to another: activations from one stage of a pipeline to the next.
#include "roofline/predict/kernels/collective_path.hpp"

namespace roofline::predict {
namespace {

constexpr std::array<Constant, 7> constants = {{
    {"startup", "us", 5.0, 0.3, 100.0, "from launch until both ranks have met, and the end"},
    {"quick", "fraction", 0.25, 0.002, 0.5, "of the link on the quick way"},
    {"chunk", "us", 1.0, 0.05, 200.0, "latency of a chunk on the bulk way"},
    {"overhead", "messages", 0.3, 0.02, 40.0, "more than must be sent, in time of the link: staging and flags"},
    {"network_latency", "us", 15.0, 1.0, 400.0, "more where the other is in another node"},
    {"network", "fraction", 0.7, 0.01, 1.0, "of the network link, for messages that its buffers hold"},
    {"backlog", "times", 0.05, 0.005, 20.0, "by which the network slows down once its buffers are full"},
}};

constexpr double buffers = 8e6;  // bytes: half of the way to a network that is backed up

double seconds(const Kernel& k, const Machine& m, std::span<const double> c) {
    if (k.nodes > 1.0) {
        const double bytes = std::max(k.message_bytes, k.network_bytes);
        const double network = over(bytes * (1.0 + c[6] * bytes / (bytes + buffers)), c[5] * m.network);
        return (c[0] + c[4]) * 1e-6 + network;
    }
    const double bytes = std::max(k.message_bytes, k.link_bytes);
    const double bulk = c[2] * 1e-6 + over(bytes + c[3] * k.message_bytes, m.link);
    return c[0] * 1e-6 + std::min(over(bytes, c[1] * m.link), bulk);
}

}  // namespace

extern const KernelClass send_receive_class;
const KernelClass send_receive_class{"send_receive", "E19", constants, seconds};

}  // namespace roofline::predict
