#include "roofline/measure/machine.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sched.h>
#include <sstream>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "roofline/measure/topology.hpp"

namespace roofline::measure {
namespace {

std::string read_file(const std::string& path) {
    const std::ifstream stream(path);
    std::ostringstream text;
    if (stream) text << stream.rdbuf();
    return text.str();
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\n' || text.back() == '\r'))
        text.remove_suffix(1);
    return text;
}

/// The value of the first line "key : value".
std::string_view field(std::string_view text, std::string_view key) {
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = text.substr(at, end - at);
        const std::size_t colon = line.find(':');
        if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == key)
            return trimmed(line.substr(colon + 1));
        at = end + 1;
    }
    return {};
}

struct ArmPart {
    std::string_view implementer;
    std::string_view part;
    std::string_view name;
};
constexpr auto arm_parts = std::to_array<ArmPart>({
    {"0x41", "0xd03", "Arm Cortex-A53"},
    {"0x41", "0xd05", "Arm Cortex-A55"},
    {"0x41", "0xd08", "Arm Cortex-A72"},
    {"0x41", "0xd0b", "Arm Cortex-A76"},
    {"0x41", "0xd0c", "Arm Neoverse-N1"},
    {"0x41", "0xd40", "Arm Neoverse-V1"},
    {"0x41", "0xd49", "Arm Neoverse-N2"},
    {"0x41", "0xd4f", "Arm Neoverse-V2"},
    {"0x41", "0xd84", "Arm Neoverse-V3"},
    {"0x41", "0xd8e", "Arm Neoverse-N3"},
    {"0x46", "0x001", "Fujitsu A64FX"},
    {"0x48", "0xd01", "HiSilicon TSV110"},
    {"0xc0", "0xac3", "Ampere AmpereOne"},
    {"0x61", "0x022", "Apple M1"},
    {"0x61", "0x032", "Apple M2"},
    {"0x6d", "0xd49", "Microsoft Azure Cobalt 100"},
});

std::vector<int> allowed_processors() {
    std::vector<int> result;
#if defined(__linux__)
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0) {
        for (int i = 0; i < CPU_SETSIZE; ++i) {
            if (CPU_ISSET(static_cast<unsigned>(i), &set)) result.push_back(i);
        }
    }
#endif
    if (result.empty()) {
        result.resize(std::max(1U, std::thread::hardware_concurrency()));
        std::iota(result.begin(), result.end(), 0);
    }
    return result;
}

std::vector<std::vector<int>> nodes_of(const std::vector<int>& processors) {
    std::vector<std::vector<int>> nodes;
    for (const int node : processor_list(read_file("/sys/devices/system/node/online"))) {
        std::vector<int> here;
        for (const int cpu : processor_list(read_file(fmt::format("/sys/devices/system/node/node{}/cpulist", node)))) {
            if (std::find(processors.begin(), processors.end(), cpu) != processors.end()) here.push_back(cpu);
        }
        if (!here.empty()) nodes.push_back(std::move(here));
    }
    if (nodes.empty()) nodes.push_back(processors);
    return nodes;
}

/// The control group of this process as the file system shows it: inside a container it is the root; elsewhere its path
/// is in /proc/self/cgroup.
std::string group_file(std::string_view name) {
    std::string text = read_file(fmt::format("/sys/fs/cgroup/{}", name));
    if (!text.empty()) return text;
    const std::string groups = read_file("/proc/self/cgroup");
    const std::size_t at = groups.find("0::");
    if (at == std::string::npos) return "";
    const std::string_view path = trimmed(std::string_view(groups).substr(at + 3));
    return read_file(fmt::format("/sys/fs/cgroup{}/{}", path.substr(0, path.find('\n')), name));
}

double as_number(std::string_view text) {
    const std::string_view digits = trimmed(text);
    double value = 0.0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() ? value : 0.0;
}

/// "32768K", "32M".
double cache_size(std::string_view text) {
    const std::string_view digits = trimmed(text);
    const double value = as_number(digits);
    if (digits.ends_with("K")) return value * 1024.0;
    if (digits.ends_with("M")) return value * 1024.0 * 1024.0;
    return value;
}

double last_cache() {
    double largest = 0.0;
    for (int index = 0; index < 8; ++index) {
        const std::string text = read_file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
        largest = std::max(largest, cache_size(text));
    }
    return largest;
}

double own_seconds() {
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0.0;
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

std::string cpu_name(std::string_view cpuinfo) {
    for (const std::string_view key : {"model name", "Model", "cpu model", "cpu"}) {
        const std::string_view found = field(cpuinfo, key);
        if (!found.empty()) return std::string(found);
    }
    const std::string_view implementer = field(cpuinfo, "CPU implementer");
    const std::string_view part = field(cpuinfo, "CPU part");
    for (const ArmPart& known : arm_parts) {
        if (known.implementer == implementer && known.part == part) return std::string(known.name);
    }
    if (!part.empty()) return fmt::format("AArch64 processor {}:{}", implementer, part);
    return "unknown processor";
}

std::string cpu_vendor(std::string_view cpuinfo) {
    const std::string_view id = field(cpuinfo, "vendor_id");
    if (id == "GenuineIntel") return "Intel";
    if (id == "AuthenticAMD") return "AMD";
    const std::string name = cpu_name(cpuinfo);
    for (const std::string_view vendor : {"Arm", "Fujitsu", "Ampere", "Apple", "HiSilicon", "Microsoft"}) {
        if (name.starts_with(vendor)) return std::string(vendor);
    }
    return "";
}

std::vector<int> processor_list(std::string_view text) {
    std::vector<int> result;
    const char* at = text.data();
    const char* end = at + text.size();
    while (at < end) {
        int first = 0;
        auto parsed = std::from_chars(at, end, first);
        if (parsed.ec != std::errc()) break;
        at = parsed.ptr;
        int last = first;
        if (at < end && *at == '-') {
            parsed = std::from_chars(at + 1, end, last);
            if (parsed.ec != std::errc()) break;
            at = parsed.ptr;
        }
        for (int i = first; i <= last && i - first < 65536; ++i) result.push_back(i);
        if (at >= end || *at != ',') break;
        ++at;
    }
    return result;
}

double processor_quota(std::string_view text) {
    const std::string_view line = trimmed(text);
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || line.starts_with("max")) return 0.0;
    const double quota = as_number(line.substr(0, space));
    const double period = as_number(line.substr(space + 1));
    return quota > 0.0 && period > 0.0 ? quota / period : 0.0;
}

double meminfo_bytes(std::string_view meminfo, std::string_view key) {
    return as_number(field(meminfo, key)) * 1024.0;
}

std::string chosen_word(std::string_view text) {
    const std::size_t open = text.find('[');
    const std::size_t close = text.find(']');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) return "";
    return std::string(text.substr(open + 1, close - open - 1));
}

std::optional<ProcessorTime> processor_time(std::string_view stat, const std::vector<int>& processors) {
    ProcessorTime sum;
    bool any = false;
    std::size_t at = 0;
    while (at < stat.size()) {
        const std::size_t line_end = std::min(stat.find('\n', at), stat.size());
        const std::string_view line = stat.substr(at, line_end - at);
        at = line_end + 1;
        if (!line.starts_with("cpu") || line.size() < 4 || line[3] < '0' || line[3] > '9') continue;
        int number = 0;
        const char* from = line.data() + 3;
        const char* end = line.data() + line.size();
        from = std::from_chars(from, end, number).ptr;
        if (std::find(processors.begin(), processors.end(), number) == processors.end()) continue;
        // user nice system idle iowait irq softirq steal; guests are part of user
        std::array<double, 8> ticks{};
        for (double& value : ticks) {
            while (from < end && *from == ' ') ++from;
            const auto parsed = std::from_chars(from, end, value);
            if (parsed.ec != std::errc()) break;
            from = parsed.ptr;
        }
        sum.busy += ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
        sum.idle += ticks[3] + ticks[4];
        sum.stolen += ticks[7];
        any = true;
    }
    if (!any) return std::nullopt;
    return sum;
}

Watch::Watch(std::vector<int> processors)
    : processors_(std::move(processors)),
      start_(processor_time(read_file("/proc/stat"), processors_)),
      own_start_(own_seconds()) {}

std::optional<Disturbance> Watch::so_far() const {
    const auto now = processor_time(read_file("/proc/stat"), processors_);
    const double ticks_a_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
    if (!start_ || !now || ticks_a_second <= 0.0) return std::nullopt;
    const double busy = (now->busy - start_->busy) / ticks_a_second;
    const double idle = (now->idle - start_->idle) / ticks_a_second;
    const double stolen = (now->stolen - start_->stolen) / ticks_a_second;
    const double all = busy + idle + stolen;
    const double elapsed = all / static_cast<double>(std::max<std::size_t>(1, processors_.size()));
    if (elapsed < 0.05) return Disturbance{};  // a few ticks say nothing
    return Disturbance{std::max(0.0, busy - (own_seconds() - own_start_)) / elapsed, stolen / all};
}

double Watch::load_average() {
    double load = 0.0;
    return ::getloadavg(&load, 1) == 1 ? load : -1.0;
}

std::string topology_line(const Machine& machine) {
    const auto counted = [](std::size_t count, std::string_view what) {
        return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
    };
    std::string text = counted(machine.processors.size(), "processor");
    if (machine.cores > 0) text += " on " + counted(machine.cores, "core");
    text += ", " + counted(machine.nodes.size(), "NUMA node");
    return text + fmt::format(" (by {})", machine.topology);
}

Machine this_machine() {
    Machine machine;
    const std::string cpuinfo = read_file("/proc/cpuinfo");
    machine.cpu = cpu_name(cpuinfo);
    machine.vendor = cpu_vendor(cpuinfo);
    // x86 says so among its flags; elsewhere the board is called virtual.
    machine.virtual_machine = std::string_view(field(cpuinfo, "flags")).find("hypervisor") != std::string_view::npos ||
                              read_file("/proc/device-tree/compatible").find("dummy-virt") != std::string::npos;
    machine.processors = allowed_processors();
    const auto xml = hwloc_xml();
    if (auto topology = xml ? read_topology(*xml, machine.processors) : std::nullopt) {
        machine.nodes = std::move(topology->nodes);
        machine.cores = topology->cores.size();
        machine.topology = "hwloc";
    } else {
        machine.nodes = nodes_of(machine.processors);
        machine.topology = "the system's files";
    }
    machine.processor_limit = processor_quota(group_file("cpu.max"));
    if (machine.processor_limit == 0.0) {  // the older kind of control groups
        const double quota = as_number(read_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"));
        const double period = as_number(read_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
        if (quota > 0.0 && period > 0.0) machine.processor_limit = quota / period;
    }
    const std::string meminfo = read_file("/proc/meminfo");
    machine.memory_bytes = meminfo_bytes(meminfo, "MemTotal");
    machine.free_bytes = meminfo_bytes(meminfo, "MemAvailable");
    for (const std::string& limit :
         {group_file("memory.max"), read_file("/sys/fs/cgroup/memory/memory.limit_in_bytes")}) {
        const double bytes = as_number(limit);
        if (bytes <= 0.0 || bytes >= machine.memory_bytes) continue;
        const double used = std::max(as_number(group_file("memory.current")),
                                     as_number(read_file("/sys/fs/cgroup/memory/memory.usage_in_bytes")));
        machine.memory_bytes = bytes;
        machine.free_bytes = std::min(machine.free_bytes, std::max(0.0, bytes - used));
    }
    machine.last_cache_bytes = last_cache();
    machine.huge_pages = chosen_word(read_file("/sys/kernel/mm/transparent_hugepage/enabled"));
    utsname names{};
    if (::uname(&names) == 0) machine.system = fmt::format("{} {}", names.sysname, names.release);
    return machine;
}

}  // namespace roofline::measure
