// SQLite's library, loaded when it is needed: its interface has been the same for twenty years, so the few calls are
// declared here and the program builds and starts without it. Exports of profilers are read with it, sweeps are
// written.
#pragma once

#include "roofline/core/problem.hpp"

namespace roofline::sqlite {

struct Database;
struct Statement;

inline constexpr int ok = 0;
inline constexpr int corrupt = 11;
inline constexpr int no_database = 26;
inline constexpr int row = 100;
inline constexpr int done = 101;
inline constexpr int open_to_read = 0x1;
inline constexpr int open_to_read_and_write = 0x2;
inline constexpr int open_to_create = 0x4;

/// The functions by their names, without `sqlite3_`.
struct Library {
    int (*open_v2)(const char*, Database**, int, const char*) = nullptr;
    int (*close)(Database*) = nullptr;
    int (*exec)(Database*, const char*, int (*)(void*, int, char**, char**), void*, char**) = nullptr;
    int (*prepare_v2)(Database*, const char*, int, Statement**, const char**) = nullptr;
    int (*bind_text)(Statement*, int, const char*, int, void (*)(void*)) = nullptr;
    int (*bind_null)(Statement*, int) = nullptr;
    int (*bind_int64)(Statement*, int, long long) = nullptr;
    int (*step)(Statement*) = nullptr;
    int (*reset)(Statement*) = nullptr;
    int (*finalize)(Statement*) = nullptr;
    long long (*column_int64)(Statement*, int) = nullptr;
    const unsigned char* (*column_text)(Statement*, int) = nullptr;
    const char* (*errmsg)(Database*) = nullptr;

    /// A problem that says what to install where the library is not here.
    static Result<Library> load();
};

}  // namespace roofline::sqlite
