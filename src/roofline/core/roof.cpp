#include "roofline/core/roof.hpp"

#include <algorithm>
#include <string>

#include "roofline/core/sources.hpp"

namespace roofline {
namespace {

double reciprocal(double rate) {
    return rate > 0.0 ? 1.0 / rate : 0.0;
}

/// The measured ceiling at a path, if it is there and believable: a ceiling above the datasheet is an error in one of
/// the two, and taking the smaller keeps limit <= attainable.
double ceiling_or(const Device& device, const std::string& path, double datasheet) {
    const auto found = device.ceilings.find(path);
    if (found == device.ceilings.end()) return datasheet;
    return found->second.value < datasheet ? found->second.value : datasheet;
}

Roofs roofs(const Device& device, bool measured) {
    Roofs result;
    for (const Engine engine : {Engine::matrix, Engine::vector}) {
        for (const DType type : all_dtypes) {
            const auto& rate = device.rate(engine, type);
            if (!rate) continue;
            double value = rate->value;
            if (measured) value = ceiling_or(device, std::string(name(engine)) + "." + std::string(name(type)), value);
            result.seconds_per_flop[index(engine)][index(type)] = reciprocal(value);
        }
    }
    for (const Level level : all_levels) {
        const std::string path = std::string(name(level)) + ".bandwidth";
        if (const Figure* bandwidth = device.bandwidth(level)) {
            const double value = measured ? ceiling_or(device, path, bandwidth->value) : bandwidth->value;
            result.seconds_per_byte[index(level)] = reciprocal(value);
        } else if (measured && device.ceilings.contains(path)) {
            // Nobody publishes the bandwidth of an L2; a measurement is then the only figure there is.
            result.seconds_per_byte[index(level)] = reciprocal(device.ceilings.at(path).value);
        }
    }
    return result;
}

}  // namespace

std::string_view name(Bound bound) {
    static constexpr std::array<std::string_view, 5> names = {"compute", "memory", "cache", "link", "latency"};
    return names[static_cast<std::size_t>(bound)];
}

Roofs limit_roofs(const Device& device) {
    return roofs(device, false);
}

Roofs attainable_roofs(const Device& device) {
    return roofs(device, true);
}

bool has_measured_ceilings(const Device& device) {
    return std::any_of(device.ceilings.begin(), device.ceilings.end(),
                       [&](const auto& ceiling) { return !is_assumed(device, ceiling.second); });
}

FlopsPerSecond roof_at(const Roofs& roofs, Engine engine, DType type, FlopsPerByte intensity) {
    const double flop_cost = roofs.flop_cost(engine, type);
    const double byte_cost = roofs.seconds_per_byte[index(Level::memory)];
    const double peak = flop_cost > 0.0 ? 1.0 / flop_cost : std::numeric_limits<double>::infinity();
    const double slope = byte_cost > 0.0 ? intensity.value / byte_cost : std::numeric_limits<double>::infinity();
    return FlopsPerSecond(peak < slope ? peak : slope);
}

}  // namespace roofline
