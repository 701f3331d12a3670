#include "roofline/core/record.hpp"

#include <array>

namespace roofline {

std::string_view name(Group group) {
    static constexpr std::array<std::string_view, group_count> names = {
        "attention", "ffn", "moe", "embedding", "head", "norm", "communication", "other"};
    return names[index(group)];
}

std::string_view name(Kind kind) {
    static constexpr std::array<std::string_view, 10> names = {"gemm", "attention", "norm", "elementwise", "gather",
                                                               "scan", "select",    "copy", "collective",  "other"};
    return names[static_cast<std::size_t>(kind)];
}

std::string_view name(Origin origin) {
    static constexpr std::array<std::string_view, 3> names = {"predicted", "measured", "traced"};
    return names[static_cast<std::size_t>(origin)];
}

Verdict judge(const Work& work, const Roofs& roofs) {
    Verdict verdict;
    const RoofTime slowest = time_under(work, roofs);
    const double flop_cost = roofs.flop_cost(work.engine, work.type);
    const double byte_cost = roofs.seconds_per_byte[index(Level::memory)];
    verdict.intensity = intensity(work.flops, work.at(Level::memory));
    if (flop_cost > 0.0 && byte_cost > 0.0) verdict.ridge = FlopsPerByte(byte_cost / flop_cost);
    verdict.bound = slowest.bound;
    if (slowest.time.value > 0.0) {
        verdict.fraction_of_peak = work.flops.value * flop_cost / slowest.time.value;
        verdict.fraction_of_bandwidth = work.at(Level::memory).value * byte_cost / slowest.time.value;
    }
    return verdict;
}

}  // namespace roofline
