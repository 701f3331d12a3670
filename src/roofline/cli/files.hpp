// Files of this machine: mapped for reading, written whole or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "roofline/core/problem.hpp"

namespace roofline::cli {

/// A file mapped into memory: only the pages that are looked at are read, so a header of a file of hundreds of
/// gigabytes costs a few kilobytes.
class MappedFile {
  public:
    static Result<MappedFile> open(const std::string& path);
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&&) = delete;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    std::span<const std::byte> bytes() const { return {data_, size_}; }

  private:
    MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}
    const std::byte* data_;
    std::size_t size_;
};

Result<std::string> read_text(const std::string& path, std::size_t largest = 64U << 20U);

/// Whether `write_whole` could write there: whoever works for long finds out before. Nothing is left behind.
Result<void> can_be_written(const std::string& path);

/// To a file beside it first, then renamed: a reader never sees half of it.
Result<void> write_whole(const std::string& path, std::string_view text);

bool exists(const std::string& path);
bool is_folder(const std::string& path);
std::string file_name(const std::string& path);
std::string folder_of(const std::string& path);

}  // namespace roofline::cli
