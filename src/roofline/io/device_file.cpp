#include "roofline/io/device_file.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "roofline/io/tensors.hpp"
#include "roofline/io/units.hpp"

namespace roofline::io {
namespace {

constexpr std::string_view device_schema = "roofline.device/1";
constexpr auto known_keys = std::to_array<std::string_view>(
    {"schema",  "name",     "title",   "vendor",          "year",        "kind",   "generation",
     "aliases", "status",   "engines", "multiprocessors", "matrix_tile", "memory", "links",
     "power",   "ceilings", "sources", "notes",           "context",     "ridge"});

std::optional<DType> engine_type(std::string_view key) {
    for (const DType type : all_dtypes) {
        if (name(type) == key) return type;
    }
    return std::nullopt;
}

/// Generations are compared letter by letter, so there is one way to write each.
bool is_generation(std::string_view text) {
    return std::ranges::all_of(text,
                               [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

class Reader {
  public:
    explicit Reader(Device& device) : device_(device) {}

    /// A misspelt key would otherwise be an absent figure.
    static void allow(Fields& fields, std::initializer_list<std::string_view> keys) {
        for (const std::string& key : fields.keys()) {
            if (std::find(keys.begin(), keys.end(), key) == keys.end())
                fields.complain(key, "is not a key that belongs here");
        }
    }

    std::optional<Figure> figure(Fields& parent, std::string_view key, Dimension dimension) {
        if (!parent.has(key)) return std::nullopt;
        Fields fields = parent.child(key);
        allow(fields, {"value", "unit", "source", "note"});
        Figure figure;
        const std::string unit = fields.text("unit");
        const auto factor = unit_factor(unit, dimension);
        if (!factor)
            fields.complain("unit", fmt::format("is \"{}\", expected {}", printable(unit), expected_units(dimension)));
        figure.value =
            dimension == Dimension::count ? fields.size("value") : fields.positive("value") * factor.value_or(1.0);
        figure.source = fields.text("source");
        figure.note = fields.text_or("note", "");
        if (!device_.sources.contains(figure.source)) {
            fields.complain(
                "source", fmt::format("is \"{}\", which the file's \"sources\" do not list", printable(figure.source)));
        }
        return figure;
    }

    void sources(Fields& file) {
        Fields sources = file.child("sources");
        for (const std::string& id : sources.keys()) {
            Fields entry = sources.child(id);
            const std::string kind = entry.text("kind");
            Source source;
            bool known = false;
            for (const SourceKind candidate :
                 {SourceKind::vendor, SourceKind::measured, SourceKind::derived, SourceKind::assumed}) {
                if (name(candidate) == kind) {
                    source.kind = candidate;
                    known = true;
                }
            }
            if (!known) {
                entry.complain(
                    "kind", fmt::format("is \"{}\", expected vendor, measured, derived or assumed", printable(kind)));
            }
            source.title = entry.text("title");
            source.date = entry.text_or("date", "");
            device_.sources[id] = source;
        }
    }

    void engines(Fields& file) {
        for (Fields& engine : file.children("engines")) {
            allow(engine, {"id", "rates"});
            const std::string id = engine.text("id");
            if (id != "matrix" && id != "vector") {
                engine.complain("id", fmt::format("is \"{}\", expected matrix or vector", printable(id)));
                return;
            }
            Fields rates = engine.child("rates");
            for (const std::string& key : rates.keys()) {
                const auto type = engine_type(key);
                if (!type) {
                    rates.complain(key,
                                   "is not a number type of an engine: expected fp64, fp32, tf32, bf16, fp16, fp8, "
                                   "fp4, int8 or int4");
                    return;
                }
                device_.rates[index(id == "matrix" ? Engine::matrix : Engine::vector)][index(*type)] =
                    figure(rates, key, Dimension::flops_per_second);
            }
        }
    }

    void levels(Fields& file, std::string_view key, std::initializer_list<Level> allowed) {
        for (Fields& entry : file.children(key)) {
            allow(entry, {"id", "technology", "capacity", "reported", "bandwidth", "topology", "links", "devices",
                          "reduces_in_switch"});
            const std::string id = entry.text("id");
            const auto level =
                std::find_if(allowed.begin(), allowed.end(), [&](Level candidate) { return name(candidate) == id; });
            if (level == allowed.end()) {
                entry.complain("id",
                               fmt::format("is \"{}\", which is not a level that {} may list", printable(id), key));
                return;
            }
            MemoryLevel& result = device_.levels[index(*level)].emplace();
            result.technology = entry.text_or("technology", "");
            result.capacity = figure(entry, "capacity", Dimension::bytes);
            result.reported = figure(entry, "reported", Dimension::bytes);
            result.bandwidth = figure(entry, "bandwidth", Dimension::bytes_per_second);
            result.topology = entry.text_or("topology", "");
            result.links = static_cast<int>(entry.count_or("links", 0.0));
            result.devices = static_cast<int>(entry.count_or("devices", 0.0));
            result.reduces_in_switch = entry.flag("reduces_in_switch", false);
        }
    }

    void ceilings(Fields& file) {
        if (!file.has("ceilings")) return;
        Fields ceilings = file.child("ceilings");
        for (const std::string& path : ceilings.keys()) {
            const bool bandwidth = std::ranges::any_of(
                all_levels, [&](Level level) { return path == std::string(name(level)) + ".bandwidth"; });
            const auto dot = path.find('.');
            const bool engine = path.starts_with("matrix.") || path.starts_with("vector.");
            if (!bandwidth && !(engine && engine_type(std::string_view(path).substr(dot + 1)))) {
                ceilings.complain(path, "is not a ceiling: expected e.g. memory.bandwidth or matrix.bf16");
                return;
            }
            if (const auto found =
                    figure(ceilings, path, bandwidth ? Dimension::bytes_per_second : Dimension::flops_per_second)) {
                device_.ceilings[path] = *found;
            }
        }
    }

  private:
    Device& device_;
};

void write_figure(JsonText& json, std::string_view key, const Figure& figure, std::string_view unit) {
    json.object(key, [&] {
        json.add("value", figure.value);
        json.add("unit", unit);
        json.add("source", figure.source);
        if (!figure.note.empty()) json.add("note", figure.note);
    });
}

void write_level(JsonText& json, Level level, const MemoryLevel& found) {
    json.object([&] {
        json.add("id", name(level));
        json.add("technology", found.technology);
        if (found.capacity) write_figure(json, "capacity", *found.capacity, "B");
        if (found.reported) write_figure(json, "reported", *found.reported, "B");
        if (found.bandwidth) write_figure(json, "bandwidth", *found.bandwidth, "B/s");
        if (!found.topology.empty()) json.add("topology", found.topology);
        if (found.links > 0) json.add("links", found.links);
        if (found.devices > 0) json.add("devices", found.devices);
        if (found.reduces_in_switch) json.add("reduces_in_switch", true);
    });
}

void write_levels(JsonText& json, std::string_view key, const Device& device, bool links) {
    json.array(key, [&] {
        for (const Level level : all_levels) {
            const auto& found = device.level(level);
            if (found && (level == Level::peer || level == Level::network) == links) write_level(json, level, *found);
        }
    });
}

void write_engines(JsonText& json, const Device& device) {
    for (const Engine engine : {Engine::matrix, Engine::vector}) {
        if (std::ranges::none_of(all_dtypes, [&](DType type) { return device.rate(engine, type).has_value(); }))
            continue;
        json.object([&] {
            json.add("id", name(engine));
            json.object("rates", [&] {
                for (const DType type : all_dtypes) {
                    if (const auto& rate = device.rate(engine, type)) write_figure(json, name(type), *rate, "FLOP/s");
                }
            });
        });
    }
}

}  // namespace

Result<Device> read_device(std::string_view text, std::string_view file) {
    const auto json = parse_json(text, file);
    if (!json) return std::unexpected(json.error());
    std::optional<Problem> problem;
    Fields fields(*json, std::string(file), "", problem);
    const std::string schema = fields.text("schema");
    if (schema != device_schema)
        fields.complain("schema", fmt::format("is \"{}\", expected \"{}\"", printable(schema), device_schema));
    for (const std::string& key : fields.keys()) {
        if (std::find(known_keys.begin(), known_keys.end(), key) == known_keys.end())
            fields.complain(key, "is not a key of a device file");
    }
    Device device;
    Reader reader(device);
    reader.sources(fields);
    device.name = fields.text("name");
    device.title = fields.text_or("title", device.name);
    device.vendor = fields.text_or("vendor", "");
    device.kind = fields.text_or("kind", "");
    device.generation = fields.text_or("generation", "");
    if (!is_generation(device.generation)) {
        fields.complain("generation", fmt::format("is \"{}\", expected lower-case letters, digits and dashes",
                                                  printable(device.generation)));
    }
    device.status = fields.text_or("status", "");
    device.year = static_cast<int>(fields.count_or("year", 0.0));
    device.aliases = fields.texts("aliases");
    device.notes = fields.texts("notes");
    reader.engines(fields);
    device.multiprocessors = reader.figure(fields, "multiprocessors", Dimension::count);
    device.matrix_tile = reader.figure(fields, "matrix_tile", Dimension::count);
    reader.levels(fields, "memory", {Level::memory, Level::cache, Level::host});
    reader.levels(fields, "links", {Level::peer, Level::network});
    device.power = reader.figure(fields, "power", Dimension::watts);
    reader.ceilings(fields);
    if (!problem && device.bandwidth(Level::memory) == nullptr)
        fields.complain("memory", "has no level \"memory\" with a bandwidth");
    if (problem) return std::unexpected(*problem);
    return device;
}

void write_device(JsonText& json, const Device& device) {
    json.add("schema", device_schema);
    json.add("name", device.name);
    json.add("title", device.title);
    json.add("vendor", device.vendor);
    json.add("year", device.year);
    json.add("kind", device.kind);
    if (!device.generation.empty()) json.add("generation", device.generation);
    json.add("aliases", device.aliases);
    if (!device.status.empty()) json.add("status", device.status);
    json.array("engines", [&] { write_engines(json, device); });
    if (device.multiprocessors) write_figure(json, "multiprocessors", *device.multiprocessors, "count");
    if (device.matrix_tile) write_figure(json, "matrix_tile", *device.matrix_tile, "count");
    write_levels(json, "memory", device, false);
    write_levels(json, "links", device, true);
    if (device.power) write_figure(json, "power", *device.power, "W");
    if (!device.ceilings.empty()) {
        json.object("ceilings", [&] {
            for (const auto& [path, ceiling] : device.ceilings)
                write_figure(json, path, ceiling, path.ends_with(".bandwidth") ? "B/s" : "FLOP/s");
        });
    }
    json.object("sources", [&] {
        for (const auto& [id, source] : device.sources) {
            json.object(id, [&] {
                json.add("kind", name(source.kind));
                json.add("title", source.title);
                json.add("date", source.date);
            });
        }
    });
    if (!device.notes.empty()) json.add("notes", device.notes);
}

OrderedJson write_device(const Device& device) {
    JsonText json;
    json.object([&] { write_device(json, device); });
    return OrderedJson::parse(std::move(json).finish(), nullptr, false);
}

}  // namespace roofline::io
