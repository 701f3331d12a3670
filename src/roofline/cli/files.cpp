#include "roofline/cli/files.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace roofline::cli {
namespace {

std::unexpected<Problem> system_problem(const std::string& path, std::string_view what) {
    return fail(fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

struct Descriptor {
    int value;
    ~Descriptor() {
        if (value >= 0) ::close(value);
    }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (file.value < 0) return system_problem(path, "cannot be opened");
    struct stat status{};
    if (::fstat(file.value, &status) != 0) return system_problem(path, "cannot be looked at");
    if (S_ISDIR(status.st_mode)) return fail(fmt::format("{}: is a folder, expected a file", path));
    if (!S_ISREG(status.st_mode)) return fail(fmt::format("{}: is not a regular file", path));
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size == 0) return MappedFile(nullptr, 0);
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value, 0);
    if (data == MAP_FAILED) return system_problem(path, "cannot be mapped");
    ::madvise(data, size, MADV_RANDOM);  // no read-ahead into weights that nobody looks at
    return MappedFile(static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
    other.size_ = 0;
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<std::string> read_text(const std::string& path, std::size_t largest) {
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (file.value < 0) return system_problem(path, "cannot be opened");
    struct stat status{};
    if (::fstat(file.value, &status) == 0 && S_ISDIR(status.st_mode))
        return fail(fmt::format("{}: is a folder, expected a file", path));
    std::string text;
    std::array<char, 65536> buffer{};
    while (true) {
        const ssize_t got = ::read(file.value, buffer.data(), buffer.size());
        if (got < 0) return system_problem(path, "cannot be read");
        if (got == 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(got));
        if (text.size() > largest)
            return fail(fmt::format("{}: is larger than {} MB, expected a text file", path, largest / 1'000'000));
    }
}

namespace {

struct Beside {
    std::string name;
    std::FILE* file;
};

Result<Beside> open_beside(const std::string& path) {
    if (is_folder(path)) return fail(fmt::format("{}: is a folder, expected a file name", path));
    std::string temporary = fmt::format("{}.{}.part", path, ::getpid());
    std::FILE* file = std::fopen(temporary.c_str(), "wbx");
    if (file == nullptr) return system_problem(path, "cannot be written");
    return Beside{std::move(temporary), file};
}

}  // namespace

Result<void> can_be_written(const std::string& path) {
    const auto beside = open_beside(path);
    if (!beside) return std::unexpected(beside.error());
    std::fclose(beside->file);
    ::unlink(beside->name.c_str());
    return {};
}

Result<void> write_whole(const std::string& path, std::string_view text) {
    const auto beside = open_beside(path);
    if (!beside) return std::unexpected(beside.error());
    const auto& [temporary, file] = *beside;
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
    const bool closed = std::fclose(file) == 0;
    if (!written || !closed || std::rename(temporary.c_str(), path.c_str()) != 0) {
        auto problem = system_problem(path, "cannot be written");
        ::unlink(temporary.c_str());
        return problem;
    }
    return {};
}

bool exists(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
}

bool is_folder(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored);
}

std::string file_name(const std::string& path) {
    // "." and ".." go by the name of the folder they stand for.
    std::error_code ignored;
    auto parsed = std::filesystem::absolute(path, ignored).lexically_normal();
    if (!parsed.has_filename()) parsed = parsed.parent_path();
    return parsed.filename().string();
}

std::string folder_of(const std::string& path) {
    const auto parent = std::filesystem::path(path).parent_path().string();
    return parent.empty() ? "." : parent;
}

}  // namespace roofline::cli
