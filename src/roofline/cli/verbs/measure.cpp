// roofline measure: what can this machine really do?
#include <cstdio>
#include <filesystem>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>

#include "roofline/cli/files.hpp"
#include "roofline/cli/interrupted.hpp"
#include "roofline/cli/load.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/plot_options.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/cli/seconds.hpp"
#include "roofline/io/names.hpp"
#include "roofline/io/report_json.hpp"
#include "roofline/measure/cpu_device.hpp"
#include "roofline/measure/cuda_device.hpp"
#include "roofline/render/chart/ceilings.hpp"
#include "roofline/render/numbers.hpp"
#include "roofline/render/table.hpp"
#include "roofline/render/terminal_chart.hpp"

namespace roofline::cli {
namespace {

struct Options {
    OutputOptions output;
    PlotOptions plot;
    std::string device = "cpu";
    std::vector<std::string> only;
    std::string threads;
    std::string seconds;
    bool quick = false;
    bool no_keep = false;
};

/// One line on a terminal that is written over and over, and wiped in the end.
class ProgressLine {
  public:
    ProgressLine() : shown_(::isatty(STDERR_FILENO) != 0) {}
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    ~ProgressLine() {
        if (shown_) fmt::print(stderr, "\r\033[K");
    }
    void show(std::string_view text) const {
        if (!shown_) return;
        fmt::print(stderr, "\r\033[Kmeasuring {}", text.substr(0, 68));
        std::fflush(stderr);
    }

  private:
    bool shown_;
};

std::string value_of(double value, const measure::Found& figure) {
    const bool peak = figure.unit == measure::Unit::flops_per_second;
    return render::with_unit(value, peak ? render::peak_unit(figure.name) : measure::spelt(figure.unit));
}

render::Table figures(const std::vector<measure::Found>& found) {
    render::Table table{{{"figure", render::Align::left},
                         {"measured"},
                         {"one thread"},
                         {"datasheet"},
                         {"of it"},
                         {"spread"},
                         {"fastest", render::Align::left}},
                        {}};
    bool any_datasheet = false;
    bool any_one_thread = false;
    for (const measure::Found& figure : found) {
        any_datasheet = any_datasheet || figure.datasheet;
        any_one_thread = any_one_thread || figure.one_thread;
        if (!figure.problem.empty()) {
            table.rows.push_back({figure.name, "-", figure.one_thread ? value_of(*figure.one_thread, figure) : "", "",
                                  "", "", figure.problem});
            continue;
        }
        std::string fastest = figure.variant;
        if (!figure.note.empty()) fastest += (fastest.empty() ? "" : "; ") + figure.note;
        table.rows.push_back({figure.name, value_of(figure.value, figure),
                              figure.one_thread ? value_of(*figure.one_thread, figure) : "",
                              figure.datasheet ? value_of(*figure.datasheet, figure) : "",
                              figure.datasheet ? render::percent(figure.value / *figure.datasheet) : "",
                              figure.windows > 0 ? render::percent(figure.spread) : "", std::move(fastest)});
    }
    if (!any_datasheet) {
        table.drop("datasheet");
        table.drop("of it");
    }
    if (!any_one_thread) table.drop("one thread");
    return table;
}

/// The caches that were seen, in words.
std::string levels_line(const measure::Measured& measured) {
    std::string text;
    const auto levels = measured.context.find("levels");
    if (levels == measured.context.end()) return text;
    for (const auto& level : *levels) {
        if (!level.contains("knee_bytes") || !level["knee_bytes"].is_number()) continue;
        const auto knee = level["knee_bytes"].get<double>();
        text += fmt::format("{}{} {:.4g} {}", text.empty() ? "" : ", ", level["name"].get<std::string>(),
                            knee < 1048576.0 ? knee / 1024.0 : knee / 1048576.0, knee < 1048576.0 ? "KiB" : "MiB");
    }
    return text.empty() ? text : "caches by where reading slows down: " + text + "\n";
}

Account account_of(const Device& device) {
    Account account;
    account.title = device.title;
    account.verb = "measure";
    account.device = device;
    return account;
}

enum class Wording { text, markdown, page };  // a page has a picture of its own

std::string for_people(const measure::Measured& measured, Wording wording) {
    const bool markdown = wording != Wording::text;
    std::string text = fmt::format("{}{}\n\n", markdown ? "# " : "", measured.device.title);
    const render::Table table = figures(measured.found);
    text += markdown ? render::as_markdown(table) : render::as_text(table);
    if (measured.context.contains("topology"))
        text += fmt::format("\n{}{}", measured.context["topology"].get<std::string>(), "\n");
    if (const std::string levels = levels_line(measured); !levels.empty()) text += "\n" + levels;
    const auto device = account_of(measured.device);
    if (wording != Wording::page && !render::chart::compute_roofs(device).empty()) {
        const std::string drawing = render::terminal_roofline(std::vector{device}, {false, 80, false});
        text += markdown ? fmt::format("\n```text\n{}```\n", drawing) : "\n" + drawing;
    }
    if (!measured.notes.empty()) text += markdown ? "\n## notes\n\n" : "\nnotes\n";
    for (const std::string& note : measured.notes) text += fmt::format("{}- {}\n", markdown ? "" : "  ", note);
    return text;
}

/// As `this`, for every other verb. A machine where that cannot be written still gets its figures.
void keep(const measure::Measured& measured, std::string& text, bool people) {
    const std::string path = own_profile_path();
    std::error_code ignored;
    std::filesystem::create_directories(folder_of(path), ignored);
    const auto written = write_whole(path, io::dump(measure::measured_json(measured)));
    if (!written) {
        fmt::print(stderr, "roofline: not kept as `this`: {}\n", written.error().text);
    } else if (people) {
        text += fmt::format("\nkept as `this` ({}): roofline predict MODEL this\n", path);
    }
}

bool needs_memory(const Options& options) {
    return options.output.format == "json" || options.output.file.ends_with(".json") || options.plot.asked();
}

/// Known before anything is measured.
Result<void> check_memory(const Options& options, bool read) {
    if (read || !needs_memory(options)) return {};
    return fail(
        fmt::format("--only {}: a device file or a roofline needs memory.read, which is left out; "
                    "--format table or md shows the rest",
                    fmt::join(options.only, ",")));
}

Result<measure::Measured> measured_cpu(const Options& options) {
    const Interruptible guard;  // Ctrl-C ends the measuring between two windows, while nothing is being written
    measure::CpuOptions asked;
    asked.quick = options.quick;
    asked.seconds = options.quick ? 5.0 : 20.0;
    if (!options.seconds.empty()) {
        const auto seconds = parse_seconds("--seconds", options.seconds, 0.001, 3600.0);
        if (!seconds) return std::unexpected(seconds.error());
        asked.seconds = *seconds;
    }
    if (!options.threads.empty()) {
        const auto threads = parse_whole("--threads", options.threads, 1.0, 65536.0);
        if (!threads) return std::unexpected(threads.error());
        asked.threads = static_cast<std::size_t>(*threads);
        const std::size_t there = measure::this_machine().processors.size();
        if (asked.threads > there) {
            return fail(fmt::format("--threads: found {}, expected at most {}, the processors this process may use",
                                    asked.threads, there));
        }
    }
    for (const std::string& only : options.only) {
        const auto names = measure::cpu_figure_names();
        const bool any =
            std::ranges::any_of(names, [&](const std::string& name) { return measure::named_by(name, only); });
        if (!any || only.empty()) {
            const std::string near = io::suggestion(only, names);
            return fail(fmt::format("--only: found \"{}\", expected clock, l1, l2, l3, memory, vector or matrix{}",
                                    io::printable(only),
                                    near.empty() ? ", or one of their figures such as memory.read" : near));
        }
    }
    const bool read = options.only.empty() || std::ranges::any_of(options.only, [](const std::string& only) {
                          return measure::named_by("memory.read", only);
                      });
    if (auto good = check_memory(options, read); !good) return std::unexpected(good.error());
    asked.only = options.only;
    asked.date = now_iso().substr(0, 10);
    asked.stop = interrupted;
    const ProgressLine line;
    asked.progress = [&line](std::string_view text) { line.show(text); };
    return measure::measure_cpu(asked);
}

/// Ctrl-C ends this at once: the plugin is not asked to stop, and nothing is written before all of it is there.
Result<measure::Measured> measured_cuda(const Options& options, int index) {
    if (!options.threads.empty() || !options.seconds.empty())
        return fail(fmt::format("--device {}: --threads and --seconds are for cpu alone", options.device));
    measure::CudaOptions asked;
    asked.index = index;
    asked.quick = options.quick;
    for (const std::string& only : options.only) {
        const auto figures = measure::cuda_figures_named(only);
        asked.only.insert(asked.only.end(), figures.begin(), figures.end());
    }
    const bool read = asked.only.empty() || std::ranges::find(asked.only, "memory.read") != asked.only.end();
    if (auto good = check_memory(options, read); !good) return std::unexpected(good.error());
    asked.date = now_iso().substr(0, 10);
    const ProgressLine line;
    asked.progress = [&line](std::string_view text) { line.show(text); };
    return measure::measure_cuda(asked);
}

Result<measure::Measured> measured_device(const Options& options) {
    if (options.device == "cpu") return measured_cpu(options);
    const auto index = measure::cuda_index(options.device);
    if (!index) return std::unexpected(index.error());
    if (*index) return measured_cuda(options, **index);
    return fail(fmt::format("--device: found \"{}\", expected cpu or cuda:N", options.device));
}

Result<int> run(const Options& options, const std::string& command) {
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    if (auto good = options.output.check(); !good) return std::unexpected(good.error());
    const auto measured = measured_device(options);
    if (interrupted()) {
        fmt::print(stderr, "roofline: stopped; nothing was written\n");
        return stopped;
    }
    if (!measured) return std::unexpected(measured.error());

    const bool json = options.output.format == "json";
    const bool whole = measured->device.bandwidth(Level::memory) != nullptr;
    const bool names_json = options.output.file.ends_with(".json");
    if (!whole && needs_memory(options)) {
        return fail(
            "a device file or a roofline needs memory.read, which could not be measured; --format table or md "
            "shows the rest");
    }
    const Shown shown{command, [&] { return whole ? Drawing{.accounts = {account_of(measured->device)}} : Drawing{}; },
                      [&] { return for_people(*measured, Wording::page); }};
    const bool html = options.output.format == "html";
    std::string text = json ? io::dump(measure::measured_json(*measured))
                       : html
                           ? shown.page()
                           : for_people(*measured, options.output.format == "md" ? Wording::markdown : Wording::text);
    // Only a whole measurement replaces the profile that other verbs rely on.
    const bool saved = !options.no_keep && options.only.empty();
    if (names_json && !json) {
        // FILE.json is a device file whatever is shown beside it.
        if (auto done = options.output.write(io::dump(measure::measured_json(*measured))); !done)
            return std::unexpected(done.error());
        if (saved) keep(*measured, text, true);
        fmt::print("{}", text);
        if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
        return done;
    }
    if (saved) keep(*measured, text, !json && !html && options.output.file.empty());
    if (auto done = options.output.write(text); !done) return std::unexpected(done.error());
    if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
    return done;
}

}  // namespace

void measure_verb(Program& program) {
    auto options = std::make_shared<Options>();
    const Verb verb = program.verb(
        "measure", "What can this machine really do? Measures it, and keeps the profile as the device `this`");
    verb.add("--device", options->device, "cpu, or cuda:0 for the first GPU").shows_default();
    verb.add("--quick", options->quick, "5 seconds instead of 20; of the caches only how fast they are read");
    verb.add("--seconds", options->seconds, "How long to take: 5s, 20s, 60s").type("TIME");
    verb.add("--threads", options->threads, "Threads, instead of all processors this process may use").type("N");
    verb.add("--only", options->only,
             "Figures or kinds of them: memory.read, l2, vector, fp32, copy; not kept as `this`")
        .separated_by(',')
        .repeated()
        .type("LIST");
    verb.add("--no-keep", options->no_keep, "Do not keep the profile as `this`");
    options->output.json_by_name = false;  // a device file is written beside what is shown
    options->output.add_to(verb, {"table", "md", "json", "html"});
    options->plot.add_to(verb);
    verb.runs([&program, options] { return run(*options, program.command); });
}

}  // namespace roofline::cli
