// Our own CSV, for whatever else was timed:
//
//   name,count,time_us,flops,bytes                     the header; in any order, only name and time_us are required
//   layers.ffn.down,32,1480.5,1.2e9,3.7e9              totals over `count`; lines that begin with # are remarks
//
// Further columns that are understood: stage (rows of one stage stand together; "all" without it), group, kind, dtype,
// engine (matrix or vector), cache_bytes, covers (names between ';').
#include <algorithm>

#include <fmt/format.h>

#include "roofline/analyze/csv_rows.hpp"
#include "roofline/analyze/format.hpp"
#include "roofline/analyze/runs.hpp"

namespace roofline::analyze {

Format own_csv_format();

namespace {

bool recognises(std::string_view first) {
    if (first.starts_with("\xEF\xBB\xBF")) first.remove_prefix(3);
    while (first.starts_with('#') || first.starts_with('\n') || first.starts_with('\r')) {
        const std::size_t end = first.find('\n');
        if (end == std::string_view::npos) return false;
        first.remove_prefix(end + 1);
    }
    const std::string_view header = first.substr(0, first.find('\n'));
    return header.find("name") != std::string_view::npos && header.find("time_us") != std::string_view::npos &&
           header.find('{') == std::string_view::npos;
}

class Reader {
  public:
    Reader(Input& input, const Options& options) : input_(input), options_(options), rows_(input) {}

    Result<Analysis> read() {
        auto header = next();
        if (!header) return std::unexpected(header.error());
        if (!*header)
            return fail(fmt::format("{}: found no header, expected name,count,time_us,flops,bytes", input_.name()));
        if ((*header)->front().starts_with("\xEF\xBB\xBF")) (*header)->front().erase(0, 3);
        columns_ = Columns(std::move(**header));
        for (const char* required : {"name", "time_us"}) {
            if (!columns_.find(required))
                return fail(fmt::format("{}:{}: the header has no column {}, expected name,count,time_us,flops,bytes",
                                        input_.name(), rows_.line(), required));
        }
        Analysis analysis;
        analysis.account.verb = "analyze";
        analysis.account.title = input_.name();
        const auto device = device_meant("", options_, analysis.account.notes);
        analysis.device_known = device.has_value();
        if (device) analysis.account.device = *device;
        if (!device) analysis.account.device.name = "unknown";
        while (true) {
            auto row = next();
            if (!row) return std::unexpected(row.error());
            if (!*row) break;
            auto record = record_of(**row);
            if (!record) return std::unexpected(record.error());
            if (device) hold_against(*device, *record);
            std::string stage(columns_.text(**row, "stage"));
            if (stage.empty()) stage = "all";
            auto at = std::ranges::find(analysis.account.stages, stage, &AccountStage::name);
            if (at == analysis.account.stages.end()) {
                analysis.account.stages.emplace_back().name = stage;
                at = analysis.account.stages.end() - 1;
            }
            at->records.push_back(std::move(*record));
            analysis.events += 1.0;
        }
        if (analysis.account.stages.empty())
            return fail(fmt::format("{}: the table has a header and no rows", input_.name()));
        for (AccountStage& stage : analysis.account.stages) sum_records(stage);
        if (const std::string cut = input_.cut_short(); !cut.empty() || rows_.cut()) {
            analysis.partial = true;
            analysis.account.notes.push_back("the file is cut off: " + (cut.empty() ? "inside a quoted cell" : cut));
        }
        return analysis;
    }

  private:
    Result<std::optional<std::vector<std::string>>> next() {
        while (true) {
            const auto first = rows_.peek();
            if (!first) return std::unexpected(first.error());
            if (*first && **first == '#') {
                if (const auto line = rows_.next_line(); !line) return std::unexpected(line.error());
                continue;
            }
            return rows_.next();
        }
    }

    /// A cell that must be a number of at least zero where it is there at all.
    Result<double> number(const std::vector<std::string>& row, const char* column, double fallback) const {
        const std::string_view cell = columns_.text(row, column);
        if (cell.empty()) return fallback;
        const auto value = number_of(cell);
        if (!value || *value < 0.0)
            return fail(fmt::format("{}:{}: {}: found \"{}\", expected a number of at least zero", input_.name(),
                                    rows_.line(), column, shown(cell)));
        return *value;
    }

    Result<Record> record_of(const std::vector<std::string>& row) const {
        if (row.size() != columns_.names().size())
            return fail(fmt::format("{}:{}: found {} cells, expected {} as in the header", input_.name(), rows_.line(),
                                    row.size(), columns_.names().size()));
        Record record;
        record.name = columns_.text(row, "name");
        if (record.name.empty()) return fail(fmt::format("{}:{}: name: found nothing", input_.name(), rows_.line()));
        if (columns_.text(row, "time_us").empty())
            return fail(
                fmt::format("{}:{}: time_us: found nothing, expected microseconds", input_.name(), rows_.line()));
        record.origin = Origin::measured;
        double time = 0.0;
        double memory = 0.0;
        double cache = 0.0;
        double flops = 0.0;
        for (const auto& [column, target, fallback] :
             {std::tuple{"count", &record.count, 1.0}, std::tuple{"time_us", &time, 0.0},
              std::tuple{"flops", &flops, 0.0}, std::tuple{"bytes", &memory, 0.0},
              std::tuple{"cache_bytes", &cache, 0.0}}) {
            const auto value = number(row, column, fallback);
            if (!value) return std::unexpected(value.error());
            *target = *value;
        }
        record.times.measured = Seconds(time * 1e-6);
        record.work.flops = Flops(flops);
        record.work.at(Level::memory) = Bytes(memory);
        record.work.at(Level::cache) = Bytes(cache);
        return classified(row, std::move(record));
    }

    Result<Record> classified(const std::vector<std::string>& row, Record record) const {
        const auto wrong = [&](const char* column, std::string_view cell, const char* expected) {
            return fail(fmt::format("{}:{}: {}: found \"{}\", expected {}", input_.name(), rows_.line(), column,
                                    shown(cell), expected));
        };
        if (const std::string_view cell = columns_.text(row, "group"); !cell.empty()) {
            const auto found = find_group(cell);
            if (!found) return wrong("group", cell, "a group such as attention or ffn");
            record.group = *found;
        }
        if (const std::string_view cell = columns_.text(row, "kind"); !cell.empty()) {
            const auto found = find_kind(cell);
            if (!found) return wrong("kind", cell, "a kind such as gemm or attention");
            record.kind = *found;
        }
        if (const std::string_view cell = columns_.text(row, "dtype"); !cell.empty()) {
            const auto found = parse_dtype(cell);
            if (!found) return wrong("dtype", cell, "a number type such as bf16");
            record.work.type = *found;
        }
        if (const std::string_view cell = columns_.text(row, "engine"); !cell.empty()) {
            if (cell != name(Engine::matrix) && cell != name(Engine::vector))
                return wrong("engine", cell, "matrix or vector");
            record.work.engine = cell == name(Engine::vector) ? Engine::vector : Engine::matrix;
        }
        std::string_view covers = columns_.text(row, "covers");
        while (!covers.empty()) {
            const std::size_t end = covers.find(';');
            if (end != 0) record.covers.emplace_back(covers.substr(0, end));
            covers.remove_prefix(end == std::string_view::npos ? covers.size() : end + 1);
        }
        return record;
    }

    Input& input_;
    const Options& options_;
    CsvRows rows_;
    Columns columns_{{}};
};

Result<Analysis> read(Input& input, const Options& options) {
    return Reader(input, options).read();
}

}  // namespace

Format own_csv_format() {
    return {"CSV (name,count,time_us,flops,bytes)", "csv", recognises, read};
}

}  // namespace roofline::analyze
