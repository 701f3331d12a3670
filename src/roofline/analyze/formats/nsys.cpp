// Nsight Systems, exported with `nsys export --type sqlite`: a database. What is read of it, times in nanoseconds:
//
//   CUPTI_ACTIVITY_KIND_KERNEL   start, end, deviceId, streamId, correlationId, demangledName -> StringIds,
//   graphNodeId? CUPTI_ACTIVITY_KIND_MEMCPY   start, end, deviceId, streamId, correlationId, bytes, copyKind
//   CUPTI_ACTIVITY_KIND_MEMSET   start, end, deviceId, streamId, correlationId, bytes
//   CUPTI_ACTIVITY_KIND_RUNTIME  start, end, globalTid, correlationId, nameId -> StringIds
//   NVTX_EVENTS                  start, end, globalTid, text or textId -> StringIds
//   TARGET_INFO_GPU              id, name
//
// No shapes: FLOPs and bytes need --model. SQLite is loaded when such a file is met.
#include <dlfcn.h>
#include <functional>
#include <type_traits>

#include <fmt/format.h>

#include "roofline/analyze/format.hpp"
#include "roofline/analyze/run.hpp"

namespace roofline::analyze {
namespace {

struct Database;
struct Statement;

bool recognises(std::string_view first_bytes) {
    return first_bytes.starts_with(std::string_view("SQLite format 3\0", 16));
}

struct Library {
    int (*open_v2)(const char*, Database**, int, const char*) = nullptr;
    int (*close)(Database*) = nullptr;
    int (*prepare_v2)(Database*, const char*, int, Statement**, const char**) = nullptr;
    int (*step)(Statement*) = nullptr;
    int (*finalize)(Statement*) = nullptr;
    long long (*column_int64)(Statement*, int) = nullptr;
    const unsigned char* (*column_text)(Statement*, int) = nullptr;
    const char* (*errmsg)(Database*) = nullptr;

    static Result<Library> load() {
        void* handle = nullptr;
        for (const char* name : {"libsqlite3.so.0", "libsqlite3.so", "libsqlite3.dylib"}) {
            handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
            if (handle != nullptr) break;
        }
        if (handle == nullptr) {
            return std::unexpected(
                Problem{"SQLite is not on this machine (Debian: apt-get install libsqlite3-0)", /*unavailable=*/true});
        }
        Library library;
        bool all = true;
        const auto find = [&](const char* name, auto& call) {
            call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(::dlsym(handle, name));
            all = all && call != nullptr;
        };
        find("sqlite3_open_v2", library.open_v2);
        find("sqlite3_close", library.close);
        find("sqlite3_prepare_v2", library.prepare_v2);
        find("sqlite3_step", library.step);
        find("sqlite3_finalize", library.finalize);
        find("sqlite3_column_int64", library.column_int64);
        find("sqlite3_column_text", library.column_text);
        find("sqlite3_errmsg", library.errmsg);
        if (!all) return fail("libsqlite3: is too old");
        return library;
    }
};

class File {
  public:
    File(Library library, Database* database) : library_(library), database_(database) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() { library_.close(database_); }

    /// Whether the query could be asked: exports leave out tables and columns of what was not traced.
    bool rows(const std::string& query, const std::function<void(Statement*)>& each) {
        Statement* statement = nullptr;
        if (library_.prepare_v2(database_, query.c_str(), -1, &statement, nullptr) != 0) return false;
        constexpr int row = 100;
        constexpr int done = 101;
        int state = library_.step(statement);
        for (; state == row; state = library_.step(statement)) each(statement);
        if (state != done) problem_ = library_.errmsg(database_);
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
    Database* database_;
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
    file.rows("SELECT start, end, deviceId, streamId, correlationId, bytes, copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY",
              [&](Statement* s) {
                  add(s, Ran::copy, copy_name(file.whole(s, 6)), static_cast<double>(file.whole(s, 5)), false);
              });
    file.rows("SELECT start, end, deviceId, streamId, correlationId, bytes FROM CUPTI_ACTIVITY_KIND_MEMSET",
              [&](Statement* s) { add(s, Ran::fill, "Memset", static_cast<double>(file.whole(s, 5)), false); });
}

void read_host(File& file, Timeline& timeline) {
    file.rows(
        "SELECT r.start, r.end, r.correlationId, r.globalTid, s.value FROM CUPTI_ACTIVITY_KIND_RUNTIME r "
        "LEFT JOIN StringIds s ON s.id = r.nameId",
        [&](Statement* s) {
            timeline.calls.push_back({file.whole(s, 0), file.whole(s, 1), timeline.id_of(file.whole(s, 2)),
                                      timeline.caller_of(timeline.texts.number_of(file.text(s, 4)),
                                                         static_cast<std::uint32_t>(file.whole(s, 3)))});
        });
    file.rows(
        "SELECT n.start, n.end, n.globalTid, COALESCE(n.text, s.value) FROM NVTX_EVENTS n "
        "LEFT JOIN StringIds s ON s.id = n.textId WHERE n.end IS NOT NULL",
        [&](Statement* s) {
            timeline.annotations.push_back({file.whole(s, 0), file.whole(s, 1),
                                            timeline.texts.number_of(file.text(s, 3)),
                                            static_cast<std::uint32_t>(file.whole(s, 2))});
        });
    file.rows("SELECT id, name FROM TARGET_INFO_GPU",
              [&](Statement* s) { timeline.devices[file.whole(s, 0)] = file.text(s, 1); });
}

Result<Analysis> read(Input& input, const Options& options) {
    if (input.path().empty())
        return fail(fmt::format("{}: a database must be a plain file: unpack it first", input.name()));
    const auto library = Library::load();
    if (!library) return std::unexpected(library.error());
    Database* database = nullptr;
    constexpr int read_only = 1;
    if (library->open_v2(input.path().c_str(), &database, read_only, nullptr) != 0) {
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
