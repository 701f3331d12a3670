#include "roofline/cli/streamed_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#include <fmt/format.h>

#include "roofline/cli/files.hpp"

namespace roofline::cli {

Result<void> write_streamed(const std::string& path, const std::function<bool(const TakeBytes&)>& fill) {
    if (is_folder(path)) return fail(fmt::format("{}: is a folder, expected a file name", path));
    const std::string temporary = fmt::format("{}.{}.part", path, ::getpid());
    std::FILE* file = std::fopen(temporary.c_str(), "wbx");
    if (file == nullptr) return fail(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
    int reason = 0;  // the first thing that went wrong
    const auto check = [&](bool fine) {
        if (!fine && reason == 0) reason = errno != 0 ? errno : EIO;
        return fine;
    };
    const bool filled = fill([&](std::span<const std::byte> bytes) {
        return check(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
    });
    check(std::fflush(file) == 0);
    check(std::fclose(file) == 0);
    if (filled && reason == 0 && check(std::rename(temporary.c_str(), path.c_str()) == 0)) return {};
    ::unlink(temporary.c_str());
    if (reason != 0) return fail(fmt::format("{}: cannot be written: {}", path, std::strerror(reason)));
    return fail(fmt::format("{}: stopped before it was whole; nothing was left", path));
}

}  // namespace roofline::cli
