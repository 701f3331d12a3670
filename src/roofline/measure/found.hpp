// What measuring a machine gives, whatever the machine: a list of figures with their spread, and a device made of them.
// The CPU part (cpu_device.hpp) and the CUDA part fill the same types, so the verb prints and saves both alike.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/device.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/io/fields.hpp"

namespace roofline::measure {

enum class Unit { flops_per_second, bytes_per_second, bytes, seconds, hertz };
std::string_view spelt(Unit unit);  // "FLOP/s", "B/s", "B", "s", "Hz"

/// One figure. Rates are those of the whole device; `one_thread` is what a single thread reached, where that was tried.
struct Found {
    std::string name;  // "memory.read", "vector.fp32", "l1.copy": a ceiling of a device where it is called like one
    Unit unit = Unit::bytes_per_second;
    double value = 0.0;
    double spread = 0.0;   // (best - worst) / best of the windows that the value is the mean of
    int windows = 0;       // measured in all, over every variant
    int slow_windows = 0;  // of these: a tenth slower than the best of their variant, and nothing was seen to be why
    bool settled = false;  // further windows had stopped raising the value
    std::optional<double> one_thread;
    std::optional<double> datasheet;  // in the same unit, where the device is known by name
    std::string variant;              // what was fastest: "avx512, 8 streams"
    std::string note;
    std::string problem;  // why there is no value: "wrong answer", "not on this machine"
};

/// All of it, ready to be saved: the context says under which conditions (schema/device.schema.json).
struct Measured {
    Device device;
    std::vector<Found> found;
    io::OrderedJson context;
    std::vector<std::string> notes;  // for people: what was odd, what is missing
    bool busy = false;               // others used the machine meanwhile: the figures may be too low
};

/// Called now and then with a few words on what is being done.
using Progress = std::function<void(std::string_view)>;

/// The list as it stands in the context of a device file.
io::OrderedJson found_json(const std::vector<Found>& found);

/// A device file: the device, with the context beside it.
io::OrderedJson measured_json(const Measured& measured);

}  // namespace roofline::measure
