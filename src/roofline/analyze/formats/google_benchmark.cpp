// Google Benchmark's JSON (--benchmark_out_format=json or --benchmark_format=json):
//
//   { "context": { "date", "host_name", "executable", "num_cpus", "mhz_per_cpu", "caches", "library_build_type", ... },
//     "benchmarks": [ { "name", "run_name", "run_type": "iteration" | "aggregate", "aggregate_name"?, "repetitions",
//                       "threads", "iterations", "real_time", "cpu_time", "time_unit": "ns" | "us" | "ms" | "s",
//                       "bytes_per_second"?, "items_per_second"?, COUNTER?: number, "error_occurred"? } ] }
//
// Times are of one iteration. A counter that is a rate was divided by the CPU time, or by the real time where the name
// says so ("/real_time", "/manual_time") or several threads ran. Counters called FLOPS, FLOP/s, flops (with a prefix or
// without) are rates of FLOPs.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "roofline/analyze/format.hpp"
#include "roofline/analyze/json_text.hpp"
#include "roofline/analyze/runs.hpp"

namespace roofline::analyze {

Format google_benchmark_format();

namespace {

bool recognises(std::string_view first) {
    return first.find("\"benchmarks\"") != std::string_view::npos &&
           first.find("\"context\"") != std::string_view::npos &&
           (first.find("\"num_cpus\"") != std::string_view::npos ||
            first.find("\"library_build_type\"") != std::string_view::npos);
}

std::optional<double> unit_seconds(const std::string& unit) {
    if (unit == "ns" || unit.empty()) return 1e-9;
    if (unit == "us") return 1e-6;
    if (unit == "ms") return 1e-3;
    if (unit == "s") return 1.0;
    return std::nullopt;
}

/// FLOP/s of a counter whose name says that it is one.
std::optional<double> flop_rate(const io::Json& entry) {
    for (const auto& [key, value] : entry.items()) {
        if (!value.is_number()) continue;
        std::string letters;
        for (const char c : key) {
            if (std::isalpha(static_cast<unsigned char>(c)) != 0)
                letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
        for (const auto& [prefix, factor] : {std::pair{"", 1.0}, std::pair{"k", 1e3}, std::pair{"m", 1e6},
                                             std::pair{"g", 1e9}, std::pair{"t", 1e12}}) {
            for (const char* word : {"flops", "flopspersecond", "flopss"}) {
                if (letters == std::string(prefix) + word) return factor * value.get<double>();
            }
        }
    }
    return std::nullopt;
}

bool timed_by_wall(const io::Json& entry, const std::string& name) {
    return name.find("/real_time") != std::string::npos || name.find("/manual_time") != std::string::npos ||
           number_at(entry, "threads").value_or(1.0) > 1.0;
}

Result<Analysis> read(Input& input, const Options& options) {
    const auto text = input.rest(largest_document);
    if (!text) return std::unexpected(text.error());
    const auto json = io::parse_json(*text, input.name());
    if (!json) return std::unexpected(json.error());
    const auto list = json->is_object() ? json->find("benchmarks") : json->end();
    if (!json->is_object() || list == json->end() || !list->is_array())
        return fail(
            fmt::format("{}: benchmarks: found nothing, expected a list as Google Benchmark writes it", input.name()));

    Analysis analysis;
    analysis.account.verb = "analyze";
    analysis.account.title = input.name();
    const auto device = device_meant("", options, analysis.account.notes);
    analysis.device_known = device.has_value();
    if (device) analysis.account.device = *device;
    if (!device) analysis.account.device.name = "unknown";
    AccountStage& stage = analysis.account.stages.emplace_back();
    stage.name = "all";
    const bool any_runs = std::ranges::any_of(
        *list, [](const io::Json& entry) { return text_at(entry, "run_type") != "aggregate" && entry.is_object(); });
    std::size_t without_counters = 0;
    std::size_t failed = 0;
    for (const io::Json& entry : *list) {
        const std::string name = text_at(entry, "name");
        const std::string aggregate = text_at(entry, "aggregate_name");
        // Where only aggregates were kept, the median stands for its runs.
        if (text_at(entry, "run_type") == "aggregate" && (any_runs || aggregate != "median")) continue;
        const auto unit = unit_seconds(text_at(entry, "time_unit"));
        const auto real = number_at(entry, "real_time");
        const auto cpu = number_at(entry, "cpu_time");
        const bool error = entry.is_object() && entry.value("error_occurred", io::Json(false)) == io::Json(true);
        if (name.empty() || error || !unit || !real || *real < 0.0) {
            ++failed;
            continue;
        }
        Record record;
        record.name = any_runs ? name : text_at(entry, "run_name");
        if (record.name.empty()) record.name = name;
        record.origin = Origin::measured;
        record.work.engine = Engine::vector;
        record.work.type = DType::fp32;
        const double base = *unit * (timed_by_wall(entry, name) ? *real : cpu.value_or(*real));
        const auto flops = flop_rate(entry);
        const auto bytes = number_at(entry, "bytes_per_second");
        if (flops) record.work.flops = Flops(*flops * base);
        if (bytes) record.work.at(Level::memory) = Bytes(*bytes * base);
        record.times.measured = Seconds(*real * *unit);
        if (!flops && !bytes) ++without_counters;
        if (device) hold_against(*device, record);
        // Repetitions of one benchmark are one record.
        const auto known = std::ranges::find(stage.records, record.name, &Record::name);
        if (known == stage.records.end()) {
            stage.records.push_back(std::move(record));
        } else {
            known->count += 1.0;
            known->work.flops += record.work.flops;
            known->work.at(Level::memory) += record.work.at(Level::memory);
            *known->times.measured += *record.times.measured;
            if (device) hold_against(*device, *known);
        }
        analysis.events += 1.0;
    }
    if (stage.records.empty()) return fail(fmt::format("{}: holds no benchmark that ran", input.name()));
    sum_records(stage);
    if (without_counters > 0)
        analysis.account.notes.push_back(
            fmt::format("{} runs have neither bytes_per_second nor a counter called FLOPS: only their time is known",
                        without_counters));
    if (failed > 0) analysis.account.notes.push_back(fmt::format("{} entries failed or have no time", failed));
    analysis.account.notes.emplace_back(
        "FLOPs are taken as fp32 on the plain units, bytes as those of memory: a working set that fits in a cache "
        "shows more "
        "than memory could give");
    return analysis;
}

}  // namespace

Format google_benchmark_format() {
    return {"Google Benchmark JSON", "google-benchmark", recognises, read};
}

}  // namespace roofline::analyze
