// A database with one table, `sweep`. SQLite's library is loaded when it is needed (analyze/sqlite.hpp).
//
// A new database is written beside its place and moved there at the end, finished or stopped, so that nobody sees half
// of one. One that is taken up again is changed in one transaction, for which SQLite itself vouches.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

#include "roofline/analyze/sqlite.hpp"
#include "roofline/cli/files.hpp"
#include "roofline/cli/sweep/sinks.hpp"

namespace roofline::cli {
namespace {

using sqlite::Library;
using sqlite::Statement;

std::string identifier(std::string_view name) {
    std::string text = "\"";
    for (const char c : name) {
        if (c == '"') text += '"';
        text += c;
    }
    return text + "\"";
}

/// Tells sweeps apart that have the same columns. FNV-1a, because it must be the same in every build.
int fingerprint(std::string_view text) {
    std::uint64_t hash = 14695981039346656037ULL;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    return static_cast<int>((hash >> 33U) | 1U);
}

class SqliteFile final : public Sink {
  public:
    SqliteFile(Library library, std::string path, const ask::RowLayout& layout, RowRange rows)
        : sqlite_(library), path_(std::move(path)), layout_(layout), rows_(rows) {
        const auto& grid = *layout.grid;
        for (const ask::SetupAxis& axis : grid.setup_axes())
            columns_.push_back({axis.column, axis.numbers ? "NUMERIC" : "TEXT"});
        for (const ask::WorkAxis& axis : grid.work_axes()) {
            if (axis.shown) columns_.push_back({axis.column, "INTEGER"});
        }
        for (const ask::MetricColumn& metric : layout.metrics) {
            const bool text = metric.unit == ask::Unit::word;
            const bool whole = metric.unit == ask::Unit::flag || metric.unit == ask::Unit::count;
            columns_.push_back({metric.name, text ? "TEXT" : whole ? "INTEGER" : "REAL"});
        }
        // The last rows may be of any shard: which ones belongs to what the file is.
        identity_ = fingerprint(fmt::format("{} rows {} to {}", grid.definition(), rows.first, rows.last));
    }
    ~SqliteFile() override {
        if (insert_ != nullptr) sqlite_.finalize(insert_);
        if (database_ != nullptr) sqlite_.close(database_);
        if (!temporary_.empty()) ::unlink(temporary_.c_str());
    }

    std::size_t kept() const override { return kept_; }

    Result<void> open(bool overwrite) {
        const bool anew = overwrite || !exists(path_);
        if (anew) temporary_ = fmt::format("{}.{}.part", path_, ::getpid());
        const std::string& place = anew ? temporary_ : path_;
        const int how = sqlite::open_to_read_and_write | (anew ? sqlite::open_to_create : 0);
        if (sqlite_.open_v2(place.c_str(), &database_, how, nullptr) != sqlite::ok) return problem();
        if (anew) {
            // Nobody else sees this file, and it is of no use half written.
            if (auto done = execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF"); !done) return done;
            if (auto done = execute("BEGIN IMMEDIATE;" + table("main.sweep")); !done) return done;
            if (auto done = execute(fmt::format("PRAGMA user_version = {}", identity_)); !done) return done;
        } else {
            if (auto done = execute("BEGIN IMMEDIATE"); !done) return done;
            if (auto done = check(); !done) return done;
        }
        return prepare_insert("main.sweep", &insert_);
    }

    Result<void> write(std::string_view text) override {
        while (!text.empty()) {
            const std::size_t end = text.find('\n');
            if (auto done = insert(insert_, rows_.first + kept_ + written_ + 1, text.substr(0, end)); !done)
                return done;
            text.remove_prefix(end + 1);
            ++written_;
        }
        return {};
    }

    Result<void> close() override {
        if (auto done = execute("COMMIT"); !done) return done;
        sqlite_.finalize(insert_);
        insert_ = nullptr;
        const int closed = sqlite_.close(database_);
        database_ = nullptr;
        if (closed != sqlite::ok) return fail(fmt::format("{}: cannot be closed", path_));
        if (temporary_.empty()) return {};
        if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
            return fail(fmt::format("{}: cannot be written", path_));
        temporary_.clear();
        return {};
    }

  private:
    struct Column {
        std::string name;
        const char* type;
    };

    std::unexpected<Problem> problem() const {
        return fail(fmt::format("{}: {}", path_, database_ != nullptr ? sqlite_.errmsg(database_) : "out of memory"));
    }
    std::unexpected<Problem> other_sweep(std::string_view why) const {
        return fail(fmt::format("{}: {} (--overwrite starts anew)", path_, why));
    }
    Result<void> execute(const std::string& statements) {
        if (sqlite_.exec(database_, statements.c_str(), nullptr, nullptr, nullptr) != sqlite::ok) return problem();
        return {};
    }

    std::string table(std::string_view name) const {
        std::string text =
            fmt::format("CREATE {} {} (point INTEGER PRIMARY KEY", name.starts_with("main") ? "TABLE" : "TEMP TABLE",
                        name.substr(name.find('.') + 1));
        for (const Column& column : columns_) text += fmt::format(", {} {}", identifier(column.name), column.type);
        return text + ")";
    }

    Result<void> prepare_insert(std::string_view name, Statement** statement) {
        std::string text = fmt::format("INSERT INTO {} VALUES (?", name);
        for (std::size_t i = 0; i < columns_.size(); ++i) text += ", ?";
        text += ")";
        if (sqlite_.prepare_v2(database_, text.c_str(), -1, statement, nullptr) != sqlite::ok) return problem();
        return {};
    }

    /// Cells are text; the types of the columns turn them into numbers.
    Result<void> insert(Statement* statement, std::size_t point, std::string_view cells) {
        sqlite_.bind_int64(statement, 1, static_cast<long long>(point));
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            const std::string_view all = cells.substr(0, cells.find(ask::cell_separator));
            // SQLite knows no booleans but 1 and 0.
            const bool flag = i + layout_.metrics.size() >= columns_.size() &&
                              layout_.metrics[i + layout_.metrics.size() - columns_.size()].unit == ask::Unit::flag;
            const std::string_view cell = !flag || all.empty() ? all : all == "true" ? "1" : "0";
            const int place = static_cast<int>(i) + 2;
            if (cell.empty()) {
                sqlite_.bind_null(statement, place);
            } else {
                sqlite_.bind_text(statement, place, cell.data(), static_cast<int>(cell.size()), nullptr);
            }
            cells.remove_prefix(std::min(cells.size(), all.size() + 1));
        }
        if (sqlite_.step(statement) != sqlite::done) return problem();
        sqlite_.reset(statement);
        return {};
    }

    Result<long long> number(const std::string& query) {
        Statement* statement = nullptr;
        if (sqlite_.prepare_v2(database_, query.c_str(), -1, &statement, nullptr) != sqlite::ok) return problem();
        const bool there = sqlite_.step(statement) == sqlite::row;
        const long long value = there ? sqlite_.column_int64(statement, 0) : 0;
        sqlite_.finalize(statement);
        return value;
    }

    /// The same sweep by its fingerprint, its rows without a gap, and the first and last row what they are now.
    Result<void> check() {
        const auto version = number("PRAGMA user_version");
        if (!version) return std::unexpected(version.error());
        const auto tables = number("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'sweep'");
        if (!tables) return std::unexpected(tables.error());
        if (*tables == 0 || *version != identity_) return other_sweep("holds something else than this sweep");
        const auto rows = number("SELECT count(*) FROM sweep");
        if (!rows) return std::unexpected(rows.error());
        kept_ = static_cast<std::size_t>(*rows);
        if (kept_ == 0) return {};
        const auto first = number("SELECT min(point) FROM sweep");
        const auto last = number("SELECT max(point) FROM sweep");
        if (!first || !last) return problem();
        if (kept_ > rows_.size() || static_cast<std::size_t>(*first) != rows_.first + 1 ||
            static_cast<std::size_t>(*last) != rows_.first + kept_)
            return other_sweep("its points are not the first ones of this sweep");
        if (auto done = execute(table("temp.expected")); !done) return done;
        Statement* statement = nullptr;
        if (auto done = prepare_insert("temp.expected", &statement); !done) return done;
        ask::RowWriter writer(layout_);
        std::string text;
        Result<void> inserted;
        for (const std::size_t row : {rows_.first, rows_.first + kept_ - 1}) {
            text.clear();
            writer.append(row, text);
            text.pop_back();
            inserted = insert(statement, row + 1, text);
            if (!inserted || kept_ == 1) break;
        }
        sqlite_.finalize(statement);
        if (!inserted) return inserted;
        const auto different =
            number("SELECT count(*) FROM (SELECT * FROM temp.expected EXCEPT SELECT * FROM main.sweep)");
        if (!different) return other_sweep("has other columns than this sweep");
        if (*different > 0) return other_sweep("its rows are not what this sweep finds now");
        return execute("DROP TABLE temp.expected");
    }

    Library sqlite_;
    std::string path_;
    std::string temporary_;  // empty: an existing file is taken up, or the new one is in its place
    const ask::RowLayout& layout_;
    RowRange rows_;
    std::vector<Column> columns_;
    int identity_ = 0;
    sqlite::Database* database_ = nullptr;
    Statement* insert_ = nullptr;
    std::size_t kept_ = 0;
    std::size_t written_ = 0;
};

}  // namespace

Result<std::unique_ptr<Sink>> sqlite_sink(const std::string& path, const ask::RowLayout& layout, RowRange rows,
                                          bool overwrite) {
    if (is_folder(path)) return fail(fmt::format("{}: is a folder, expected a file name", path));
    const auto library = Library::load();
    if (!library)
        return std::unexpected(
            Problem{library.error().text + "; CSV and JSONL need nothing", library.error().unavailable});
    auto sink = std::make_unique<SqliteFile>(*library, path, layout, rows);
    if (auto done = sink->open(overwrite); !done) return std::unexpected(done.error());
    return sink;
}

}  // namespace roofline::cli
