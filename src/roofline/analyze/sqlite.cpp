#include "roofline/analyze/sqlite.hpp"

#include <dlfcn.h>
#include <type_traits>

namespace roofline::sqlite {

Result<Library> Library::load() {
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
    find("sqlite3_exec", library.exec);
    find("sqlite3_prepare_v2", library.prepare_v2);
    find("sqlite3_bind_text", library.bind_text);
    find("sqlite3_bind_null", library.bind_null);
    find("sqlite3_bind_int64", library.bind_int64);
    find("sqlite3_step", library.step);
    find("sqlite3_reset", library.reset);
    find("sqlite3_finalize", library.finalize);
    find("sqlite3_column_int64", library.column_int64);
    find("sqlite3_column_text", library.column_text);
    find("sqlite3_errmsg", library.errmsg);
    if (!all) return fail("libsqlite3: is too old");
    return library;
}

}  // namespace roofline::sqlite
