// Nsight Systems, exported with `nsys export --type sqlite`: a database. What is read of it, times in nanoseconds:
//
//   CUPTI_ACTIVITY_KIND_KERNEL       start, end, deviceId, streamId, correlationId, demangledName or shortName or
//                                    mangledName -> StringIds, graphNodeId, globalPid
//   CUPTI_ACTIVITY_KIND_GRAPH_TRACE  start, end, deviceId, streamId, correlationId: graphs that were traced whole
//   CUPTI_ACTIVITY_KIND_MEMCPY       start, end, deviceId, streamId, correlationId, bytes, copyKind
//   CUPTI_ACTIVITY_KIND_MEMSET       start, end, deviceId, streamId, correlationId, bytes
//   CUPTI_ACTIVITY_KIND_RUNTIME      start, end, globalTid, correlationId, nameId -> StringIds (and _DRIVER in old
//   ones) NVTX_EVENTS                      start, end, globalTid, text or textId -> StringIds TARGET_INFO_GPU id, name
//   (TARGET_INFO_CUDA_GPU in old ones)
//
// Exports leave out tables of what was not traced, and columns came and went over the years: of all these only start
// and end must be there. No shapes: FLOPs and bytes need --model. SQLite is loaded when such a file is met; it wants a
// file it can move about in, so what comes compressed or from a pipe is written to a temporary one first.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "roofline/analyze/format.hpp"
#include "roofline/analyze/run.hpp"
#include "roofline/analyze/sqlite.hpp"

namespace roofline::analyze {
namespace {

using sqlite::Library;
using sqlite::Statement;

bool recognises(std::string_view first_bytes) {
    return first_bytes.starts_with(std::string_view("SQLite format 3\0", 16));
}

class File {
  public:
    File(Library library, sqlite::Database* database) : library_(library), database_(database) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() { library_.close(database_); }

    /// Of a file that is shorter than it says: SQLite refuses it, unless it is told that its tables may be broken.
    void bear_with_cuts() { library_.exec(database_, "PRAGMA writable_schema = ON", nullptr, nullptr, nullptr); }

    /// A query that cannot be asked has no rows.
    void rows(const std::string& query, const std::function<void(Statement*)>& each) {
        Statement* statement = nullptr;
        const int asked = library_.prepare_v2(database_, query.c_str(), -1, &statement, nullptr);
        if (asked == sqlite::corrupt || asked == sqlite::no_database) problem_ = library_.errmsg(database_);
        if (asked != sqlite::ok) return;
        int state = library_.step(statement);
        for (; state == sqlite::row; state = library_.step(statement)) each(statement);
        if (state != sqlite::done) problem_ = library_.errmsg(database_);
        library_.finalize(statement);
    }
    bool has(const std::string& table, const std::string& column) {
        const auto [place, fresh] = columns_.try_emplace(table);
        if (fresh) rows("PRAGMA table_info(" + table + ")", [&](Statement* s) { place->second.insert(text(s, 1)); });
        return place->second.contains(column);
    }
    /// The column of a table, under the name `t` in a query, or what stands for one that is not there.
    std::string column(const std::string& table, const char* name, const char* otherwise) {
        return has(table, name) ? std::string("t.") + name : otherwise;
    }
    /// The first of these columns that names something: by its number in StringIds, or by the text itself.
    std::string named(const std::string& table, std::initializer_list<const char*> names) {
        std::string choices;
        for (const char* name : names) {
            if (!has(table, name)) continue;
            const std::string by_number =
                has("StringIds", "value") ? fmt::format("(SELECT value FROM StringIds WHERE id = t.{})", name) : "''";
            choices += fmt::format(
                "NULLIF(CASE typeof(t.{0}) WHEN 'text' THEN t.{0} WHEN 'integer' THEN {1} END, ''), ", name, by_number);
        }
        return "COALESCE(" + choices + "'', '')";
    }
    long long whole(Statement* statement, int column) const { return library_.column_int64(statement, column); }
    std::string text(Statement* statement, int column) const {
        const unsigned char* text = library_.column_text(statement, column);
        return text == nullptr ? std::string() : reinterpret_cast<const char*>(text);
    }
    const std::string& problem() const { return problem_; }

  private:
    Library library_;
    sqlite::Database* database_;
    std::string problem_;
    std::map<std::string, std::set<std::string>> columns_;  // by table
};

std::string copy_name(long long kind) {
    switch (kind) {
        case 1:
            return "Memcpy HtoD";
        case 2:
            return "Memcpy DtoH";
        case 8:
            return "Memcpy DtoD";
        case 10:
            return "Memcpy PtoP";
        default:
            return "Memcpy";
    }
}

/// Numbers of calls are those of a process: where a file holds several, the process tells them apart.
class Processes {
  public:
    /// In exports that do not say so of kernels, nothing can be told apart.
    explicit Processes(bool told) : told_(told) {}
    std::uint32_t id(Timeline& timeline, long long number, long long process) {
        if (number < 0) return none;
        if (!told_) process = 0;
        const auto [place, fresh] =
            known_.try_emplace(process >> 24U, static_cast<std::int64_t>(known_.size() & 0xFFFFFU));
        return timeline.id_of((place->second << 40U) + (number & ((std::int64_t{1} << 40U) - 1)));
    }

  private:
    bool told_;
    std::map<long long, std::int64_t> known_;  // by the process part of globalPid and globalTid
};

/// start, end, device, stream, number, process of what ran; then more.
std::string what_ran(File& file, const std::string& table, const std::string& more) {
    return fmt::format("SELECT t.start, t.end, {}, {}, {}, {}, {} FROM {} t", file.column(table, "deviceId", "0"),
                       file.column(table, "streamId", "0"), file.column(table, "correlationId", "-1"),
                       file.column(table, "globalPid", "0"), more, table);
}

void read_kernels(File& file, Timeline& timeline, Processes& processes) {
    const auto add = [&](Statement* s, Ran ran, const std::string& name, double bytes, bool in_graph) {
        DeviceEvent event;
        event.begin = file.whole(s, 0);
        event.duration = std::max(0LL, file.whole(s, 1) - file.whole(s, 0));
        event.stream = timeline.stream_of(file.whole(s, 2), file.whole(s, 3));
        event.correlation = processes.id(timeline, file.whole(s, 4), file.whole(s, 5));
        event.ran = ran;
        event.name = timeline.texts.number_of(name);
        event.size = timeline.size_of(std::max(0.0, bytes));
        event.in_graph = in_graph;
        timeline.ran.push_back(event);
    };
    const std::string kernels = "CUPTI_ACTIVITY_KIND_KERNEL";
    file.rows(what_ran(file, kernels,
                       file.column(kernels, "graphNodeId", "0") + ", " +
                           file.named(kernels, {"demangledName", "shortName", "mangledName", "name"})),
              [&](Statement* s) { add(s, Ran::kernel, file.text(s, 7), 0.0, file.whole(s, 6) != 0); });
    double graphs = 0.0;
    file.rows(what_ran(file, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "0"), [&](Statement* s) {
        add(s, Ran::kernel, "CUDA graph, traced whole", 0.0, true);
        ++graphs;
    });
    if (graphs > 0.0) {
        timeline.notes.push_back(
            fmt::format("{:.0f} launches of CUDA graphs were traced whole: record with --cuda-graph-trace=node to see "
                        "their kernels",
                        graphs));
    }
    const std::string copies = "CUPTI_ACTIVITY_KIND_MEMCPY";
    file.rows(what_ran(file, copies, file.column(copies, "bytes", "0") + ", " + file.column(copies, "copyKind", "0")),
              [&](Statement* s) {
                  add(s, Ran::copy, copy_name(file.whole(s, 7)), static_cast<double>(file.whole(s, 6)), false);
              });
    const std::string fills = "CUPTI_ACTIVITY_KIND_MEMSET";
    file.rows(what_ran(file, fills, file.column(fills, "bytes", "0")),
              [&](Statement* s) { add(s, Ran::fill, "Memset", static_cast<double>(file.whole(s, 6)), false); });
}

void read_host(File& file, Timeline& timeline, Processes& processes) {
    for (const std::string table : {"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"}) {
        file.rows(fmt::format("SELECT t.start, t.end, {}, {}, {} FROM {} t", file.column(table, "correlationId", "-1"),
                              file.column(table, "globalTid", "0"), file.named(table, {"nameId", "name"}), table),
                  [&](Statement* s) {
                      const std::uint32_t id = processes.id(timeline, file.whole(s, 2), file.whole(s, 3));
                      if (id == none) return;
                      timeline.calls.push_back({file.whole(s, 0), file.whole(s, 1), id,
                                                timeline.caller_of(timeline.texts.number_of(file.text(s, 4)),
                                                                   static_cast<std::uint32_t>(file.whole(s, 3)))});
                  });
    }
    const std::string ranges = "NVTX_EVENTS";
    // Marks have no end; in old exports it is zero.
    file.rows(
        fmt::format("SELECT t.start, t.end, {}, {} FROM {} t WHERE t.end > t.start",
                    file.column(ranges, "globalTid", "0"), file.named(ranges, {"text", "textId", "name"}), ranges),
        [&](Statement* s) {
            timeline.annotations.push_back({file.whole(s, 0), file.whole(s, 1),
                                            timeline.texts.number_of(file.text(s, 3)),
                                            static_cast<std::uint32_t>(file.whole(s, 2))});
        });
    for (const char* table : {"TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"}) {
        file.rows(fmt::format("SELECT {}, t.name FROM {} t", file.column(table, "id", "0"), table),
                  [&](Statement* s) { timeline.devices[file.whole(s, 0)] = file.text(s, 1); });
    }
}

/// A file that is gone when it is no longer needed.
class Temporary {
  public:
    Temporary() {
        const char* asked = std::getenv("TMPDIR");
        for (const char* folder : {asked, "/var/tmp", "/tmp"}) {
            if (folder == nullptr || *folder == '\0' || file_ >= 0) continue;
            path_ = std::string(folder) + "/roofline-XXXXXX";
            file_ = ::mkstemp(path_.data());
        }
    }
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;
    ~Temporary() {
        if (file_ < 0) return;
        ::close(file_);
        ::unlink(path_.c_str());
    }
    const std::string& path() const { return path_; }

    Result<void> take(Input& input) {
        std::vector<char> room(std::size_t{1} << 20U);
        while (true) {
            const auto count = input.read(room);
            if (!count) return std::unexpected(count.error());
            if (*count == 0) return {};
            for (std::size_t written = 0; written < *count;) {
                const auto now = ::write(file_, room.data() + written, *count - written);
                if (now <= 0)
                    return fail(
                        fmt::format("{}: a database that must be unpacked to a temporary file, and there is no "
                                    "room for it (TMPDIR says where)",
                                    input.name()));
                written += static_cast<std::size_t>(now);
            }
        }
    }

  private:
    std::string path_;
    int file_ = -1;
};

/// What the first hundred bytes say of the file's size, and what it has. All numbers are big-endian: the size of a page
/// at 16 (1 means 65,536), the count of pages at 28, which holds if the numbers of changes at 24 and 92 are the same.
struct Sizes {
    std::uint64_t found = 0;
    std::uint64_t page = 0;
    std::uint64_t pages = 0;  // zero: not said

    bool cut() const { return found < page * pages; }
};

Sizes sizes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::array<unsigned char, 100> header{};
    Sizes sizes;
    const bool whole = static_cast<bool>(file.read(reinterpret_cast<char*>(header.data()), header.size()));
    file.clear();
    file.seekg(0, std::ios::end);
    sizes.found = static_cast<std::uint64_t>(std::max<std::streamoff>(0, file.tellg()));
    if (!whole) {
        sizes.page = header.size();
        sizes.pages = 1;
        return sizes;
    }
    const auto number = [&](std::size_t at, std::size_t bytes) {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < bytes; ++i) value = value << 8U | header[at + i];
        return value;
    };
    sizes.page = number(16, 2) == 1 ? 65536 : number(16, 2);
    if (number(24, 4) == number(92, 4)) sizes.pages = number(28, 4);
    return sizes;
}

Result<Analysis> read(Input& input, const Options& options) {
    std::optional<Temporary> unpacked;
    std::string path = input.path();
    if (path.empty()) {
        unpacked.emplace();
        if (auto taken = unpacked->take(input); !taken) return std::unexpected(taken.error());
        path = unpacked->path();
    }
    const auto library = Library::load();
    if (!library) return std::unexpected(library.error());
    sqlite::Database* database = nullptr;
    if (library->open_v2(path.c_str(), &database, sqlite::open_to_read, nullptr) != sqlite::ok) {
        library->close(database);
        return fail(fmt::format("{}: SQLite cannot open it", input.name()));
    }
    File file(*library, database);
    const Sizes sizes = sizes_of(path);
    const std::string cut = sizes.pages > 1
                                ? fmt::format("cut off at byte {}, expected {} ({} pages of {})", sizes.found,
                                              sizes.page * sizes.pages, sizes.pages, sizes.page)
                                : fmt::format("cut off at byte {}, expected at least {}", sizes.found, sizes.page);
    if (sizes.cut()) file.bear_with_cuts();
    Timeline timeline;
    Processes processes(file.has("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid"));
    read_kernels(file, timeline, processes);
    read_host(file, timeline, processes);
    if (sizes.cut()) {
        if (timeline.ran.empty()) return fail(fmt::format("{}: {}: no kernel can be read", input.name(), cut));
        timeline.notes.push_back(fmt::format("the database is {}: this is about what could be read of it", cut));
    } else if (!file.problem().empty()) {
        return fail(fmt::format("{}: {}", input.name(), file.problem()));
    }
    if (timeline.ran.empty()) {
        return fail(
            fmt::format("{}: a database without kernels: expected the export of an Nsight Systems report traced with "
                        "-t cuda",
                        input.name()));
    }
    timeline.events = static_cast<double>(timeline.ran.size() + timeline.calls.size() + timeline.annotations.size());
    const double events = timeline.events;
    auto analysis = analyze_timeline(std::move(timeline), options, input.name());
    if (analysis) {
        analysis->events = events;
        analysis->partial = sizes.cut();
    }
    return analysis;
}

}  // namespace

Format nsys_format() {
    return {"Nsight Systems export", "nsys", recognises, read};
}

}  // namespace roofline::analyze
