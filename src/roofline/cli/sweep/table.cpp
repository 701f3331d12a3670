// A small sweep as a table for people: numbers with units, and what is the same in all rows said once above.
#include "roofline/render/table.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "roofline/cli/files.hpp"
#include "roofline/cli/sweep/sinks.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::cli {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (true) {
        const std::size_t end = text.find(separator);
        parts.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

std::string with_unit(const std::string& cell, ask::Unit unit) {
    if (cell.empty() || unit == ask::Unit::word) return cell;
    if (unit == ask::Unit::flag) return cell == "true" ? "yes" : "no";
    const double value = std::strtod(cell.c_str(), nullptr);
    switch (unit) {
        case ask::Unit::seconds:
            return render::time(Seconds(value));
        case ask::Unit::bytes:
            return render::bytes(Bytes(value));
        case ask::Unit::flops:
            return render::flops(Flops(value));
        case ask::Unit::flops_per_byte:
            return render::intensity(FlopsPerByte(value));
        case ask::Unit::tokens_per_second:
        case ask::Unit::number:
            return render::plain(value);
        default:
            return render::grouped(value);
    }
}

/// "decode_expected_s" holds times that carry their unit: "decode expected".
std::string title_of(const ask::MetricColumn& metric) {
    std::string title = metric.name;
    if (title.ends_with("_per_s_per_device")) {
        title = title.substr(0, title.size() - std::string("_per_s_per_device").size()) + "/s/device";
    } else if (title.ends_with("_per_s")) {
        title = title.substr(0, title.size() - std::string("_per_s").size()) + "/s";
    } else if (title.ends_with("_s")) {
        title = title.substr(0, title.size() - 2);
    }
    std::replace(title.begin(), title.end(), '_', ' ');
    return title;
}

class TableOfRows final : public Sink {
  public:
    TableOfRows(std::string path, const ask::RowLayout& layout, SpellTable spell)
        : path_(std::move(path)), layout_(layout), spell_(std::move(spell)) {}

    Result<void> write(std::string_view text) override {
        while (!text.empty()) {
            const std::size_t end = text.find('\n');
            rows_.push_back(split(text.substr(0, end), ask::cell_separator));
            text.remove_prefix(end + 1);
        }
        return {};
    }

    Result<void> close() override {
        const std::vector<std::string> names = layout_.column_names();
        const std::size_t axes = names.size() - layout_.metrics.size();
        render::Table table;
        std::string same;
        table.rows.resize(rows_.size());
        for (std::size_t column = 0; column < names.size(); ++column) {
            const bool alike = std::all_of(rows_.begin(), rows_.end(),
                                           [&](const auto& row) { return row[column] == rows_.front()[column]; });
            const ask::MetricColumn* metric = column < axes ? nullptr : &layout_.metrics[column - axes];
            if (metric == nullptr && alike && rows_.size() > 1) {
                same += fmt::format("{}{} {}", same.empty() ? "" : ", ", names[column], rows_.front()[column]);
                continue;
            }
            if (metric != nullptr && metric->source == ask::Source::problem && alike && rows_.front()[column].empty())
                continue;
            const bool word = metric != nullptr && metric->unit == ask::Unit::word;
            table.columns.push_back({metric != nullptr ? title_of(*metric) : names[column],
                                     word ? render::Align::left : render::Align::right});
            for (std::size_t row = 0; row < rows_.size(); ++row) {
                const std::string& cell = rows_[row][column];
                table.rows[row].push_back(metric != nullptr ? with_unit(cell, metric->unit) : cell);
            }
        }
        const std::string text = spell_(same, table);
        if (!path_.empty()) return write_whole(path_, text);
        if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
            return fail("stdout: cannot be written");
        return {};
    }

  private:
    std::string path_;
    const ask::RowLayout& layout_;
    SpellTable spell_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace

Result<std::unique_ptr<Sink>> table_sink(const std::string& path, const ask::RowLayout& layout, SpellTable spell) {
    return std::make_unique<TableOfRows>(path, layout, std::move(spell));
}

}  // namespace roofline::cli
