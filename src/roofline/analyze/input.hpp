// A file as a stream of bytes: read in windows of any size, looked at before it is read, never whole in memory. Where
// the bytes come from (a plain file, memory, a pipe, something compressed) is the business of a ByteSource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "roofline/core/problem.hpp"

namespace roofline::analyze {

/// A source of bytes, read once from the front.
class ByteSource {
  public:
    virtual ~ByteSource() = default;
    /// Fills the front of `room` and says how many bytes it wrote; zero: the end.
    virtual Result<std::size_t> read(std::span<char> room) = 0;
    /// After the end: why it came earlier than it should have ("the gzip stream ends in the middle"). Empty: it did
    /// not.
    virtual std::string cut_short() const { return {}; }
    /// Bytes of the file behind it and how many of them were read so far, for progress; zero: unknown.
    virtual std::uint64_t size() const { return 0; }
    virtual std::uint64_t consumed() const { return 0; }
    /// The file behind it holds something else than these bytes.
    virtual bool packed() const { return false; }
};

class Input {
  public:
    /// `path`: a plain file that a library may open by itself; empty where there is none.
    Input(std::string name, std::unique_ptr<ByteSource> bytes, std::string path = {});
    static Input from_memory(std::string name, std::string text);

    const std::string& name() const { return name_; }  // as the user typed it, for messages
    const std::string& path() const { return path_; }

    /// The next bytes without taking them: up to `count`, fewer at the end. Valid until the next call.
    Result<std::string_view> peek(std::size_t count);
    /// Fills `room` from the front and says how many bytes there were: fewer than asked for only at the end.
    Result<std::size_t> read(std::span<char> room);
    /// Everything that is left, for formats whose files are small; a problem where it is more than `largest`.
    Result<std::string> rest(std::size_t largest = std::size_t{256} << 20U);

    std::uint64_t offset() const { return offset_; }  // of the next byte to be read, after decompression
    std::string cut_short() const { return bytes_->cut_short(); }
    /// How much of the file was read, 0 to 1, where that is known.
    std::optional<double> progress() const;

  private:
    std::string name_;
    std::string path_;
    std::unique_ptr<ByteSource> bytes_;
    std::string ahead_;  // what was peeked at and not read yet, from `taken_` on
    std::size_t taken_ = 0;
    std::uint64_t offset_ = 0;
};

/// A file, plain or compressed, or "-" for standard input.
Result<Input> open_input(const std::string& path);

/// A plain file as bytes.
Result<std::unique_ptr<ByteSource>> open_file(const std::string& path);

}  // namespace roofline::analyze
