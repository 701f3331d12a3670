// This machine's CPU, measured: the caches found by a read sweep, every motion through every level, every number type
// on every unit, on one thread and on all; made into a device that `predict` takes.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/measure/estimate.hpp"
#include "roofline/measure/found.hpp"
#include "roofline/measure/machine.hpp"

namespace roofline::measure {

struct CpuOptions {
    double seconds = 20.0;
    bool quick = false;             // caches by reading alone
    std::size_t threads = 0;        // zero: as many as this process may use
    std::vector<std::string> only;  // "memory", "memory.read", "vector.fp32", "fp32": nothing else; empty: all
    std::size_t most_bytes = 0;     // of each array; zero: chosen by the machine's memory and caches
    std::string date;               // for the sources of the figures
    std::function<bool()> stop;     // asked between windows
    Progress progress;
};

/// The figures it can look for, for messages and completion: "memory.read", "vector.bf16" ...
std::vector<std::string> cpu_figure_names();
/// Whether a figure is one that `only` names: itself, or all of a level, an engine, a motion or a number type.
bool named_by(std::string_view figure, std::string_view only);

/// A problem that says "stopped" when `stop` said so.
Result<Measured> measure_cpu(const CpuOptions& options);

/// From figures to a device: rates of both engines, memory, and the last cache with its capacity at the knee.
Device cpu_device(const Machine& machine, std::size_t threads, std::span<const Found> found,
                  std::span<const Plateau> levels, const std::string& date);

/// The same device as one thread has it, made of what its file says that one thread reached: a figure that nobody tried
/// on one thread is absent. Empty where the file does not say how fast one thread reads memory.
std::optional<Device> on_one_thread(const Device& device, const io::Json& file);

/// The built-in device this processor is, by its name; empty: not known.
const Device* known_cpu(std::string_view cpu, std::span<const Device> devices);

/// Why the figures may be too low, in a few words each; empty: the machine was quiet.
std::vector<std::string> disturbances(const Disturbance& seen, std::span<const Found> found);

}  // namespace roofline::measure
