// What a profiler with hardware counters says about one launch of a kernel, in base units, and what that means: which
// FLOPs it did on which pipe, what crossed each memory, how its threads touched memory. Readers of a profiler's files
// fill in Counters; launches become records here.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "roofline/analyze/analysis.hpp"

namespace roofline::analyze {

struct Counters {
    std::string kernel;  // as the profiler spells it, mangled with templates
    std::string grid;    // "(2, 66, 1)"
    std::string device;  // as the driver calls it; empty: not said
    Seconds duration{};
    std::map<std::pair<Engine, DType>, double> flops;
    bool flops_counted = false;                 // the file has counters of FLOPs: zero then means zero
    std::optional<double> dram;                 // bytes, read and written
    std::optional<double> dram_read;            // of them
    std::optional<double> dram_write;           // of them
    std::optional<double> l2;                   // bytes from the L2 cache to the multiprocessors
    std::optional<double> l2_hit_rate;          // fraction
    std::optional<double> sectors_per_request;  // of global loads; 4 is four bytes a thread in a row
    std::optional<double> bytes_per_sector;     // of 32 that were asked for, in global loads
    std::optional<double> occupancy;            // achieved, a fraction of the warps that fit
    std::optional<double> occupancy_limit;      // by registers, shared memory and block size
    std::optional<double> waves;                // blocks over blocks that run at a time
    std::optional<double> spills;               // requests to local memory because registers ran out
    std::optional<double> tensor_busy;          // fraction of the time the tensor pipe was busy
    std::optional<double> clock;                // of the multiprocessors while it ran, hertz
    std::optional<double> clock_limit;          // the highest the device allows
    std::optional<double> l2_size;
    std::optional<double> multiprocessors;
    std::optional<double> passes;  // how often the launch was run to count everything

    double matrix_flops() const;
    double vector_flops() const;
};

/// "vectorized_elementwise_kernel(silu_kernel)" of what the compiler made of it; a plain name stays as it is.
std::string spoken_kernel_name(std::string_view name);

/// Records by kernel and grid, stages where steps can be told apart, the device where one is named, clocks and caches
/// as they were, and the pattern of memory accesses in words.
Result<Analysis> analysis_of(const std::vector<Counters>& launches, const Options& options);

}  // namespace roofline::analyze
