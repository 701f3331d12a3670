// Nsight Systems, exported with `nsys export --type sqlite`: a database. What is read of it, times in nanoseconds:
//
//   CUPTI_ACTIVITY_KIND_KERNEL       start, end, deviceId, streamId, correlationId, demangledName -> StringIds,
//                                    graphNodeId?
//   CUPTI_ACTIVITY_KIND_GRAPH_TRACE  start, end, deviceId, streamId, correlationId: graphs that were traced whole
//   CUPTI_ACTIVITY_KIND_MEMCPY       start, end, deviceId, streamId, correlationId, bytes, copyKind
//   CUPTI_ACTIVITY_KIND_MEMSET       start, end, deviceId, streamId, correlationId, bytes
//   CUPTI_ACTIVITY_KIND_RUNTIME      start, end, globalTid, correlationId, nameId -> StringIds (and _DRIVER in old
//   ones) NVTX_EVENTS                      start, end, globalTid, text or textId? -> StringIds TARGET_INFO_GPU id, name
//   (TARGET_INFO_CUDA_GPU in old ones)
//
// Exports leave out tables of what was not traced, and columns came over the years. No shapes: FLOPs and bytes need
// --model. SQLite is loaded when such a file is met; it wants a file it can move about in, so what comes compressed or
// from a pipe is written to a temporary one first.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
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

    /// Whether the query could be asked: exports leave out tables and columns of what was not traced.
    bool rows(const std::string& query, const std::function<void(Statement*)>& each) {
        Statement* statement = nullptr;
        if (library_.prepare_v2(database_, query.c_str(), -1, &statement, nullptr) != 0) return false;
        int state = library_.step(statement);
        for (; state == sqlite::row; state = library_.step(statement)) each(statement);
        if (state != sqlite::done) problem_ = library_.errmsg(database_);
        library_.finalize(statement);
        return true;
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

void read_kernels(File& file, Timeline& timeline) {
    const auto add = [&](Statement* s, Ran ran, const std::string& name, double bytes, bool in_graph) {
        DeviceEvent event;
        event.begin = file.whole(s, 0);
        event.duration = std::max(0LL, file.whole(s, 1) - file.whole(s, 0));
        event.stream = timeline.stream_of(file.whole(s, 2), file.whole(s, 3));
        event.correlation = timeline.id_of(file.whole(s, 4));
        event.ran = ran;
        event.name = timeline.texts.number_of(name);
        event.size = timeline.size_of(bytes);
        event.in_graph = in_graph;
        timeline.ran.push_back(event);
    };
    const std::string kernels =
        "SELECT k.start, k.end, k.deviceId, k.streamId, k.correlationId, s.value, {} FROM CUPTI_ACTIVITY_KIND_KERNEL k "
        "LEFT JOIN StringIds s ON s.id = k.demangledName";
    const auto each = [&](Statement* s) { add(s, Ran::kernel, file.text(s, 5), 0.0, file.whole(s, 6) != 0); };
    if (!file.rows(fmt::format(fmt::runtime(kernels), "k.graphNodeId"), each))
        file.rows(fmt::format(fmt::runtime(kernels), "0"), each);
    double graphs = 0.0;
    file.rows("SELECT start, end, deviceId, streamId, correlationId FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
              [&](Statement* s) {
                  add(s, Ran::kernel, "CUDA graph, traced whole", 0.0, true);
                  ++graphs;
              });
    if (graphs > 0.0) {
        timeline.notes.push_back(
            fmt::format("{:.0f} launches of CUDA graphs were traced whole: record with --cuda-graph-trace=node to see "
                        "their kernels",
                        graphs));
    }
    file.rows("SELECT start, end, deviceId, streamId, correlationId, bytes, copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY",
              [&](Statement* s) {
                  add(s, Ran::copy, copy_name(file.whole(s, 6)), static_cast<double>(file.whole(s, 5)), false);
              });
    file.rows("SELECT start, end, deviceId, streamId, correlationId, bytes FROM CUPTI_ACTIVITY_KIND_MEMSET",
              [&](Statement* s) { add(s, Ran::fill, "Memset", static_cast<double>(file.whole(s, 5)), false); });
}

void read_host(File& file, Timeline& timeline) {
    for (const char* table : {"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"}) {
        const auto each = [&](Statement* s) {
            timeline.calls.push_back({file.whole(s, 0), file.whole(s, 1), timeline.id_of(file.whole(s, 2)),
                                      timeline.caller_of(timeline.texts.number_of(file.text(s, 4)),
                                                         static_cast<std::uint32_t>(file.whole(s, 3)))});
        };
        file.rows(fmt::format("SELECT r.start, r.end, r.correlationId, r.globalTid, s.value FROM {} r "
                              "LEFT JOIN StringIds s ON s.id = r.nameId",
                              table),
                  each);
    }
    const auto range = [&](Statement* s) {
        timeline.annotations.push_back({file.whole(s, 0), file.whole(s, 1), timeline.texts.number_of(file.text(s, 3)),
                                        static_cast<std::uint32_t>(file.whole(s, 2))});
    };
    // Marks have no end; in old exports it is zero.
    const bool named = file.rows(
        "SELECT n.start, n.end, n.globalTid, COALESCE(NULLIF(n.text, ''), s.value) FROM NVTX_EVENTS n "
        "LEFT JOIN StringIds s ON s.id = n.textId WHERE n.end > n.start",
        range);
    if (!named) file.rows("SELECT start, end, globalTid, text FROM NVTX_EVENTS WHERE end > start", range);
    for (const char* table : {"TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"}) {
        file.rows(fmt::format("SELECT id, name FROM {}", table),
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
    Timeline timeline;
    read_kernels(file, timeline);
    read_host(file, timeline);
    if (!file.problem().empty()) return fail(fmt::format("{}: {}", input.name(), file.problem()));
    if (timeline.ran.empty()) {
        return fail(
            fmt::format("{}: a database without kernels: expected the export of an Nsight Systems report traced with "
                        "-t cuda",
                        input.name()));
    }
    timeline.events = static_cast<double>(timeline.ran.size() + timeline.calls.size() + timeline.annotations.size());
    const double events = timeline.events;
    auto analysis = analyze_timeline(std::move(timeline), options, input.name());
    if (analysis) analysis->events = events;
    return analysis;
}

}  // namespace

Format nsys_format() {
    return {"Nsight Systems export", "nsys", recognises, read};
}

}  // namespace roofline::analyze
