#include "roofline/analyze/input.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "roofline/analyze/decompress.hpp"

namespace roofline::analyze {
namespace {

class MemoryBytes final : public ByteSource {
  public:
    explicit MemoryBytes(std::string text) : text_(std::move(text)) {}
    Result<std::size_t> read(std::span<char> room) override {
        const std::size_t count = std::min(room.size(), text_.size() - at_);
        std::memcpy(room.data(), text_.data() + at_, count);
        at_ += count;
        return count;
    }
    std::uint64_t size() const override { return text_.size(); }
    std::uint64_t consumed() const override { return at_; }

  private:
    std::string text_;
    std::size_t at_ = 0;
};

class FileBytes final : public ByteSource {
  public:
    FileBytes(int descriptor, std::string path, std::uint64_t size)
        : descriptor_(descriptor), path_(std::move(path)), size_(size) {}
    FileBytes(const FileBytes&) = delete;
    FileBytes& operator=(const FileBytes&) = delete;
    ~FileBytes() override {
        if (descriptor_ > 0) ::close(descriptor_);
    }
    Result<std::size_t> read(std::span<char> room) override {
        while (true) {
            const ssize_t count = ::read(descriptor_, room.data(), room.size());
            if (count >= 0) {
                consumed_ += static_cast<std::uint64_t>(count);
                return static_cast<std::size_t>(count);
            }
            if (errno != EINTR) return fail(fmt::format("{}: cannot be read: {}", path_, std::strerror(errno)));
        }
    }
    std::uint64_t size() const override { return size_; }
    std::uint64_t consumed() const override { return consumed_; }

  private:
    int descriptor_;
    std::string path_;
    std::uint64_t size_;
    std::uint64_t consumed_ = 0;
};

}  // namespace

Input::Input(std::string name, std::unique_ptr<ByteSource> bytes, std::string path)
    : name_(std::move(name)), path_(std::move(path)), bytes_(std::move(bytes)) {}

Input Input::from_memory(std::string name, std::string text) {
    return {std::move(name), std::make_unique<MemoryBytes>(std::move(text))};
}

Result<std::string_view> Input::peek(std::size_t count) {
    if (taken_ > 0) {
        ahead_.erase(0, taken_);
        taken_ = 0;
    }
    while (ahead_.size() < count) {
        const std::size_t before = ahead_.size();
        ahead_.resize(count);
        const auto got = bytes_->read(std::span(ahead_).subspan(before));
        ahead_.resize(before + got.value_or(0));
        if (!got) return std::unexpected(got.error());
        if (*got == 0) break;
    }
    return std::string_view(ahead_).substr(0, count);
}

Result<std::size_t> Input::read(std::span<char> room) {
    std::size_t filled = std::min(room.size(), ahead_.size() - taken_);
    std::memcpy(room.data(), ahead_.data() + taken_, filled);
    taken_ += filled;
    if (taken_ == ahead_.size()) {
        ahead_ = {};
        taken_ = 0;
    }
    while (filled < room.size()) {
        const auto got = bytes_->read(room.subspan(filled));
        if (!got) return std::unexpected(got.error());
        if (*got == 0) break;
        filled += *got;
    }
    offset_ += filled;
    return filled;
}

Result<std::string> Input::rest(std::size_t largest) {
    constexpr std::size_t window = std::size_t{1} << 20U;
    std::string text;
    while (true) {
        const std::size_t before = text.size();
        text.resize(before + window);
        const auto got = read(std::span(text).subspan(before));
        text.resize(before + got.value_or(0));
        if (!got) return std::unexpected(got.error());
        if (*got < window) return text;
        if (text.size() > largest) {
            return fail(
                fmt::format("{}: more than {} MiB, which is too much for a file of this kind", name_, largest >> 20U));
        }
    }
}

std::optional<double> Input::progress() const {
    if (bytes_->size() == 0) return std::nullopt;
    return std::min(1.0, static_cast<double>(bytes_->consumed()) / static_cast<double>(bytes_->size()));
}

Result<std::unique_ptr<ByteSource>> open_file(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return fail(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
    struct stat facts = {};
    if (::fstat(descriptor, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        ::close(descriptor);
        return fail(fmt::format("{}: is a folder, not a file", path));
    }
    return std::make_unique<FileBytes>(descriptor, path, static_cast<std::uint64_t>(facts.st_size));
}

Result<Input> open_input(const std::string& path) {
    const bool piped = path == "-";
    const std::string name = piped ? "standard input" : path;
    std::unique_ptr<ByteSource> bytes;
    if (piped) {
        bytes = std::make_unique<FileBytes>(0, name, 0);
    } else {
        auto file = open_file(path);
        if (!file) return std::unexpected(file.error());
        bytes = std::move(*file);
    }
    auto plain = decompressed(std::move(bytes), name);
    if (!plain) return std::unexpected(plain.error());
    const bool itself = !piped && !(*plain)->packed();
    return Input(name, std::move(*plain), itself ? path : "");
}

}  // namespace roofline::analyze
