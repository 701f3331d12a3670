#include "roofline/measure/cuda_device.hpp"

#include <optional>

#include <fmt/format.h>

#include "roofline/io/catalog.hpp"

namespace roofline::measure {
namespace {

constexpr std::string_view answer_of_plugin = "answer of roofline_cuda.so";
constexpr const char* here = "this-machine";  // the source of everything measured now

std::string_view generation_of(std::string_view capability) {
    if (capability.starts_with("7.5")) return "turing";
    if (capability.starts_with("8.9")) return "ada";
    if (capability.starts_with("8.")) return "ampere";
    if (capability.starts_with("9.")) return "hopper";
    if (capability.starts_with("10.") || capability.starts_with("11.") || capability.starts_with("12."))
        return "blackwell";
    return "";
}

/// "NVIDIA H200" -> "nvidia-h200"
std::string slug(std::string_view title) {
    std::string result;
    for (const char c : title) {
        const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        const bool kept = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
        if (kept) {
            result += lower;
        } else if (!result.empty() && result.back() != '-') {
            result += '-';
        }
    }
    while (!result.empty() && result.back() == '-') result.pop_back();
    return result.empty() ? "gpu" : result;
}

std::optional<Unit> unit_of(std::string_view text) {
    if (text == "B/s") return Unit::bytes_per_second;
    if (text == "FLOP/s" || text == "OP/s") return Unit::flops_per_second;
    if (text == "B") return Unit::bytes;
    if (text == "s") return Unit::seconds;
    return std::nullopt;
}

struct Path {
    std::string_view first;   // memory, matrix
    std::string_view second;  // read, bf16
    std::string_view rest;    // sustained, pageable
};

Path split(std::string_view name) {
    Path path;
    const std::size_t dot = name.find('.');
    path.first = name.substr(0, dot);
    if (dot == std::string_view::npos) return path;
    const std::string_view tail = name.substr(dot + 1);
    const std::size_t next = tail.find('.');
    path.second = tail.substr(0, next);
    if (next != std::string_view::npos) path.rest = tail.substr(next + 1);
    return path;
}

/// The datasheet's figure that a measured one is held against; empty where none is published.
std::optional<double> datasheet_of(const Device& device, std::string_view name) {
    const Path path = split(name);
    const auto bandwidth = [&](Level level, double factor) -> std::optional<double> {
        const Figure* figure = device.bandwidth(level);
        return figure != nullptr ? std::optional<double>(figure->value * factor) : std::nullopt;
    };
    if (path.first == "memory") return bandwidth(Level::memory, 1.0);
    if (name == "cache.read") return bandwidth(Level::cache, 1.0);
    if (name == "cache.knee") {
        const Figure* capacity = device.capacity(Level::cache);
        return capacity != nullptr ? std::optional<double>(capacity->value) : std::nullopt;
    }
    if (path.first == "host") return bandwidth(Level::host, path.second == "both_ways" ? 2.0 : 1.0);
    if (path.first == "peer") return bandwidth(Level::peer, 1.0);
    if (path.first == "matrix" || path.first == "vector") {
        const auto type = parse_dtype(path.second);
        if (!type) return std::nullopt;
        const auto& rate = device.rate(path.first == "matrix" ? Engine::matrix : Engine::vector, *type);
        return rate ? std::optional<double>(rate->value) : std::nullopt;
    }
    return std::nullopt;
}

Found read_figure(io::Fields& fields) {
    Found found;
    found.name = fields.text("name");
    const std::string unit = fields.text("unit");
    if (const auto known = unit_of(unit)) {
        found.unit = *known;
    } else {
        fields.complain("unit", fmt::format("is \"{}\", expected B/s, FLOP/s, OP/s, B or s", unit));
    }
    found.value = fields.positive("value");
    const double low = fields.number_or("low", found.value);
    const double high = fields.number_or("high", found.value);
    if (!(low <= found.value && found.value <= high)) fields.complain("value", "is not between its low and its high");
    if (high > 0.0) found.spread = (high - low) / high;
    found.windows = static_cast<int>(fields.count_or("samples", 0.0));
    found.settled = true;
    found.variant = fields.text_or("how", "");
    const double clock = fields.number_or("clock_hz", 0.0);
    const double watts = fields.number_or("watts", 0.0);
    if (clock > 0.0) found.note = fmt::format("at {:.0f} MHz", clock / 1e6);
    if (watts > 0.0) found.note += fmt::format("{}{:.0f} W", found.note.empty() ? "at " : " and ", watts);
    return found;
}

const Found* figure(const std::vector<Found>& found, std::string_view name) {
    for (const Found& candidate : found) {
        if (candidate.name == name && candidate.problem.empty()) return &candidate;
    }
    return nullptr;
}

Figure made_of(const Found& found) {
    std::string note = found.variant;
    if (!found.note.empty()) note += "; " + found.note;
    return {found.value, here, std::move(note)};
}

/// A GPU that no datasheet here describes: what was measured is all that is known of it.
Device unknown_gpu(const std::string& title, const std::string& capability, const std::vector<Found>& found) {
    Device device;
    device.name = slug(title);
    device.title = title;
    device.vendor = "NVIDIA";
    device.kind = "gpu";
    device.generation = generation_of(capability);
    for (const Engine engine : {Engine::matrix, Engine::vector}) {
        for (const DType type : all_dtypes) {
            if (const Found* rate = figure(found, fmt::format("{}.{}", name(engine), name(type))))
                device.rates[index(engine)][index(type)] = made_of(*rate);
        }
    }
    const auto level = [&](Level which, std::string_view from, std::string technology) {
        const Found* bandwidth = figure(found, from);
        if (bandwidth == nullptr) return;
        MemoryLevel& made = device.levels[index(which)].emplace();
        made.technology = std::move(technology);
        made.bandwidth = made_of(*bandwidth);
    };
    level(Level::memory, "memory.read", "device memory");
    level(Level::cache, "cache.read", "L2");
    level(Level::host, "host.to_device", "host link");
    return device;
}

void take_ceilings(Device& device, const std::vector<Found>& found) {
    const auto ceiling = [&](const std::string& path, std::string_view from) {
        if (const Found* measured = figure(found, from)) device.ceilings[path] = made_of(*measured);
    };
    ceiling("memory.bandwidth", "memory.read");
    ceiling("cache.bandwidth", "cache.read");
    ceiling("host.bandwidth", "host.to_device");
    for (const Engine engine : {Engine::matrix, Engine::vector}) {
        for (const DType type : all_dtypes) {
            const std::string path = fmt::format("{}.{}", name(engine), name(type));
            ceiling(path, path);
        }
    }
    // The slowest of the peers: a collective waits for it.
    const Found* slowest = nullptr;
    for (const Found& candidate : found) {
        if (candidate.problem.empty() && candidate.name.starts_with("peer.copy.") &&
            (slowest == nullptr || candidate.value < slowest->value))
            slowest = &candidate;
    }
    if (slowest != nullptr) device.ceilings["peer.bandwidth"] = made_of(*slowest);
}

}  // namespace

std::vector<std::string> cuda_figures_named(std::string_view only) {
    if (only.empty()) return {};
    if (parse_dtype(only)) return {fmt::format("vector.{}", only), fmt::format("matrix.{}", only)};
    if (only == "l2") return {"cache"};
    return {std::string(only)};
}

Result<Measured> read_cuda_answer(const io::Json& answer, const CudaOptions& options) {
    std::optional<Problem> problem;
    io::Fields fields(answer, std::string(answer_of_plugin), "", problem);
    Measured measured;
    io::Fields gpu = fields.child("device");
    const std::string title = gpu.text("name");
    const std::string capability = gpu.text_or("capability", "");
    const std::string driver = gpu.text_or("driver", "");
    const std::string runtime = gpu.text_or("runtime", "");
    const double multiprocessors = gpu.size("multiprocessors");
    const double memory_bytes = gpu.positive("memory_bytes");
    const double l2_bytes = gpu.number_or("l2_bytes", 0.0);
    for (io::Fields& entry : fields.children("figures")) {
        measured.found.push_back(read_figure(entry));
        for (std::size_t i = 0; i + 1 < measured.found.size(); ++i) {
            if (measured.found[i].name == measured.found.back().name) entry.complain("name", "is there twice");
        }
    }
    if (fields.has("refused")) {
        for (io::Fields& entry : fields.children("refused")) {
            Found refused;
            refused.name = entry.text("name");
            refused.problem = entry.text("why");
            if (refused.problem.empty()) refused.problem = "refused";
            measured.found.push_back(std::move(refused));
        }
    }
    if (fields.has("notes")) measured.notes = fields.texts("notes");
    measured.busy = fields.flag("busy", false);
    const double seconds = fields.number_or("seconds", 0.0);
    if (problem) return std::unexpected(std::move(*problem));

    const auto known = io::builtin_device(title);
    measured.device = known ? *known : unknown_gpu(title, capability, measured.found);
    Device& device = measured.device;
    device.sources[here] = {SourceKind::measured,
                            fmt::format("roofline measure --device cuda:{}{}; driver {}, CUDA {}", options.index,
                                        options.quick ? " --quick" : "", driver.empty() ? "unknown" : driver,
                                        runtime.empty() ? "unknown" : runtime),
                            options.date};
    device.multiprocessors = Figure{multiprocessors, here, ""};
    auto& memory = device.levels[index(Level::memory)];
    if (!memory) memory.emplace().technology = "device memory";
    if (!memory->capacity) memory->capacity = Figure{memory_bytes, here, "as the driver reports it"};
    memory->reported = Figure{memory_bytes, here, ""};
    if (l2_bytes > 0.0) {
        auto& cache = device.levels[index(Level::cache)];
        if (!cache) cache.emplace().technology = "L2";
        if (!cache->capacity) cache->capacity = Figure{l2_bytes, here, "as the driver reports it"};
    }
    if (known) {
        for (Found& found : measured.found) {
            if (!found.problem.empty()) continue;
            found.datasheet = datasheet_of(*known, found.name);
            // Taken as it is, and said: caches, a clock above the datasheet's or an error, whoever reads it decides.
            if (found.datasheet && found.unit != Unit::bytes && found.value > *found.datasheet) {
                measured.notes.push_back(fmt::format("{} is {:.0f}% above the datasheet", found.name,
                                                     100.0 * (found.value / *found.datasheet - 1.0)));
            }
        }
    } else {
        measured.notes.push_back(
            fmt::format("no built-in device is called \"{}\": the measured figures stand in for its datasheet", title));
    }
    take_ceilings(device, measured.found);
    if (measured.busy) measured.notes.emplace_back("the GPU was in use before the run began: figures may be too low");

    measured.context = {{"device", fmt::format("cuda:{}", options.index)},
                        {"name", title},
                        {"capability", capability},
                        {"driver", driver},
                        {"runtime", runtime},
                        {"quick", options.quick},
                        {"date", options.date},
                        {"seconds", seconds}};
    for (const char* key : {"clock_hz", "memory_clock_hz", "power_limit_w"}) {
        if (const double value = gpu.number_or(key, 0.0); value > 0.0) measured.context[key] = value;
    }
    if (const double celsius = fields.number_or("celsius", 0.0); celsius > 0.0) measured.context["celsius"] = celsius;
    return measured;
}

Result<Measured> measure_cuda(const CudaOptions& options, const CudaBackend& backend) {
    const io::Json request = {
        {"do", "measure"}, {"device", options.index}, {"quick", options.quick}, {"only", options.only}};
    const auto answer = backend.call(request, options.progress);
    if (!answer) return std::unexpected(answer.error());
    return read_cuda_answer(*answer, options);
}

Result<Measured> measure_cuda(const CudaOptions& options) {
    const auto backend = CudaBackend::load();
    if (!backend) return std::unexpected(backend.error());
    return measure_cuda(options, *backend);
}

}  // namespace roofline::measure
