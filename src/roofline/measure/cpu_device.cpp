#include "roofline/measure/cpu_device.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "roofline/measure/rounds.hpp"

namespace roofline::measure {
namespace {

constexpr auto motions = std::to_array<std::string_view>({"read", "copy", "triad", "write"});
constexpr auto measured_types = std::to_array<DType>({DType::fp64, DType::fp32, DType::bf16, DType::fp16, DType::int8});

const Found* figure(std::span<const Found> found, std::string_view name) {
    for (const Found& candidate : found) {
        if (candidate.name == name && candidate.problem.empty() && candidate.value > 0.0) return &candidate;
    }
    return nullptr;
}

/// Lower-case letters and digits alone, without the marks that makers put into names.
std::string plain_name(std::string_view text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::string_view rest = text.substr(i);
        if (rest.starts_with("(R)")) {
            i += 2;
        } else if (rest.starts_with("(TM)")) {
            i += 3;
        } else if (rest.front() >= 'A' && rest.front() <= 'Z') {
            result += static_cast<char>(rest.front() - 'A' + 'a');
        } else if ((rest.front() >= 'a' && rest.front() <= 'z') || (rest.front() >= '0' && rest.front() <= '9') ||
                   rest.front() == '+') {
            result += rest.front();
        }
    }
    return result;
}

/// "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz" -> "intel-xeon-platinum-8481c"
std::string file_slug(std::string_view cpu) {
    const std::string_view name = cpu.substr(0, std::min(cpu.find(" CPU"), cpu.find(" @")));
    std::string slug;
    for (std::size_t i = 0; i < name.size(); ++i) {
        const std::string_view rest = name.substr(i);
        if (rest.starts_with("(R)")) {
            i += 2;
            continue;
        }
        if (rest.starts_with("(TM)")) {
            i += 3;
            continue;
        }
        const char c = rest.front();
        const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (c >= 'A' && c <= 'Z') {
            slug += static_cast<char>(c - 'A' + 'a');
        } else if (letter) {
            slug += c;
        } else if (!slug.empty() && slug.back() != '-') {
            slug += '-';
        }
    }
    while (!slug.empty() && slug.back() == '-') slug.pop_back();
    return slug.empty() ? "cpu" : slug;
}

std::string spread_note(const Found& found) {
    return fmt::format("{}{}best windows within {:.1f}%{}", found.variant, found.variant.empty() ? "" : "; ",
                       100.0 * found.spread, found.settled ? "" : ", not settled");
}

}  // namespace

std::vector<std::string> cpu_figure_names() {
    std::vector<std::string> names = {"clock"};
    for (const std::string_view level : {"l1", "l2", "l3", "memory"}) {
        for (const std::string_view motion : motions) names.push_back(fmt::format("{}.{}", level, motion));
    }
    for (const Engine engine : {Engine::vector, Engine::matrix}) {
        for (const DType type : measured_types) {
            if (engine == Engine::matrix && type != DType::bf16 && type != DType::int8) continue;
            names.push_back(fmt::format("{}.{}", name(engine), name(type)));
        }
    }
    return names;
}

bool named_by(std::string_view figure_name, std::string_view only) {
    if (only.empty() || figure_name == only) return true;
    const std::size_t dot = figure_name.find('.');
    if (dot == std::string_view::npos) return false;
    const std::string_view second = figure_name.substr(dot + 1);
    return figure_name.substr(0, dot) == only || second == only || second.substr(0, second.find(' ')) == only;
}

const Device* known_cpu(std::string_view cpu, std::span<const Device> devices) {
    const std::string wanted = plain_name(cpu);
    for (const Device& device : devices) {
        if (device.kind != "cpu") continue;
        for (const std::string& alias : device.aliases) {
            const std::string known = plain_name(alias);
            const std::size_t at = wanted.find(known);
            if (known.size() < 6 || at == std::string::npos) continue;
            // "platinum 8480" must not be found in "platinum 8480c": another processor.
            const std::size_t end = at + known.size();
            const bool whole = end == wanted.size() || wanted.compare(end, 3, "cpu") == 0;
            if (whole) return &device;
        }
    }
    return nullptr;
}

Device cpu_device(const Machine& machine, std::size_t threads, std::span<const Found> found,
                  std::span<const Plateau> levels, const std::string& date) {
    Device device;
    device.name = fmt::format("{}-{}", file_slug(machine.cpu), threads);
    device.title = fmt::format("{}, {} thread{}", machine.cpu, threads, threads == 1 ? "" : "s");
    device.vendor = machine.vendor;
    device.kind = "cpu";
    device.sources["measured"] = {SourceKind::measured, "roofline measure --device cpu", date};
    device.sources["system"] = {SourceKind::measured, "reported by the operating system", date};
    device.multiprocessors = Figure{static_cast<double>(threads), "measured", "threads that were measured"};
    for (const Engine engine : {Engine::matrix, Engine::vector}) {
        for (const DType type : measured_types) {
            const std::string path = fmt::format("{}.{}", name(engine), name(type));
            if (const Found* rate = figure(found, path)) {
                const Figure made{rate->value, "measured", spread_note(*rate)};
                device.rates[index(engine)][index(type)] = made;
                device.ceilings[path] = made;
            }
        }
    }
    if (const Found* memory = figure(found, "memory.read")) {
        MemoryLevel& level = device.levels[index(Level::memory)].emplace();
        level.technology = "main memory";
        if (machine.memory_bytes > 0.0) level.capacity = Figure{machine.memory_bytes, "system", ""};
        level.bandwidth = Figure{memory->value, "measured", "read; " + spread_note(*memory)};
        device.ceilings["memory.bandwidth"] = *level.bandwidth;
    }
    if (levels.size() >= 2) {
        const std::size_t last = levels.size() - 1;  // caches before main memory
        MemoryLevel& level = device.levels[index(Level::cache)].emplace();
        level.technology = fmt::format("L{}", last);
        level.capacity = Figure{levels[last - 1].knee, "measured", "where a read sweep on one thread begins to fall"};
        const Found* cache = figure(found, fmt::format("l{}.read", last));
        const Found* memory = figure(found, "memory.read");
        // What was measured slower than memory is no figure of the cache; unknown is better.
        if (cache != nullptr && (memory == nullptr || cache->value >= memory->value)) {
            level.bandwidth = Figure{cache->value, "measured", "read; " + spread_note(*cache)};
            device.ceilings["cache.bandwidth"] = *level.bandwidth;
        }
    }
    return device;
}

std::optional<Device> on_one_thread(const Device& device, const io::Json& file) {
    if (!device.multiprocessors) return std::nullopt;
    const std::string source = device.multiprocessors->source;
    const auto reached = [&](const std::string& figure_name) -> std::optional<Figure> {
        const auto context = file.find("context");
        if (context == file.end() || !context->is_object()) return std::nullopt;
        const auto figures = context->find("figures");
        if (figures == context->end() || !figures->is_array()) return std::nullopt;
        for (const io::Json& one : *figures) {
            const auto called = one.find("name");
            const auto rate = one.find("one_thread");
            if (called == one.end() || *called != figure_name || rate == one.end() || !rate->is_number()) continue;
            if (const auto value = rate->get<double>(); value > 0.0) return Figure{value, source, "one thread"};
        }
        return std::nullopt;
    };
    Device alone = device;
    alone.name += "-one-thread";
    alone.title += ", one of them";
    alone.multiprocessors = Figure{1.0, source, "the thread that was measured"};
    alone.ceilings.clear();
    const auto put = [&](std::optional<Figure>& place, const std::string& figure_name, const std::string& ceiling) {
        place = reached(figure_name);
        if (place) alone.ceilings[ceiling] = *place;
    };
    for (const Engine engine : {Engine::matrix, Engine::vector}) {
        for (const DType type : measured_types) {
            const std::string path = fmt::format("{}.{}", name(engine), name(type));
            put(alone.rates[index(engine)][index(type)], path, path);
        }
    }
    if (auto& memory = alone.levels[index(Level::memory)]) put(memory->bandwidth, "memory.read", "memory.bandwidth");
    if (auto& cache = alone.levels[index(Level::cache)]) {
        // What is called L3 has the figure l3.read.
        const bool numbered = cache->technology.starts_with("L");
        put(cache->bandwidth, numbered ? fmt::format("l{}.read", cache->technology.substr(1)) : "", "cache.bandwidth");
    }
    if (alone.bandwidth(Level::memory) == nullptr) return std::nullopt;
    return alone;
}

std::vector<std::string> disturbances(const Disturbance& seen, std::span<const Found> found) {
    std::vector<std::string> reasons;
    if (seen.others >= 0.1) reasons.push_back(fmt::format("others kept {:.1f} processors busy meanwhile", seen.others));
    if (seen.stolen >= 0.01) {
        reasons.push_back(
            fmt::format("the host of this virtual machine took {:.0f}% of the time", 100.0 * seen.stolen));
    }
    std::size_t loose = 0;
    std::size_t all = 0;
    for (const Found& one : found) {
        if (!one.problem.empty() || one.windows == 0) continue;
        ++all;
        if (one.spread > agreement) ++loose;
    }
    if (all > 0 && 4 * loose > all)
        reasons.push_back(fmt::format("{} of {} figures had no three windows within 2%", loose, all));
    // What uses the other half of a core is seen by nobody in a virtual machine, but it cannot be hidden either.
    std::vector<std::string_view> outdone_by_one;
    int slow = 0;
    int arithmetic = 0;
    for (const Found& one : found) {
        if (!one.problem.empty() || one.unit != Unit::flops_per_second) continue;
        if (one.one_thread && outdone(one.value, *one.one_thread)) outdone_by_one.push_back(one.name);
        slow += one.slow_windows;
        arithmetic += one.windows;
    }
    if (!outdone_by_one.empty()) {
        reasons.push_back(
            fmt::format("one thread alone was faster than all together at {}", fmt::join(outdone_by_one, ", ")));
    }
    if (4 * slow > arithmetic) {
        reasons.push_back(
            fmt::format("{} of {} windows of arithmetic were a tenth slower than the best of their kind: "
                        "something else uses the same cores",
                        slow, arithmetic));
    }
    return reasons;
}

}  // namespace roofline::measure
