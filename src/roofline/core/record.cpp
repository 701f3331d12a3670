#include "roofline/core/record.hpp"

#include <array>

namespace roofline {

std::string_view name(Group group) {
    static constexpr std::array<std::string_view, group_count> names = {
        "attention", "ffn", "moe", "embedding", "head", "norm", "communication", "other"};
    return names[index(group)];
}

std::string_view name(Kind kind) {
    static constexpr std::array<std::string_view, kind_count> names = {
        "gemm",   "attention", "norm",       "elementwise", "gather",       "scan",
        "select", "copy",      "collective", "other",       "unattributed", "idle"};
    return names[static_cast<std::size_t>(kind)];
}

std::string_view name(Origin origin) {
    static constexpr std::array<std::string_view, 3> names = {"predicted", "measured", "traced"};
    return names[static_cast<std::size_t>(origin)];
}

namespace {

template <class Named>
std::optional<Named> find_named(std::string_view text, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        if (name(static_cast<Named>(i)) == text) return static_cast<Named>(i);
    }
    return std::nullopt;
}

}  // namespace

std::optional<Group> find_group(std::string_view name) {
    return find_named<Group>(name, group_count);
}

std::optional<Kind> find_kind(std::string_view name) {
    return find_named<Kind>(name, kind_count);
}

std::optional<Origin> find_origin(std::string_view name) {
    return find_named<Origin>(name, 3);
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

Bound held_by(const Record& record, const Roofs& attainable) {
    if (record.kind == Kind::idle) return Bound::latency;
    const Seconds time = record.times.measured.value_or(Seconds{});
    const bool short_kernels = record.count > 0.0 && time / record.count < Seconds(8e-6);
    if (short_kernels && record.times.attainable < time * 0.2) return Bound::latency;
    return time_under(record.work, attainable).bound;
}

}  // namespace roofline
