// What the machine says about itself, and how quiet it was. None of it enters a figure: caches are found by reading,
// and rates by running. It names the profile, decides how many threads and how much memory are used, and goes into the
// context that is saved with the figures.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace roofline::measure {

struct Machine {
    std::string cpu;                      // "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "Arm Neoverse-V1"
    std::string vendor;                   // "Intel", "AMD", "Arm" ...; empty: unknown
    std::vector<int> processors;          // that this process may run on
    std::vector<std::vector<int>> nodes;  // of them, by NUMA node
    std::size_t cores = 0;                // that they are on; zero: unknown
    std::string topology;                 // who says so: "hwloc", "the system's files"
    double processor_limit = 0.0;         // of a container, in processors; zero: none
    double memory_bytes = 0.0;            // of the machine, or of the container where that is less
    double free_bytes = 0.0;              // that can be taken without pushing something else out
    double last_cache_bytes = 0.0;        // as the system reports it: only to choose how much memory to walk through
    std::string huge_pages;               // "always", "madvise", "never"; empty: unknown
    std::string system;                   // "Linux 6.1.0"
    bool virtual_machine = false;
};

Machine this_machine();

/// "16 processors on 8 cores, 1 NUMA node (by hwloc)".
std::string topology_line(const Machine& machine);

/// How much of the processors' time went where, in ticks since the machine started.
struct ProcessorTime {
    double busy = 0.0;  // anything but waiting, stolen time excluded
    double idle = 0.0;
    double stolen = 0.0;  // taken by the host of a virtual machine
};

/// What happened on the processors between two looks, besides ourselves.
struct Disturbance {
    double others = 0.0;  // processors' worth of work that others did
    double stolen = 0.0;  // share of the time that the host took
};

/// Watches the processors from its beginning on.
class Watch {
  public:
    explicit Watch(std::vector<int> processors);
    std::optional<Disturbance> so_far() const;  // empty where the system does not tell
    static double load_average();               // of the last minute; negative where the system does not tell

  private:
    std::vector<int> processors_;
    std::optional<ProcessorTime> start_;
    double own_start_ = 0.0;
};

// ---- the files behind it, as text: for tests ----

/// The name of the processor in /proc/cpuinfo. On AArch64 it is looked up by implementer and part.
std::string cpu_name(std::string_view cpuinfo);
std::string cpu_vendor(std::string_view cpuinfo);
/// "0-3,8" -> 0 1 2 3 8; what is not a number ends it.
std::vector<int> processor_list(std::string_view text);
/// cpu.max of a control group ("200000 100000"), in processors; zero for "max" and for what cannot be read.
double processor_quota(std::string_view text);
/// A line "MemAvailable:   123 kB" of /proc/meminfo, in bytes; zero where it is not there.
double meminfo_bytes(std::string_view meminfo, std::string_view key);
/// The word in brackets: "always [madvise] never" -> "madvise".
std::string chosen_word(std::string_view text);
/// The lines of those processors in /proc/stat, added up.
std::optional<ProcessorTime> processor_time(std::string_view stat, const std::vector<int>& processors);

}  // namespace roofline::measure
