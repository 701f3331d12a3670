#include "roofline/assess/measured.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "roofline/assess/reports.hpp"
#include "roofline/assess/steps.hpp"
#include "roofline/core/roof.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/fields.hpp"
#include "roofline/predict/execution.hpp"
#include "roofline/predict/kernel_type.hpp"

namespace roofline::assess {

#define ROOFLINE_ENTRY(name) extern const RowReader name##_rows;
#include "roofline/assess/rows.inc"
#undef ROOFLINE_ENTRY

namespace {

std::span<const RowReader* const> row_readers() {
    static const auto readers = std::to_array<const RowReader*>({
#define ROOFLINE_ENTRY(name) &name##_rows,
#include "roofline/assess/rows.inc"
#undef ROOFLINE_ENTRY
    });
    return readers;
}

const RowReader* reader_of(std::string_view op) {
    for (const RowReader* reader : row_readers()) {
        for (const std::string_view known : reader->ops) {
            if (op == known || (known.ends_with(':') && op.starts_with(known))) return reader;
        }
    }
    return nullptr;
}

// Columns every kernel table may have; the readers of rows name their own.
constexpr auto common_columns =
    std::to_array<std::string_view>({"gpu", "op", "dtype", "time_us", "framework", "version", "kernel", "source",
                                     "lo_us", "hi_us", "num_gpus", "note"});

/// Devices by the name a table uses; each is looked up once.
class DeviceNames {
  public:
    std::shared_ptr<const Device> find(std::string_view name) {
        const auto known = devices_.find(std::string(name));
        if (known != devices_.end()) return known->second;
        std::shared_ptr<const Device> device;
        if (auto found = io::builtin_device(name)) device = std::make_shared<const Device>(std::move(*found));
        devices_.emplace(std::string(name), device);
        return device;
    }

  private:
    std::map<std::string, std::shared_ptr<const Device>> devices_;
};

/// F1 for what a row timed: weights and caches stream; activations may stay on the chip if they fit; what other devices
/// need crosses links.
double roof_seconds(const Measurement& row, const Roofs& roofs) {
    double sum = 0.0;
    for (const Call& call : row.calls) {
        const double activations = call.kernel.input_bytes + call.kernel.output_bytes;
        const bool stays = !call.cold && (activations <= call.machine.cache || call.machine.cache == 0.0);
        const double bytes = call.kernel.weight_bytes + (stays ? 0.0 : activations);
        sum += call.count * std::max({call.kernel.flops * roofs.flop_cost(call.engine, call.type),
                                      bytes * roofs.seconds_per_byte[index(Level::memory)],
                                      call.kernel.link_bytes * roofs.seconds_per_byte[index(call.link)],
                                      call.kernel.network_bytes * roofs.seconds_per_byte[index(Level::network)]});
    }
    return sum;
}

/// Benchmarks that replay one set of buffers read it from the cache if it fits. Some such rows then beat the memory's
/// bandwidth and are refused as faster than the limit; their neighbours are as warm, only slower. So: where a quarter
/// of the memory-bound rows of one family of shapes, with weights that fit the cache, beat the limit, all of them go.
class WarmRows {
  public:
    static bool of_interest(const Measurement& row) {
        double bytes = 0.0;
        double streaming = 0.0;
        double computing = 0.0;
        double cache = 0.0;
        for (const Call& call : row.calls) {
            bytes += call.count * call.kernel.weight_bytes;
            streaming += call.count * call.kernel.weight_bytes / call.machine.bandwidth;
            computing += call.machine.peak > 0.0 ? call.count * call.kernel.flops / call.machine.peak : 0.0;
            cache = call.machine.cache;
        }
        return bytes > 0.0 && bytes <= cache && streaming > computing && streaming > 0.1 * row.seconds;
    }

    void count(const Measurement& row) {
        auto& [all, too_fast] = families_[key(row)];
        ++all;
        if (row.seconds < row.limit) ++too_fast;
    }

    void refuse(std::size_t first, Measurements& from) const {
        const auto kept = std::stable_partition(
            from.rows.begin() + static_cast<std::ptrdiff_t>(first), from.rows.end(), [&](const Measurement& row) {
                const auto found = families_.find(key(row));
                return !of_interest(row) || found == families_.end() || 4 * found->second.second < found->second.first;
            });
        for (auto row = kept; row != from.rows.end(); ++row) {
            from.refused.push_back({row->file, row->line, row->device->name, row->kind, row->type, row->stage,
                                    "operands stay in the cache: a quarter of such rows beat the memory"});
        }
        from.rows.erase(kept, from.rows.end());
    }

  private:
    static std::string key(const Measurement& row) {
        return row.device->name + "|" + row.kind + "|" + row.fit_type + "|" + row.stack + "|" + row.family;
    }
    std::map<std::string, std::pair<int, int>> families_;
};

/// Rows as JSON objects, keys being columns: turned into the table they stand for.
Result<CsvTable> table_of_json(std::string_view text, const std::string& file) {
    const auto json = io::parse_json(text, file);
    if (!json) return std::unexpected(json.error());
    const io::Json* rows = json->is_array() ? &*json : nullptr;
    if (json->is_object() && json->contains("rows")) rows = &(*json)["rows"];
    if (rows == nullptr || !rows->is_array())
        return fail(file + ": found no rows, expected {\"schema\": \"roofline.measured/1\", \"rows\": [...]}");
    std::vector<std::string> columns;
    for (const io::Json& row : *rows) {
        if (!row.is_object()) return fail(file + ": rows: found " + io::describe(row) + ", expected an object");
        for (const auto& [key, value] : row.items()) {
            if (std::find(columns.begin(), columns.end(), key) == columns.end()) columns.push_back(key);
        }
    }
    std::vector<std::vector<std::string>> cells;
    for (const io::Json& row : *rows) {
        std::vector<std::string>& line = cells.emplace_back();
        for (const std::string& column : columns) {
            const auto value = row.find(column);
            const bool absent = value == row.end() || value->is_null();
            line.push_back(absent ? "" : value->is_string() ? value->get_ref<const std::string&>() : value->dump());
        }
    }
    return CsvTable::of_cells(file, std::move(columns), std::move(cells));
}

Result<void> read_kernel_table(const CsvTable& table, Measurements& into) {
    DeviceNames names;
    std::map<const Device*, std::pair<Roofs, Roofs>> roofs;
    WarmRows warm;
    const std::size_t first_row = into.rows.size();
    std::set<std::string_view> understood(common_columns.begin(), common_columns.end());
    for (const CsvTable::Row& row : table.rows()) {
        Refusal refusal{.file = table.file(),
                        .line = row.line,
                        .device = std::string(table.text(row, "gpu")),
                        .kind = std::string(table.text(row, "op")),
                        .type = std::string(table.text(row, "dtype").empty() ? "bf16" : table.text(row, "dtype")),
                        .stage = {},
                        .reason = {}};
        const auto refuse = [&](std::string reason) {
            refusal.reason = std::move(reason);
            into.refused.push_back(refusal);
        };
        // Of machines with several devices the topology may say more than the name of the chip: "a100_pairwise_nvlink"
        // is another card than "a100_dgx".
        auto device = names.find(table.text(row, "topology"));
        if (!device) device = names.find(table.text(row, "gpu"));
        if (!device) {
            refuse("unknown device");
            continue;
        }
        refusal.device = device->name;
        const RowReader* reader = reader_of(refusal.kind);
        if (reader == nullptr) {
            refuse("no formula for this kind of row");
            continue;
        }
        understood.insert(reader->columns.begin(), reader->columns.end());
        if (table.text(row, "note").find("SUSPECT") != std::string_view::npos) {
            refuse("marked as suspect in its note");
            continue;
        }
        const auto time = table.number(row, "time_us");
        if (!time || *time <= 0.0) {
            refuse("no positive time");
            continue;
        }
        Measurement measured;
        measured.file = table.file();
        measured.line = row.line;
        measured.device = device;
        measured.kind = refusal.kind;
        measured.type = refusal.type;
        measured.seconds = *time * 1e-6;
        measured.fit_type = measured.type;
        std::string reason = reader->read({table, row, *device}, measured);
        if (!reason.empty()) {
            refuse(std::move(reason));
            continue;
        }
        auto place = roofs.find(device.get());
        if (place == roofs.end())
            place = roofs.emplace(device.get(), std::pair{limit_roofs(*device), attainable_roofs(*device)}).first;
        measured.limit = roof_seconds(measured, place->second.first);
        measured.attainable = std::max(measured.limit, roof_seconds(measured, place->second.second));
        if (warm.of_interest(measured)) warm.count(measured);
        if (measured.seconds < measured.limit) {
            refuse("faster than the limit");
            continue;
        }
        into.rows.push_back(std::move(measured));
    }
    warm.refuse(first_row, into);
    for (const std::string& column : table.columns()) {
        if (!understood.contains(column)) into.notes.push_back(table.file() + ": column " + column + " is not used");
    }
    return {};
}

}  // namespace

double RowContext::size(std::string_view column) const {
    const auto value = table.number(row, column);
    return value && *value > 0.0 && *value <= 1e9 && *value == std::floor(*value) ? *value : 0.0;
}

double RowContext::amount(std::string_view column) const {
    const auto value = table.number(row, column);
    return value && *value > 0.0 && *value <= 1e15 ? *value : 0.0;
}

std::string whole(double value) {
    return std::to_string(static_cast<long long>(value));
}

std::string lower_case(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return result;
}

std::optional<DType> engine_type(std::string_view label) {
    const Format* format = find_format(label);
    if (format == nullptr) return std::nullopt;
    return format->weight_only ? DType::bf16 : format->value;
}

double stored_bytes(std::string_view label, double inner, double cols) {
    const Format* format = find_format(label);
    return matrix_bytes(format != nullptr ? *format : plain_format(DType::bf16), inner, cols).value;
}

Call call_of(const Device& device, std::string_view class_name, DType type, const predict::Kernel& kernel) {
    Call call;
    call.kernel_class = predict::kernel_class(class_name);
    call.kernel = kernel;
    call.type = type;
    if (const auto choice = choose_engine(device, type)) {
        call.engine = choice->engine;
        call.type = choice->type;
        const DType multiplied = choice->exact ? choice->type : predict::multiplied_in(device, type);
        call.machine = predict::machine_of(device, choice->engine, multiplied);
    }
    return call;
}

Result<void> read_measured(std::string_view text, const std::string& file, Measurements& into) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const bool json = first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
    if (json) {
        const auto parsed = io::parse_json(text, file);
        if (!parsed) return std::unexpected(parsed.error());
        const auto schema = parsed->is_object() ? parsed->value("schema", io::Json()) : io::Json();
        if (schema == "roofline.report/1") return read_report(text, *parsed, file, into);
        if (schema == "roofline.device/1") return read_ceilings(text, file, into);
    }
    const auto table = json ? table_of_json(text, file) : CsvTable::parse(text, file);
    if (!table) return std::unexpected(table.error());
    if (table->has("op") && table->has("time_us") && table->has("gpu")) return read_kernel_table(*table, into);
    if (table->has("model") && table->has("stage") && table->has("time_ms")) return read_step_table(*table, into);
    if (table->has("model") && table->has("metric") && table->has("value")) return read_rate_table(*table, into);
    return fail(
        file +
        ": found no table known here, expected the columns gpu, op, time_us (kernels), or model, stage, time_ms, or "
        "model, metric, value (whole models); or the JSON that bench, analyze or measure writes");
}

}  // namespace roofline::assess
