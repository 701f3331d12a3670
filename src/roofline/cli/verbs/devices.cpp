// roofline devices: what machines are known, and every figure of one with its source.
#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "roofline/cli/load.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/plot_options.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/core/sources.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/names.hpp"
#include "roofline/io/report_json.hpp"
#include "roofline/render/chart/landscape.hpp"
#include "roofline/render/numbers.hpp"
#include "roofline/render/table.hpp"

namespace roofline::cli {
namespace {

struct Options {
    OutputOptions output;
    PlotOptions plot;
    std::string name;
    std::string vendor;
};

std::string spelt(const render::Table& table, const std::string& format) {
    return format == "md"    ? render::as_markdown(table)
           : format == "csv" ? render::as_csv(table)
                             : render::as_text(table);
}

/// The 16-bit rate people compare by, on whatever engine has it.
std::string rate(const Device& device, DType type) {
    for (const Engine engine : {Engine::matrix, Engine::vector}) {
        if (const auto& found = device.rate(engine, type)) return render::plain(found->value / 1e12);
    }
    return "-";
}

/// The highest 16-bit rate, by which machines are compared.
double peak(const Device& device) {
    double most = 0.0;
    for (const DType type : {DType::bf16, DType::fp16}) {
        for (const Engine engine : {Engine::matrix, Engine::vector}) {
            if (const auto& found = device.rate(engine, type)) most = std::max(most, found->value);
        }
    }
    return most;
}

render::chart::LandscapePoint point_of(const Device& device) {
    const double rate = peak(device);
    const double bandwidth = device.bandwidth(Level::memory)->value;
    return {device.name, device.vendor, bandwidth, rate,
            fmt::format("{}, {}\n{}, {}\nridge {} FLOP/B", device.title, device.year, render::with_unit(rate, "FLOP/s"),
                        render::with_unit(bandwidth, "B/s"), render::intensity(FlopsPerByte(rate / bandwidth)))};
}

Drawing draw_all(const std::vector<render::chart::LandscapePoint>& points) {
    render::chart::LandscapeLook look;
    look.title = "Machines by bandwidth and compute";
    look.subtitle = "datasheet figures; machines on one dotted line have the same ridge and are compute-bound alike";
    look.x_name = "memory bandwidth (B/s)";
    look.y_name = "16-bit rate, dense (FLOP/s)";
    for (const double ridge : {1.0, 10.0, 100.0, 1000.0})
        look.diagonals.push_back({ridge, fmt::format("ridge {:.0f} FLOP/B", ridge)});
    return {.title = "Known machines", .charts = {render::chart::landscape_chart(points, look)}};
}

Result<int> list(const Options& options, const std::string& command) {
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    std::vector<render::chart::LandscapePoint> points;
    render::Table table{{{"name", render::Align::left},
                         {"title", render::Align::left},
                         {"year"},
                         {"memory"},
                         {"GB/s"},
                         {"bf16 TFLOP/s"},
                         {"fp8"},
                         {"fp4"},
                         {"ridge bf16"},
                         {"W"}},
                        {}};
    std::vector<Device> devices;
    std::set<std::string> vendors;
    for (const std::string& name : io::builtin_device_names()) {
        const auto device = io::builtin_device(name);
        if (!device) return std::unexpected(device.error());
        vendors.insert(device->vendor);
        if (!options.vendor.empty() && io::normalised(device->vendor) != io::normalised(options.vendor)) continue;
        const Figure* capacity = device->capacity(Level::memory);
        const std::optional<Figure>& power = device->power;
        const auto at = ridge(*device, DType::bf16);
        table.rows.push_back({device->name, device->title + (device->status.empty() ? "" : " (" + device->status + ")"),
                              fmt::format("{}", device->year),
                              capacity != nullptr ? render::bytes(Bytes(capacity->value)) : "-",
                              render::plain(device->bandwidth(Level::memory)->value / 1e9), rate(*device, DType::bf16),
                              rate(*device, DType::fp8), rate(*device, DType::fp4), at ? render::intensity(*at) : "-",
                              power ? render::plain(power->value) : "-"});
        points.push_back(point_of(*device));
        devices.push_back(*device);
    }
    if (table.rows.empty()) {
        return fail(
            fmt::format("--vendor: found \"{}\", expected one of {}", options.vendor, fmt::join(vendors, ", ")));
    }
    const Shown shown{command, [&] { return draw_all(points); }, [&] { return render::as_markdown(table); }};
    const std::string text = options.output.format == "json"   ? io::devices_text(devices)
                             : options.output.format == "html" ? shown.page()
                                                               : spelt(table, options.output.format);
    if (auto written = options.output.write(text); !written) return std::unexpected(written.error());
    if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
    return done;
}

void add_row(render::Table& table, const std::string& path, const std::string& value, const Figure& figure,
             const Device& device) {
    const auto source = device.sources.find(figure.source);
    const std::string_view kind = source == device.sources.end() ? "" : name(source->second.kind);
    table.rows.push_back({path, value, std::string(kind), figure.source, figure.note});
}

void add_figure(render::Table& table, const std::string& path, const Figure* figure, std::string_view unit,
                const Device& device) {
    if (figure != nullptr) add_row(table, path, render::with_unit(figure->value, unit), *figure, device);
}

void add_count(render::Table& table, const std::string& path, const std::optional<Figure>& figure,
               const Device& device) {
    if (figure) add_row(table, path, render::grouped(figure->value), *figure, device);
}

render::Table figures_of(const Device& device) {
    render::Table table{{{"figure", render::Align::left},
                         {"value"},
                         {"is", render::Align::left},
                         {"source", render::Align::left},
                         {"note", render::Align::left}},
                        {}};
    for (const Engine engine : {Engine::matrix, Engine::vector}) {
        for (const DType type : all_dtypes) {
            const auto& figure = device.rate(engine, type);
            const std::string path = fmt::format("{}.{}", name(engine), name(type));
            add_figure(table, path, figure ? &*figure : nullptr, render::peak_unit(path), device);
        }
    }
    add_count(table, "multiprocessors", device.multiprocessors, device);
    add_count(table, "matrix_tile", device.matrix_tile, device);
    for (const Level level : all_levels) {
        const auto& entry = device.level(level);
        const std::string technology = entry && !entry->technology.empty() ? " (" + entry->technology + ")" : "";
        add_figure(table, fmt::format("{}.capacity{}", name(level), technology), device.capacity(level), "B", device);
        if (entry && entry->reported)
            add_figure(table, fmt::format("{}.reported{}", name(level), technology), &*entry->reported, "B", device);
        add_figure(table, fmt::format("{}.bandwidth{}", name(level), technology), device.bandwidth(level), "B/s",
                   device);
    }
    if (const std::optional<Figure>& power = device.power) add_figure(table, "power", &*power, "W", device);
    for (const auto& [path, ceiling] : device.ceilings)
        add_figure(table, (is_assumed(device, ceiling) ? "assumed " : "measured ") + path, &ceiling,
                   path.ends_with("bandwidth") ? "B/s" : render::peak_unit(path), device);
    return table;
}

std::string describe(const Device& device, bool markdown) {
    std::string text =
        fmt::format("{}{}{}{}, {}{}{}\n\n", markdown ? "# " : "", device.title, markdown ? "\n\n" : "  ", device.vendor,
                    device.year, device.generation.empty() ? "" : ", " + device.generation,
                    device.status.empty() ? "" : ", " + device.status);
    text += spelt(figures_of(device), markdown ? "md" : "table");
    const auto heading = [&](std::string_view words) {
        text += markdown ? fmt::format("\n## {}\n\n", words) : fmt::format("\n{}\n", words);
    };
    heading("ridge (FLOP/byte, dense peak over memory bandwidth)");
    for (const DType type : all_dtypes) {
        const bool own = device.rate(Engine::matrix, type) || device.rate(Engine::vector, type);
        if (const auto at = ridge(device, type); own && at)
            text += markdown ? fmt::format("- {}: {}\n", name(type), render::intensity(*at))
                             : fmt::format("  {:6}{}\n", name(type), render::intensity(*at));
    }
    heading("sources");
    for (const auto& [id, source] : device.sources)
        text += markdown ? fmt::format("- {}: {}, {}\n", id, source.title, source.date)
                         : fmt::format("  {:16}{}, {}\n", id, source.title, source.date);
    if (!device.notes.empty()) heading("notes");
    for (const std::string& note : device.notes) text += fmt::format("{}- {}\n", markdown ? "" : "  ", note);
    return text;
}

Result<int> show(const Options& options, const std::string& command) {
    if (options.output.format == "csv") return fail("--format csv: lists all devices, and takes no name");
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    const auto device = load_device(options.name);
    if (!device) return std::unexpected(device.error());
    const Shown shown{command,
                      [&] {
                          Account account;
                          account.title = device->title;
                          account.verb = "devices";
                          account.device = *device;
                          return Drawing{.accounts = {account}};
                      },
                      [&] { return describe(*device, true); }};
    const std::string text = options.output.format == "json"   ? io::device_text(*device)
                             : options.output.format == "html" ? shown.page()
                                                               : describe(*device, options.output.format == "md");
    if (auto written = options.output.write(text); !written) return std::unexpected(written.error());
    if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
    return done;
}

}  // namespace

void devices_verb(Program& program) {
    auto options = std::make_shared<Options>();
    const Verb verb = program.verb("devices", "Known machines; `devices NAME` for every figure with its source");
    verb.add("name", options->name, "Only this one, as `show` does").type("DEVICE");
    verb.add("--vendor", options->vendor, "Only this vendor's");
    options->output.add_to(verb, {"table", "md", "csv", "json", "html"});
    options->plot.add_to(verb);
    const Verb one = verb.verb("show", "Every figure of one device, with its source");
    one.add("name", options->name, "Device name or file").required().type("DEVICE");
    options->output.add_to(one, {"table", "md", "json", "html"});
    options->plot.add_to(one);
    verb.runs([&program, options, one] {
        const bool named = one.named() || !options->name.empty();
        return named ? show(*options, program.command) : list(*options, program.command);
    });
}

}  // namespace roofline::cli
