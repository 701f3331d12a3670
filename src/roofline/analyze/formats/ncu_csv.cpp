// Nsight Compute's CSV: `ncu --csv --page raw` or `--page details`, from a report (`ncu --import`) or while it
// profiles.
//
//   ==PROF== Connected to process 2515                            lines of the profiler and of the program profiled,
//   "ID","Process ID",...,"Kernel Name",...                       before the table and between its rows
//
//   raw, wide: a column a metric, a second row with units, then a row a launch
//     "ID","Process ID","Process Name","Host Name","Kernel Name",...,"Grid Size",...,"dram__bytes.sum.per_second",...
//     "","",...,"Tbyte/s",...
//     "0","2515",...,"1.242210",...
//   details, long: a row a metric (or a remark of a rule, which we skip), launches one after another by "ID"
//     ...,"Section Name","Metric Name","Metric Unit","Metric Value",...
//     ...,"GPU Speed Of Light Throughput","DRAM Frequency","Ghz","3.18",
//
// Numbers have commas between thousands; "no data", "n/a" and nan are nothing. Which metrics there are depends on the
// sections that were collected; each figure below names where it may come from, best first.
#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

#include "roofline/analyze/counters.hpp"
#include "roofline/analyze/csv_rows.hpp"
#include "roofline/analyze/format.hpp"
#include "roofline/analyze/metric_units.hpp"

namespace roofline::analyze {

Format ncu_csv_format();

namespace {

/// Metrics of one launch in base units, by the tool's own name for them.
struct Launch {
    std::string id, kernel, grid, device;
    std::unordered_map<std::string, double> metrics;

    std::optional<double> find(const std::string& name) const {
        const auto found = metrics.find(name);
        return found == metrics.end() ? std::nullopt : std::optional(found->second);
    }
    std::optional<double> first(std::initializer_list<const char*> names) const {
        for (const char* name : names) {
            if (const auto value = find(name)) return value;
        }
        return std::nullopt;
    }
};

/// What the page for people calls a metric that the raw page has under another name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> detail_names = {{
    {"Duration", "gpu__time_duration.sum"},
    {"SM Frequency", "smsp__cycles_elapsed.avg.per_second"},
    {"DRAM Frequency", "dram__cycles_elapsed.avg.per_second"},
    {"L2 Hit Rate", "lts__t_sector_hit_rate.pct"},
    {"L1/TEX Hit Rate", "l1tex__t_sector_hit_rate.pct"},
    {"DRAM Throughput", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"},
    {"Theoretical Occupancy", "sm__maximum_warps_per_active_cycle_pct"},
    {"Waves Per SM", "launch__waves_per_multiprocessor"},
    {"# SMs", "launch__sm_count"},
    {"Local Memory Spilling Requests", "derived__local_spilling_requests"},
    {"Registers Per Thread", "launch__registers_per_thread"},
    {"Elapsed Cycles", "gpc__cycles_elapsed.max"},
    {"Memory Throughput", "dram__bytes.sum.per_second"},  // of the section on memory; in % it is another metric
}};

std::string metric_name(std::string_view shown, std::string_view unit) {
    if (shown == "Memory Throughput" && unit == "%")
        return "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
    for (const auto& [label, metric] : detail_names) {
        if (shown == label) return std::string(metric);
    }
    return std::string(shown);
}

/// Only what is looked at below is kept: a raw page has a thousand columns.
bool wanted(std::string_view metric) {
    constexpr std::array<std::string_view, 24> beginnings = {
        "gpu__time_duration",
        "dram__bytes",
        "dram__sectors_",
        "dram__cycles_elapsed.avg.per_second",
        "lts__t_bytes.sum",
        "lts__t_sectors.sum",
        "lts__t_sector_hit_rate",
        "derived__lts__lts2xbar_bytes.sum",
        "smsp__cycles_elapsed.",
        "sm__cycles_elapsed.",
        "gpc__cycles_elapsed.",
        "smsp__sass_thread_inst_executed_op_",
        "sm__sass_thread_inst_executed_op_",
        "derived__smsp__sass_thread_inst_executed_op_",
        "sm__ops_path_tensor_",
        "sm__pipe_tensor_cycles_active.avg",
        "sm__warps_active.avg",
        "sm__maximum_warps_per_active_cycle_pct",
        "launch__waves",
        "launch__sm_count",
        "derived__local_spilling_requests",
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld",
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld",
        "profiler__replayer_passes",
    };
    if (metric.starts_with("device__attribute_"))
        return metric == "device__attribute_max_gpu_frequency_khz" || metric == "device__attribute_l2_cache_size" ||
               metric == "device__attribute_multiprocessor_count" || metric == "device__attribute_display_name";
    if (metric.starts_with("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum") ||
        metric.starts_with("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"))
        return true;
    if (metric.find(".min") != std::string_view::npos || metric.find(".peak_sustained") != std::string_view::npos)
        return false;
    return std::ranges::any_of(beginnings, [&](std::string_view begin) { return metric.starts_with(begin); });
}

/// A sum over the device, as it stands or from a rate.
std::optional<double> total(const Launch& launch, const std::string& metric, double seconds, double cycles) {
    if (const auto sum = launch.find(metric + ".sum")) return sum;
    if (const auto rate = launch.find(metric + ".sum.per_second")) return *rate * seconds;
    if (const auto rate = launch.find(metric + ".sum.per_cycle_elapsed"); rate && cycles > 0.0) return *rate * cycles;
    return std::nullopt;
}

std::optional<DType> tensor_type(std::string_view metric) {
    constexpr std::array<std::pair<std::string_view, DType>, 10> types = {{{"bf16", DType::bf16},
                                                                           {"fp16", DType::fp16},
                                                                           {"tf32", DType::tf32},
                                                                           {"fp64", DType::fp64},
                                                                           {"fp8", DType::fp8},
                                                                           {"fp6", DType::fp8},
                                                                           {"fp4", DType::fp4},
                                                                           {"int8", DType::int8},
                                                                           {"int4", DType::int4},
                                                                           {"fp32", DType::fp32}}};
    const std::size_t at = metric.find("src_");
    if (at == std::string_view::npos) return std::nullopt;
    for (const auto& [word, type] : types) {
        if (metric.substr(at + 4).starts_with(word)) return type;
    }
    return std::nullopt;
}

/// Tensor operations by the type of their operands. The tool counts each under the type (…tensor_src_bf16…) and again
/// under the instruction (…tensor_op_hgmma_src_bf16…): the first where it is there.
void add_tensor_flops(const Launch& launch, double seconds, double cycles, Counters& counters) {
    std::map<DType, double> by_type;
    std::map<DType, double> by_instruction;
    for (const auto& [name, value] : launch.metrics) {
        constexpr std::string_view begin = "sm__ops_path_tensor_";
        if (!name.starts_with(begin)) continue;
        const std::size_t dot = name.find('.');
        const std::string base = name.substr(0, dot);
        const auto type = tensor_type(base);
        if (!type || dot == std::string::npos) continue;
        // Only the best spelling of a metric counts, whichever we happen to meet.
        const std::string suffix = name.substr(dot);
        const bool has_sum = launch.metrics.contains(base + ".sum");
        const bool has_rate = launch.metrics.contains(base + ".sum.per_second");
        const bool best = suffix == ".sum" || (!has_sum && suffix == ".sum.per_second") ||
                          (!has_sum && !has_rate && suffix == ".sum.per_cycle_elapsed");
        if (!best) continue;
        const double count = total(launch, base, seconds, cycles).value_or(0.0);
        (base.starts_with("sm__ops_path_tensor_op_") ? by_instruction : by_type)[*type] += count;
        counters.flops_counted = true;
    }
    for (const auto& [type, count] : by_instruction) by_type.try_emplace(type, count);
    for (const auto& [type, count] : by_type) counters.flops[{Engine::matrix, type}] += count;
}

/// Additions and multiplications of threads on the plain units; a fused multiply-add is two.
void add_thread_flops(const Launch& launch, double seconds, double cycles, Counters& counters) {
    constexpr std::array<std::pair<char, DType>, 3> types = {
        {{'h', DType::fp16}, {'f', DType::fp32}, {'d', DType::fp64}}};
    for (const auto& [letter, type] : types) {
        double flops = 0.0;
        bool counted = false;
        for (const auto& [operation, each] : {std::pair{"add", 1.0}, std::pair{"mul", 1.0}, std::pair{"fma", 2.0}}) {
            const std::string metric = fmt::format("__sass_thread_inst_executed_op_{}{}_pred_on", letter, operation);
            auto count = total(launch, "smsp" + metric, seconds, cycles);
            if (!count) count = total(launch, "sm" + metric, seconds, cycles);
            if (!count && each == 2.0) {
                // The tool's own roofline has multiply-adds only as twice their number a cycle.
                if (const auto twice = launch.find("derived__smsp" + metric + "_x2"); twice && cycles > 0.0)
                    count = *twice * cycles / 2.0;
            }
            if (!count) continue;
            counted = true;
            flops += each * *count;
        }
        if (!counted) continue;
        counters.flops_counted = true;
        counters.flops[{Engine::vector, type}] += flops;
    }
}

Counters counters_of(const Launch& launch) {
    Counters counters;
    counters.kernel = launch.kernel;
    counters.grid = launch.grid;
    counters.device = launch.device;
    const double seconds =
        launch.first({"gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration.max"}).value_or(0.0);
    counters.duration = Seconds(seconds);
    counters.clock = launch.first({"smsp__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.avg.per_second",
                                   "gpc__cycles_elapsed.avg.per_second"});
    double cycles = launch
                        .first({"smsp__cycles_elapsed.avg", "sm__cycles_elapsed.avg", "smsp__cycles_elapsed.max",
                                "sm__cycles_elapsed.max"})
                        .value_or(0.0);
    if (cycles == 0.0 && counters.clock) cycles = *counters.clock * seconds;

    counters.dram_read = total(launch, "dram__bytes_read", seconds, cycles);
    counters.dram_write = total(launch, "dram__bytes_write", seconds, cycles);
    if (!counters.dram_read) {
        if (const auto sectors = launch.find("dram__sectors_read.sum")) counters.dram_read = 32.0 * *sectors;
    }
    if (!counters.dram_write) {
        if (const auto sectors = launch.find("dram__sectors_write.sum")) counters.dram_write = 32.0 * *sectors;
    }
    counters.dram = total(launch, "dram__bytes", seconds, cycles);
    if (!counters.dram && counters.dram_read && counters.dram_write)
        counters.dram = *counters.dram_read + *counters.dram_write;
    counters.l2 = total(launch, "derived__lts__lts2xbar_bytes", seconds, cycles);
    if (!counters.l2) counters.l2 = total(launch, "lts__t_bytes", seconds, cycles);
    if (!counters.l2) {
        if (const auto sectors = launch.find("lts__t_sectors.sum")) counters.l2 = 32.0 * *sectors;
    }
    add_thread_flops(launch, seconds, cycles, counters);
    add_tensor_flops(launch, seconds, cycles, counters);

    counters.l2_hit_rate = launch.find("lts__t_sector_hit_rate.pct");
    counters.sectors_per_request = launch.find("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio");
    if (!counters.sectors_per_request) {
        const auto sectors = launch.find("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum");
        const auto requests = launch.find("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum");
        if (sectors && requests && *requests > 0.0) counters.sectors_per_request = *sectors / *requests;
    }
    counters.bytes_per_sector = launch.find("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio");
    if (const auto share = launch.find("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct");
        !counters.bytes_per_sector && share)
        counters.bytes_per_sector = 32.0 * *share;
    counters.occupancy = launch.find("sm__warps_active.avg.pct_of_peak_sustained_active");
    counters.occupancy_limit = launch.find("sm__maximum_warps_per_active_cycle_pct");
    counters.waves = launch.find("launch__waves_per_multiprocessor");
    counters.spills = launch.find("derived__local_spilling_requests");
    counters.tensor_busy = launch.find("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed");
    if (const auto kilohertz = launch.find("device__attribute_max_gpu_frequency_khz"))
        counters.clock_limit = 1e3 * *kilohertz;
    counters.l2_size = launch.find("device__attribute_l2_cache_size");
    counters.multiprocessors = launch.first({"device__attribute_multiprocessor_count", "launch__sm_count"});
    counters.passes = launch.find("profiler__replayer_passes");
    return counters;
}

bool is_header(std::string_view line) {
    if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    return line.starts_with("\"ID\",") && line.find("\"Kernel Name\"") != std::string_view::npos;
}

class Reader {
  public:
    Reader(Input& input, const Options& options) : input_(input), options_(options), rows_(input) {}

    Result<Analysis> read() {
        auto header = find_header();
        if (!header) return std::unexpected(header.error());
        columns_ = Columns(std::move(*header));
        const bool is_long = columns_.find("Metric Name").has_value();
        auto done = is_long ? read_long() : read_wide();
        if (!done) return std::unexpected(done.error());
        if (launches_.empty())
            return fail(
                fmt::format("{}: the table has a header and no launches: was any kernel profiled?", input_.name()));
        if (without_time_ == launches_.size())
            return fail(fmt::format("{}: no launch has a duration (gpu__time_duration.sum); --set roofline collects it",
                                    input_.name()));
        auto analysis = analysis_of(launches_, options_);
        if (!analysis) return analysis;
        analysis->account.title = input_.name();
        analysis->format = is_long ? "Nsight Compute details page" : "Nsight Compute raw page";
        const std::string cut = input_.cut_short();
        if (rows_.cut() || short_rows_ > 0 || !cut.empty()) {
            analysis->partial = true;
            analysis->account.notes.push_back(fmt::format(
                "the file is cut off or damaged: {}; {} launches were read",
                !cut.empty()
                    ? cut
                    : fmt::format("rows end early, first at line {}", first_short_ > 0 ? first_short_ : rows_.line()),
                launches_.size()));
        }
        if (without_time_ > 0)
            analysis->account.notes.push_back(
                fmt::format("{} launches have no duration (gpu__time_duration) and count for nothing", without_time_));
        return analysis;
    }

  private:
    Result<std::vector<std::string>> find_header() {
        while (true) {
            auto line = rows_.next_line();
            if (!line) return std::unexpected(line.error());
            if (!*line)
                return fail(
                    fmt::format("{}: found no header (\"ID\",...,\"Kernel Name\",...) of Nsight Compute's CSV: "
                                "was the profiler stopped before it ended?",
                                input_.name()));
            if (!is_header(**line)) continue;
            if (line->value().starts_with("\xEF\xBB\xBF")) line->value().erase(0, 3);
            Input memory = Input::from_memory(input_.name(), std::move(**line));
            auto cells = CsvRows(memory).next();
            if (!cells) return std::unexpected(cells.error());
            return std::move(*cells).value_or(std::vector<std::string>());
        }
    }

    /// The next row of the table; lines of programs between rows do not begin with a quote.
    Result<std::optional<std::vector<std::string>>> next() {
        while (true) {
            const auto first = rows_.peek();
            if (!first) return std::unexpected(first.error());
            if (!*first) return std::nullopt;
            if (**first == '"') {
                auto row = rows_.next();
                // A remark of the program that happens to begin with a quote is no row either.
                if (row && *row && (*row)->size() < 2) continue;
                if (options_.progress && ++read_ % 256 == 0) options_.progress(input_.progress().value_or(0.0));
                return row;
            }
            if (const auto line = rows_.next_line(); !line) return std::unexpected(line.error());
        }
    }

    void note_short() {
        ++short_rows_;
        if (first_short_ == 0) first_short_ = rows_.line();
    }

    Result<void> keep(const Launch& launch) {
        if (launch.kernel.empty() && launch.metrics.empty()) return {};
        Counters counters = counters_of(launch);
        if (counters.duration.value <= 0.0) ++without_time_;
        constexpr std::size_t most_launches = 2'000'000;
        if (launches_.size() >= most_launches)
            return fail(fmt::format("{}: more than {} launches, expected a profile", input_.name(), most_launches));
        launches_.push_back(std::move(counters));
        return {};
    }

    Result<void> read_wide() {
        std::vector<bool> keep_column;
        for (const std::string& column : columns_.names()) keep_column.push_back(wanted(column));
        std::vector<double> factors;
        while (true) {
            auto row = next();
            if (!row) return std::unexpected(row.error());
            if (!*row) return {};
            const std::vector<std::string>& cells = **row;
            if (factors.empty()) {
                factors.assign(columns_.names().size(), 1.0);
                // The row of units has no ID. Files that were put together from others may lack it.
                if (columns_.text(cells, "ID").empty()) {
                    for (std::size_t i = 0; i < std::min(cells.size(), factors.size()); ++i)
                        factors[i] = metric_factor(cells[i]);
                    continue;
                }
            }
            if (columns_.text(cells, "ID").empty()) continue;
            if (cells.size() != columns_.names().size()) {
                note_short();
                continue;
            }
            Launch launch;
            launch.kernel = columns_.text(cells, "Kernel Name");
            launch.grid = columns_.text(cells, "Grid Size");
            for (std::size_t i = 0; i < cells.size(); ++i) {
                if (!keep_column[i]) continue;
                if (columns_.names()[i] == "device__attribute_display_name")
                    launch.device = cells[i];
                else if (const auto value = number_of(cells[i]))
                    launch.metrics[columns_.names()[i]] = *value * factors[i];
            }
            if (auto kept = keep(launch); !kept) return kept;
        }
    }

    Result<void> read_long() {
        Launch launch;
        const std::size_t least = columns_.find("Metric Value").value_or(0) + 1;
        while (true) {
            auto row = next();
            if (!row) return std::unexpected(row.error());
            if (!*row) break;
            const std::vector<std::string>& cells = **row;
            if (cells.size() < least || rows_.cut()) {
                note_short();
                continue;
            }
            const std::string id = fmt::format("{}/{}", columns_.text(cells, "Process ID"), columns_.text(cells, "ID"));
            if (id != launch.id) {
                if (auto kept = keep(launch); !kept) return kept;
                launch = {};
                launch.id = id;
                launch.kernel = columns_.text(cells, "Kernel Name");
                launch.grid = columns_.text(cells, "Grid Size");
            }
            const std::string_view unit = columns_.text(cells, "Metric Unit");
            const std::string metric = metric_name(columns_.text(cells, "Metric Name"), unit);
            if (metric == "device__attribute_display_name") launch.device = columns_.text(cells, "Metric Value");
            if (metric.empty() || !wanted(metric)) continue;
            if (const auto value = columns_.number(cells, "Metric Value"))
                launch.metrics.try_emplace(metric, *value * metric_factor(unit));
        }
        return keep(launch);
    }

    Input& input_;
    const Options& options_;
    CsvRows rows_;
    Columns columns_{{}};
    std::vector<Counters> launches_;
    std::size_t read_ = 0;
    std::size_t short_rows_ = 0;
    long first_short_ = 0;
    std::size_t without_time_ = 0;
};

bool recognises(std::string_view first) {
    // The tool's own words, and no table yet: it was stopped before it wrote one.
    if (first.starts_with("==PROF==")) return true;
    while (!first.empty()) {
        const std::size_t end = first.find('\n');
        if (is_header(first.substr(0, end))) return true;
        if (end == std::string_view::npos) break;
        first.remove_prefix(end + 1);
    }
    return false;
}

Result<Analysis> read(Input& input, const Options& options) {
    return Reader(input, options).read();
}

}  // namespace

Format ncu_csv_format() {
    return {"Nsight Compute CSV", "ncu", recognises, read};
}

}  // namespace roofline::analyze
