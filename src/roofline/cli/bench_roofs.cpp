// What `bench` holds its results against: ceilings of the device that was named, of `this`, or none.
#include <fmt/format.h>

#include "roofline/cli/bench_run.hpp"
#include "roofline/cli/files.hpp"
#include "roofline/cli/load.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/measure/cpu_device.hpp"

namespace roofline::cli {
namespace {

std::string threads_in_words(double count) {
    return count == 1.0 ? "one thread" : fmt::format("{:.0f} threads", count);
}

bool was_measured(const Device& device, const Figure& figure) {
    const auto source = device.sources.find(figure.source);
    return source != device.sources.end() && source->second.kind == SourceKind::measured;
}

/// What one thread reached, where the device is a file that says so.
std::optional<Device> one_thread_of(const Device& whole, const std::string& typed) {
    const auto path = device_file(typed);
    if (!path) return std::nullopt;
    const auto text = read_text(*path);
    if (!text) return std::nullopt;
    const auto json = io::parse_json(*text, *path);
    if (!json) return std::nullopt;
    return measure::on_one_thread(whole, *json);
}

/// Ceilings of as many threads as run here; where nobody measured those, a note says whose they are instead.
Device for_threads(Device roofs, const std::string& typed, bench::Run& run) {
    const auto& count = roofs.multiprocessors;
    if (run.threads == 0 || roofs.kind != "cpu" || !count) return roofs;
    const bool measured = was_measured(roofs, *count);
    const auto here = static_cast<double>(run.threads);
    if (measured ? here == count->value : here >= count->value) return roofs;
    if (run.threads == 1) {
        if (auto alone = one_thread_of(roofs, typed)) {
            run.account.notes.push_back(fmt::format("ceilings are those of one thread, measured beside those of {}",
                                                    threads_in_words(count->value)));
            return std::move(*alone);
        }
    }
    run.account.notes.push_back(
        fmt::format("ceilings are those of {}, {} ran here: `roofline measure --threads {} --no-keep -o FILE.json` "
                    "finds theirs, --roofs FILE.json takes them",
                    measured ? threads_in_words(count->value) : fmt::format("{:.0f} cores", count->value),
                    threads_in_words(here), run.threads));
    return roofs;
}

}  // namespace

Result<Device> choose_roofs(const BenchOptions& options, bool cuda, const std::string& title, bench::Run& run) {
    const std::string kind = cuda ? "gpu" : "cpu";
    if (!options.roofs.empty() || exists(own_profile_path())) {
        const std::string typed = options.roofs.empty() ? "this" : options.roofs;
        auto roofs = load_device(typed);
        if (!roofs) return roofs;
        if (!options.roofs.empty() || roofs->kind == kind) {
            run.roofs_known = true;
            return for_threads(std::move(*roofs), typed, run);
        }
    }
    if (cuda) {
        if (auto known = io::builtin_device(title)) {
            run.roofs_known = true;
            return known;
        }
    }
    Device device;
    device.name = options.device;
    device.title = title;
    device.kind = kind;
    device.sources["bench"] = {SourceKind::assumed, "nothing is known about this device", ""};
    run.account.notes.emplace_back(
        "no ceilings of this machine are known, so nothing is said of limits: `roofline measure` finds them, --roofs "
        "names others");
    return device;
}

std::optional<double> memory_read_now(const Device& roofs, int threads) {
    const Figure* ceiling = roofs.bandwidth(Level::memory);
    const auto& count = roofs.multiprocessors;
    if (roofs.kind != "cpu" || ceiling == nullptr || !was_measured(roofs, *ceiling)) return std::nullopt;
    if (!count || count->value != static_cast<double>(threads)) return std::nullopt;
    measure::CpuOptions look;
    look.seconds = 0.4;
    look.quick = true;
    look.threads = static_cast<std::size_t>(threads);
    look.only = {"memory.read"};
    const auto seen = measure::measure_cpu(look);
    if (!seen || seen->found.empty() || !(seen->found.front().value > 0.0)) return std::nullopt;
    return seen->found.front().value;
}

}  // namespace roofline::cli
