#include "roofline/analyze/counters.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "roofline/analyze/access_words.hpp"
#include "roofline/analyze/counters_join.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::analyze {
namespace {

/// "2x66" of "(2, 66, 1)"; nothing where there is no grid.
std::string grid_label(std::string_view grid) {
    std::vector<std::string> parts(1);
    for (const char c : grid) {
        if (std::isdigit(static_cast<unsigned char>(c)) != 0)
            parts.back() += c;
        else if (c == ',')
            parts.emplace_back();
    }
    while (parts.size() > 1 && (parts.back() == "1" || parts.back().empty())) parts.pop_back();
    return fmt::format("{}", fmt::join(parts, "x"));
}

std::string record_name(const Counters& launch) {
    const std::string grid = grid_label(launch.grid);
    return spoken_kernel_name(launch.kernel) + (grid.empty() ? "" : " [" + grid + "]");
}

bool names_any(std::string_view name, std::initializer_list<std::string_view> words) {
    std::string lower;
    for (const char c : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return std::ranges::any_of(words, [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

Kind kind_of(const Counters& launch) {
    const std::string_view name = launch.kernel;
    if (names_any(name, {"nccl", "allreduce", "all_reduce", "allgather"})) return Kind::collective;
    if (names_any(name, {"sdpa", "flash", "fmha", "attention", "attn"})) return Kind::attention;
    if (names_any(name, {"gemm", "nvjet", "cutlass", "xmma", "gemv", "splitk", "cublas"}) ||
        launch.matrix_flops() > 0.0)
        return Kind::gemm;
    if (names_any(name, {"norm"})) return Kind::norm;
    if (names_any(name, {"indexselect", "gather", "embedding", "index_"})) return Kind::gather;
    if (names_any(name, {"argmax", "topk", "sort", "multinomial"})) return Kind::select;
    if (names_any(name, {"copy", "cat", "fill", "memcpy", "memset"})) return Kind::copy;
    return Kind::elementwise;
}

/// A step of a model begins by looking its tokens up in the embedding.
bool looks_up_tokens(const Counters& launch) {
    return names_any(spoken_kernel_name(launch.kernel), {"gather", "indexselect", "embedding"});
}

struct Step {
    std::size_t begin = 0, end = 0;
    double matrix_flops = 0.0;
    std::string name = {};
};

/// Steps between look-ups, named by the matrix FLOPs they do: a prompt does many times those of a token.
std::vector<Step> find_steps(const std::vector<Counters>& launches) {
    constexpr std::size_t least_launches = 10;
    std::vector<Step> steps;
    for (std::size_t i = 0; i < launches.size(); ++i) {
        const bool first = steps.empty();
        if (first || (looks_up_tokens(launches[i]) && i - steps.back().begin >= least_launches))
            steps.push_back({.begin = i});
        steps.back().end = i + 1;
        steps.back().matrix_flops += launches[i].matrix_flops();
    }
    double most = 0.0;
    double least = 0.0;
    for (const Step& step : steps) {
        most = std::max(most, step.matrix_flops);
        least = least == 0.0 ? step.matrix_flops : std::min(least, step.matrix_flops);
    }
    if (steps.size() < 2) {
        if (!steps.empty()) steps.front().name = "all";
        return steps;
    }
    const bool differ = least > 0.0 && most > 4.0 * least;
    std::map<std::string, int> counts;
    for (Step& step : steps) {
        step.name = !differ ? "step" : step.matrix_flops > most / 4.0 ? "prefill" : "decode";
        ++counts[step.name];
    }
    std::map<std::string, int> numbers;
    for (Step& step : steps) {
        if (counts[step.name] > 1) step.name = fmt::format("{} {}", step.name, ++numbers[step.name]);
    }
    return steps;
}

/// The pipe that would take longest on the device; the one with most FLOPs where its rates are not known.
std::pair<std::pair<Engine, DType>, double> slowest_pipe(const Counters& counted, const Roofs& roofs) {
    std::pair<std::pair<Engine, DType>, double> slowest = {{Engine::vector, DType::fp32}, 0.0};
    double longest = -1.0;
    for (const auto& [pipe, flops] : counted.flops) {
        const double time = flops * roofs.flop_cost(pipe.first, pipe.second);
        if (time > longest || (time == longest && flops > slowest.second)) {
            longest = time;
            slowest = {pipe, flops};
        }
    }
    return slowest;
}

void add_mean(std::optional<double>& mean, const std::optional<double>& value, double before, double weight) {
    if (!value) return;
    mean = mean ? (*mean * before + *value * weight) / (before + weight) : *value;
}
void add_sum(std::optional<double>& sum, const std::optional<double>& value) {
    if (value) sum = sum.value_or(0.0) + *value;
}

/// Totals, and means weighted by time.
void merge(Counters& sum, const Counters& launch) {
    const double before = sum.duration.value;
    const double weight = launch.duration.value;
    sum.duration += launch.duration;
    for (const auto& [pipe, flops] : launch.flops) sum.flops[pipe] += flops;
    sum.flops_counted = sum.flops_counted || launch.flops_counted;
    add_sum(sum.dram, launch.dram);
    add_sum(sum.dram_read, launch.dram_read);
    add_sum(sum.dram_write, launch.dram_write);
    add_sum(sum.l2, launch.l2);
    add_sum(sum.spills, launch.spills);
    if (before + weight <= 0.0) return;
    add_mean(sum.l2_hit_rate, launch.l2_hit_rate, before, weight);
    add_mean(sum.sectors_per_request, launch.sectors_per_request, before, weight);
    add_mean(sum.bytes_per_sector, launch.bytes_per_sector, before, weight);
    add_mean(sum.occupancy, launch.occupancy, before, weight);
    add_mean(sum.occupancy_limit, launch.occupancy_limit, before, weight);
    add_mean(sum.waves, launch.waves, before, weight);
    add_mean(sum.tensor_busy, launch.tensor_busy, before, weight);
    add_mean(sum.clock, launch.clock, before, weight);
}

struct Gathered {
    Record record;
    Counters counters;
};

std::vector<Gathered> gather(const std::vector<Counters>& launches, const Step& step) {
    std::vector<Gathered> result;
    std::map<std::string, std::size_t> place;
    for (std::size_t i = step.begin; i < step.end; ++i) {
        const Counters& launch = launches[i];
        const std::string name = record_name(launch);
        const auto [at, fresh] = place.try_emplace(name, result.size());
        if (fresh) {
            Gathered& entry = result.emplace_back();
            entry.record.name = name;
            entry.record.kind = kind_of(launch);
            entry.record.group = entry.record.kind == Kind::attention    ? Group::attention
                                 : entry.record.kind == Kind::collective ? Group::communication
                                                                         : Group::other;
            entry.record.count = 0.0;
            entry.record.origin = Origin::traced;
            entry.counters.kernel = launch.kernel;
        }
        Gathered& entry = result[at->second];
        entry.record.count += 1.0;
        merge(entry.counters, launch);
    }
    return result;
}

/// Fills in work and times of a record from what was counted.
void settle(Gathered& entry, const Roofs& roofs) {
    Record& record = entry.record;
    const auto [pipe, flops] = slowest_pipe(entry.counters, roofs);
    record.work.engine = pipe.first;
    record.work.type = pipe.second;
    record.work.flops = Flops(flops);
    record.work.at(Level::memory) = Bytes(entry.counters.dram.value_or(0.0));
    record.work.at(Level::cache) = Bytes(entry.counters.l2.value_or(0.0));
    record.times.measured = entry.counters.duration;
}

Result<std::optional<Device>> device_of(const std::vector<Counters>& launches, const Options& options) {
    if (options.device) return options.device;
    for (const Counters& launch : launches) {
        if (launch.device.empty()) continue;
        auto found = io::builtin_device(launch.device);
        if (!found) return std::optional<Device>();
        return std::optional(std::move(*found));
    }
    return std::optional<Device>();
}

std::string first_device_name(const std::vector<Counters>& launches) {
    for (const Counters& launch : launches) {
        if (!launch.device.empty()) return launch.device;
    }
    return "";
}

/// What was done and moved in all, by pipe and memory.
std::vector<std::string> totals(const Counters& all, const std::vector<Counters>& launches) {
    std::vector<std::string> lines;
    if (all.flops_counted) {
        std::string pipes;
        for (const auto& [pipe, flops] : all.flops) {
            if (flops == 0.0) continue;
            pipes +=
                fmt::format("{}{} {} {}", pipes.empty() ? "" : ", ", render::flops(Flops(flops)), name(pipe.second),
                            pipe.first == Engine::matrix ? "on tensor cores" : "on plain units");
        }
        lines.push_back("counted FLOPs: " + (pipes.empty() ? "none" : pipes));
    } else {
        const bool tensor = std::ranges::any_of(
            launches, [](const Counters& launch) { return launch.tensor_busy.value_or(0.0) > 0.0; });
        lines.push_back(
            fmt::format("this page counts no FLOPs{}: percentages are of memory bandwidth alone; --page raw with "
                        "--set roofline (or --section SpeedOfLight_HierarchicalTensorRooflineChart) has them",
                        tensor ? ", though tensor cores were busy" : ""));
    }
    if (all.dram) {
        std::string line = fmt::format("counted bytes: {} of memory", render::bytes(Bytes(*all.dram)));
        if (all.dram_read && all.dram_write)
            line += fmt::format(" ({} read, {} written)", render::bytes(Bytes(*all.dram_read)),
                                render::bytes(Bytes(*all.dram_write)));
        if (all.l2) line += fmt::format(", {} from L2 to the multiprocessors", render::bytes(Bytes(*all.l2)));
        lines.push_back(line);
    }
    return lines;
}

}  // namespace

double Counters::matrix_flops() const {
    double sum = 0.0;
    for (const auto& [pipe, count] : flops) sum += pipe.first == Engine::matrix ? count : 0.0;
    return sum;
}

double Counters::vector_flops() const {
    double sum = 0.0;
    for (const auto& [pipe, count] : flops) sum += pipe.first == Engine::vector ? count : 0.0;
    return sum;
}

Result<Analysis> analysis_of(const std::vector<Counters>& launches, const Options& options) {
    Analysis analysis;
    auto device = device_of(launches, options);
    if (!device) return std::unexpected(device.error());
    analysis.device_known = device->has_value();
    analysis.account.verb = "analyze";
    if (*device) {
        analysis.account.device = **device;
    } else {
        const std::string named = first_device_name(launches);
        analysis.account.device.name = named.empty() ? "unknown" : named;
        analysis.account.device.title = named;
        analysis.account.notes.push_back(
            named.empty() ? "the file does not name the device; --device NAME gives percentages of its roofs"
                          : fmt::format("the file names \"{}\", which is not among the known devices; --device takes a "
                                        "name or a file",
                                        named));
    }
    const Roofs roofs = limit_roofs(analysis.account.device);
    Counters all;
    for (const Counters& launch : launches) merge(all, launch);
    analysis.memory_notes = totals(all, launches);
    for (std::string& line : clock_and_cache_words(launches)) analysis.memory_notes.push_back(std::move(line));

    const std::vector<Step> steps = find_steps(launches);
    StreamTime stream{.name = "all launches, one after another", .kernels = static_cast<double>(launches.size())};
    for (const Step& step : steps) {
        AccountStage& stage = analysis.account.stages.emplace_back();
        stage.name = step.name;
        StepTime& time = analysis.steps.emplace_back();
        time.stage = time.name = step.name;
        time.begin_s = stream.wall.value;
        time.kernels = static_cast<double>(step.end - step.begin);
        std::vector<Gathered> entries = gather(launches, step);
        for (Gathered& entry : entries) {
            settle(entry, roofs);
            if (analysis.device_known) hold_against(analysis.account.device, entry.record);
            time.wall += entry.counters.duration;
            (entry.counters.dram || entry.counters.flops_counted ? stream.attributed : stream.unattributed) +=
                entry.counters.duration;
        }
        std::ranges::stable_sort(
            entries, [](const Gathered& a, const Gathered& b) { return a.counters.duration > b.counters.duration; });
        constexpr std::size_t most_lines = 8;  // a stage; they are sorted by time
        std::size_t lines = 0;
        for (const Gathered& entry : entries) {
            stage.records.push_back(entry.record);
            if (entry.counters.duration.value >= 0.02 * time.wall.value && lines < most_lines) {
                for (std::string& line : access_words(entry.record, entry.counters)) {
                    analysis.memory_notes.push_back(step.name + ": " + std::move(line));
                    ++lines;
                }
            }
            add_diagnoses(analysis, step.name, time.wall, entry.record, entry.counters);
        }
        time.busy = time.wall;
        stream.wall += time.wall;
        sum_records(stage);
        analysis.time_went.push_back({.wall = time.wall, .computing = time.wall});
    }
    if (steps.size() > 1)
        analysis.account.notes.push_back(
            "stages were told apart by the look-up of tokens that begins each, and named by their matrix FLOPs");
    analysis.account.notes.push_back(
        "launches were counted one at a time: times are of kernels alone, and nothing is known of the gaps between "
        "them");
    analysis.account.notes.push_back(
        "bytes are those that really moved, so limit is the time of this traffic: fewer bytes would lower it");
    std::vector<LaunchSpan> spans;
    for (const Step& step : steps) spans.push_back({step.begin, step.end, step.name});
    if (auto joined = join_counters(launches, spans, options, analysis); !joined)
        return std::unexpected(joined.error());
    analysis.streams.push_back(stream);
    analysis.counted_bytes = true;
    analysis.kernel_time = stream.wall;
    analysis.explained_time = stream.attributed;
    analysis.events = static_cast<double>(launches.size());
    return analysis;
}

}  // namespace roofline::analyze
