// The roofline itself: how long a piece of work takes under a set of ceilings, and what holds it back.
#pragma once

#include <array>
#include <limits>
#include <string_view>

#include "roofline/core/device.hpp"
#include "roofline/core/dtype.hpp"
#include "roofline/core/quantity.hpp"

namespace roofline {

/// Work of one operator (or of several of the same type): flops on one engine in one type, bytes through each level.
struct Work {
    Engine engine = Engine::matrix;
    DType type = DType::bf16;
    Flops flops{};
    std::array<Bytes, level_count> bytes{};

    Bytes& at(Level level) { return bytes[index(level)]; }
    Bytes at(Level level) const { return bytes[index(level)]; }
};

/// What limits a time. The order is the tie-break: at the ridge, memory and compute take equally long, and the
/// convention is that work exactly at the ridge is compute-bound.
enum class Bound { compute, memory, cache, link, latency };
std::string_view name(Bound bound);

/// Ceilings as numbers ready to multiply: seconds per flop and seconds per byte; zero where a figure is unknown, so
/// that what nobody published costs nothing and a limit stays a limit.
struct Roofs {
    std::array<std::array<double, dtype_count>, engine_count> seconds_per_flop{};
    std::array<double, level_count> seconds_per_byte{};

    double flop_cost(Engine engine, DType type) const { return seconds_per_flop[index(engine)][index(type)]; }
};

/// Datasheet peaks: the speed of light.
Roofs limit_roofs(const Device& device);

/// The measured ceiling where there is one, the datasheet figure elsewhere; never above the datasheet.
Roofs attainable_roofs(const Device& device);
bool has_measured_ceilings(const Device& device);

struct RoofTime {
    Seconds time{};
    Bound bound = Bound::memory;
};

/// F1: the time of an operator is that of its slowest resource.
inline RoofTime time_under(const Work& work, const Roofs& roofs) {
    RoofTime slowest{Seconds(work.flops.value * roofs.flop_cost(work.engine, work.type)), Bound::compute};
    constexpr std::array<Bound, level_count> bound_of = {Bound::memory, Bound::cache, Bound::link, Bound::link,
                                                         Bound::link};
    for (std::size_t level = 0; level < level_count; ++level) {
        const Seconds time(work.bytes[level].value * roofs.seconds_per_byte[level]);
        if (time > slowest.time) slowest = {time, bound_of[level]};
    }
    // No flops and no bytes, or only unknown ceilings: nothing can be said, and memory is the honest default.
    if (slowest.time.value == 0.0) slowest.bound = Bound::memory;
    return slowest;
}

/// F2: flops per byte of main memory; zero for work without flops, infinite for work that never leaves the chip.
inline FlopsPerByte intensity(Flops flops, Bytes bytes) {
    if (flops.value == 0.0) return FlopsPerByte(0.0);
    if (bytes.value == 0.0) return FlopsPerByte(std::numeric_limits<double>::infinity());
    return flops / bytes;
}

/// F5: the roof: the highest rate that work of an intensity can reach, min(peak, intensity x bandwidth).
FlopsPerSecond roof_at(const Roofs& roofs, Engine engine, DType type, FlopsPerByte intensity);

}  // namespace roofline
