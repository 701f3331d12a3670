#include "roofline/measure/topology.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <dlfcn.h>

namespace roofline::measure {
namespace {

constexpr std::size_t word_bits = 32;
constexpr std::size_t most_words = 4096;  // processors of the largest machine there is, many times over

/// The value of an attribute inside a tag: ` cpuset="..."`. The space keeps `complete_cpuset` apart.
std::string_view attribute(std::string_view tag, std::string_view name) {
    const std::string sought = " " + std::string(name) + "=\"";
    const std::size_t at = tag.find(sought);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = tag.substr(at + sought.size());
    return rest.substr(0, rest.find('"'));
}

/// Processors of every object of a type, those that are asked for and no others.
std::vector<std::vector<int>> objects(std::string_view xml, std::string_view type, const std::vector<int>& processors) {
    std::vector<std::vector<int>> found;
    const std::string opening = "<object type=\"" + std::string(type) + "\"";
    for (std::size_t at = xml.find(opening); at != std::string_view::npos; at = xml.find(opening, at + 1)) {
        const std::string_view tag = xml.substr(at, xml.find('>', at) - at);
        std::vector<int> here = processors_in(attribute(tag, "cpuset"));
        std::erase_if(here, [&](int processor) {
            return std::find(processors.begin(), processors.end(), processor) == processors.end();
        });
        if (!here.empty()) found.push_back(std::move(here));
    }
    return found;
}

}  // namespace

std::vector<int> processors_in(std::string_view cpuset) {
    std::vector<std::uint32_t> words;  // highest first
    while (!cpuset.empty() && words.size() < most_words) {
        const std::size_t end = std::min(cpuset.find(','), cpuset.size());
        std::string_view word = cpuset.substr(0, end);
        if (word.starts_with("0x")) word.remove_prefix(2);
        std::uint32_t bits = 0;
        const auto parsed = std::from_chars(word.data(), word.data() + word.size(), bits, 16);
        if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size()) return {};
        words.push_back(bits);
        cpuset.remove_prefix(std::min(end + 1, cpuset.size()));
    }
    std::vector<int> processors;
    for (std::size_t word = 0; word < words.size(); ++word) {
        for (std::size_t bit = 0; bit < word_bits; ++bit) {
            if (((words[words.size() - 1 - word] >> bit) & 1U) != 0)
                processors.push_back(static_cast<int>(word * word_bits + bit));
        }
    }
    return processors;
}

std::optional<Topology> read_topology(std::string_view xml, const std::vector<int>& processors) {
    Topology topology{objects(xml, "NUMANode", processors), objects(xml, "Core", processors)};
    if (topology.nodes.empty() && topology.cores.empty()) return std::nullopt;
    if (topology.nodes.empty()) topology.nodes.push_back(processors);
    return topology;
}

std::optional<std::string> hwloc_xml() {
    // Never unloaded: its plugins may have started threads.
    static void* const library = ::dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return std::nullopt;
    const auto function = [](const char* name) { return ::dlsym(library, name); };
    using Handle = void*;
    const auto start = reinterpret_cast<int (*)(Handle*)>(function("hwloc_topology_init"));
    const auto load = reinterpret_cast<int (*)(Handle)>(function("hwloc_topology_load"));
    const auto write =
        reinterpret_cast<int (*)(Handle, char**, int*, unsigned long)>(function("hwloc_topology_export_xmlbuffer"));
    const auto release = reinterpret_cast<void (*)(Handle, char*)>(function("hwloc_free_xmlbuffer"));
    const auto end = reinterpret_cast<void (*)(Handle)>(function("hwloc_topology_destroy"));
    if (start == nullptr || load == nullptr || write == nullptr || release == nullptr || end == nullptr)
        return std::nullopt;
    Handle topology = nullptr;
    if (start(&topology) != 0) return std::nullopt;
    std::optional<std::string> text;
    char* buffer = nullptr;
    int length = 0;
    if (load(topology) == 0 && write(topology, &buffer, &length, 0) == 0 && buffer != nullptr) {
        text.emplace(buffer, static_cast<std::size_t>(std::max(0, length)));
        release(topology, buffer);
    }
    end(topology);
    return text;
}

}  // namespace roofline::measure
