// Which processors share a core and which a NUMA node, as hwloc knows it. hwloc is loaded when it is asked and nothing
// of it is needed to build: it writes its topology as XML,
//
//   <object type="NUMANode" os_index="0" cpuset="0x0000000f" ...>
//   <object type="Core" os_index="1" cpuset="0x0000000c" ...>
//
// where a cpuset lists processors as bits, in words of 32 with the highest first: "0x00000001,0x00000003" is 0, 1, 32.
// HWLOC_XMLFILE and HWLOC_SYNTHETIC replace the machine by another, as in every program that uses hwloc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace roofline::measure {

struct Topology {
    std::vector<std::vector<int>> nodes;  // processors of each that has any, in the order of their numbers
    std::vector<std::vector<int>> cores;
};

/// Processors of a cpuset; what is not one ends it.
std::vector<int> processors_in(std::string_view cpuset);

/// What the text says of those processors; empty where it names none of them.
std::optional<Topology> read_topology(std::string_view xml, const std::vector<int>& processors);

/// hwloc's own text; empty where hwloc is not on this machine.
std::optional<std::string> hwloc_xml();

}  // namespace roofline::measure
