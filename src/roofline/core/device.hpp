// A machine as data: engines with a rate per number type, memory levels, links, power. Every figure carries its source.
// What is not published or measured is absent, never guessed.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/dtype.hpp"
#include "roofline/core/quantity.hpp"

namespace roofline {

enum class SourceKind { vendor, measured, derived, assumed };
std::string_view name(SourceKind kind);

struct Source {
    SourceKind kind = SourceKind::assumed;
    std::string title;
    std::string date;
};

/// A number of a datasheet or a measurement, in base units (flop/s, byte/s, byte, watt, or a plain count).
struct Figure {
    double value = 0.0;
    std::string source;  // key into Device::sources; "set" for a figure changed on the command line
    std::string note;
};

/// Matrix units (tensor cores, MXU, AMX) and plain FMA units are different hardware with different peaks.
enum class Engine { matrix, vector };
inline constexpr std::size_t engine_count = 2;
constexpr std::size_t index(Engine engine) {
    return static_cast<std::size_t>(engine);
}
std::string_view name(Engine engine);

/// Places that bytes move through. `memory` is the main one whatever its technology; `host`, `peer` (devices of the
/// same node) and `network` (other nodes) are reached over a link, per direction.
enum class Level { memory, cache, host, peer, network };
inline constexpr std::size_t level_count = 5;
inline constexpr std::array<Level, level_count> all_levels = {Level::memory, Level::cache, Level::host, Level::peer,
                                                              Level::network};
constexpr std::size_t index(Level level) {
    return static_cast<std::size_t>(level);
}
std::string_view name(Level level);

struct MemoryLevel {
    std::string technology;
    std::optional<Figure> capacity;
    std::optional<Figure> reported;   // what the driver lets programs see of the capacity, where that is known
    std::optional<Figure> bandwidth;  // per direction for links
    std::string topology;             // of the peer link: switch, mesh, torus3d ...
    int links = 0;                    // of the peer link, where it is a bundle
    int devices = 0;                  // that the peer link joins; 0: not published
    bool reduces_in_switch = false;   // switches of the peer link add up what passes through them
};

using Rates = std::array<std::optional<Figure>, dtype_count>;

struct Device {
    std::string name;
    std::string title;
    std::string vendor;
    std::string kind;        // gpu, tpu, cpu, npu
    std::string generation;  // hopper, cdna3, tpu-v5e: devices of one vendor and generation behave alike
    std::string status;
    int year = 0;
    std::vector<std::string> aliases;
    std::array<Rates, engine_count> rates;
    std::optional<Figure> multiprocessors;  // what a kernel's tiles spread over: SMs, compute units, cores
    std::optional<Figure> matrix_tile;      // side of the systolic array, where a few large ones do the work
    std::array<std::optional<MemoryLevel>, level_count> levels;
    std::optional<Figure> power;
    std::map<std::string, Figure> ceilings;  // measured: "memory.bandwidth", "matrix.bf16"
    std::map<std::string, Source> sources;
    std::vector<std::string> notes;

    const std::optional<Figure>& rate(Engine engine, DType type) const { return rates[index(engine)][index(type)]; }
    const std::optional<MemoryLevel>& level(Level which) const { return levels[index(which)]; }
    const Figure* bandwidth(Level which) const;
    const Figure* capacity(Level which) const;
    /// What programs can have of a level: as the driver reports it, else as the datasheet says.
    const Figure* usable(Level which) const;
};

/// Where a product in some type really runs.
struct EngineChoice {
    Engine engine = Engine::matrix;
    DType type = DType::bf16;
    bool exact = true;  // false: the device has no engine for the type that was asked for
};

/// F9: the engine a matrix product of this type runs on: the matrix engine of that type, else the vector engine of that
/// type, else the next type in a fixed order of stand-ins. Empty if the device publishes no usable rate at all.
std::optional<EngineChoice> choose_engine(const Device& device, DType type);

/// F3: the intensity at which compute and memory take equally long. Empty where a rate or the bandwidth is unknown.
std::optional<FlopsPerByte> ridge(const Device& device, DType type);

}  // namespace roofline
