// CSV and JSONL: to stdout, or to a file that grows row by row. The file needs no second one to be taken up again: its
// rows say how far it got, and what it holds is checked against what this sweep would have written.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "roofline/cli/files.hpp"
#include "roofline/cli/sweep/sinks.hpp"
#include "roofline/io/tensors.hpp"

namespace roofline::cli {
namespace {

class StandardOutput final : public Sink {
  public:
    Result<void> write(std::string_view text) override {
        if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) return fail("stdout: cannot be written");
        return {};
    }
    Result<void> close() override {
        if (std::fflush(stdout) != 0) return fail("stdout: cannot be written");
        return {};
    }
};

class GrowingFile final : public Sink {
  public:
    explicit GrowingFile(std::string path) : path_(std::move(path)) {}
    ~GrowingFile() override {
        if (file_ >= 0) ::close(file_);
    }

    Result<void> open(const ask::RowLayout& layout, RowRange rows, bool overwrite) {
        file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (file_ < 0) return problem("cannot be written");
        struct stat status{};
        if (::fstat(file_, &status) != 0) return problem("cannot be looked at");
        if (!S_ISREG(status.st_mode)) return write(layout.header());  // a pipe or a terminal: nothing to take up
        if (::flock(file_, LOCK_EX | LOCK_NB) != 0)
            return fail(fmt::format("{}: is being written by another run", path_));
        std::size_t keep = 0;
        if (status.st_size > 0 && !overwrite) {
            auto checked = check(layout, rows);
            if (!checked) return std::unexpected(checked.error());
            keep = *checked;
        }
        if (::ftruncate(file_, static_cast<off_t>(keep)) != 0 || ::lseek(file_, 0, SEEK_END) < 0)
            return problem("cannot be written");
        return keep == 0 ? write(layout.header()) : Result<void>{};
    }

    std::size_t kept() const override { return kept_; }

    Result<void> write(std::string_view text) override {
        while (!text.empty()) {
            const ssize_t written = ::write(file_, text.data(), text.size());
            if (written < 0 && errno == EINTR) continue;
            if (written <= 0) return problem("cannot be written");
            text.remove_prefix(static_cast<std::size_t>(written));
        }
        return {};
    }
    Result<void> close() override {
        const int closed = ::close(file_);
        file_ = -1;
        return closed == 0 ? Result<void>{} : problem("cannot be written");
    }

  private:
    std::unexpected<Problem> problem(std::string_view what) const {
        return fail(fmt::format("{}: {}: {}", path_, what, std::strerror(errno)));
    }
    std::unexpected<Problem> other_sweep(std::size_t line, std::string_view found, std::string_view expected) const {
        return fail(fmt::format("{}: line {}: found \"{}\", expected \"{}\" of this sweep (--overwrite starts anew)",
                                path_, line, io::printable(found), io::printable(expected)));
    }

    /// How many bytes of the file are the beginning of this sweep: all lines but a last one that was cut short. Every
    /// row must be of the right point, and the first and the last be what they are now, to the digit.
    Result<std::size_t> check(const ask::RowLayout& layout, RowRange rows) {
        const auto file = MappedFile::open(path_);
        if (!file) return std::unexpected(file.error());
        const std::string_view all(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
        std::string_view rest = all;
        std::size_t line = 0;
        const auto next = [&](std::string_view& text) {
            const std::size_t end = rest.find('\n');
            if (end == std::string_view::npos) return false;
            text = rest.substr(0, end + 1);
            rest.remove_prefix(end + 1);
            ++line;
            return true;
        };
        std::string_view found;
        if (const std::string header = layout.header(); !header.empty()) {
            if (!next(found)) {
                if (header.starts_with(all)) return 0;
                return other_sweep(1, all.substr(0, all.find('\n')), header);
            }
            if (found != header) return other_sweep(line, found, header);
        }
        ask::RowWriter writer(layout);
        std::string expected;
        std::string_view last;
        while (next(found)) {
            if (kept_ == rows.size())
                return fail(fmt::format("{}: holds more than the {} rows of this sweep (--overwrite starts anew)",
                                        path_, rows.size()));
            expected.clear();
            kept_ == 0 ? writer.append(rows.first, expected) : writer.append_axes(rows.first + kept_, expected);
            if (kept_ == 0 ? found != expected : !found.starts_with(expected))
                return other_sweep(line, found, expected);
            last = found;
            ++kept_;
        }
        if (kept_ > 1) {
            expected.clear();
            writer.append(rows.first + kept_ - 1, expected);
            if (last != expected) return other_sweep(line, last, expected);
        }
        const std::size_t keep = all.size() - rest.size();
        // What is cut off must be the beginning of a row of ours, and not something that nobody should lose.
        if (!rest.empty()) {
            expected.clear();
            if (kept_ < rows.size()) writer.append(rows.first + kept_, expected);
            if (!expected.starts_with(rest)) return other_sweep(line + 1, rest.substr(0, 80), expected);
        }
        return keep;
    }

    std::string path_;
    int file_ = -1;
    std::size_t kept_ = 0;
};

}  // namespace

Result<std::unique_ptr<Sink>> text_sink(const ask::RowLayout& layout) {
    auto sink = std::make_unique<StandardOutput>();
    if (auto done = sink->write(layout.header()); !done) return std::unexpected(done.error());
    return sink;
}

Result<std::unique_ptr<Sink>> file_sink(const std::string& path, const ask::RowLayout& layout, RowRange rows,
                                        bool overwrite) {
    if (is_folder(path)) return fail(fmt::format("{}: is a folder, expected a file name", path));
    auto sink = std::make_unique<GrowingFile>(path);
    if (auto done = sink->open(layout, rows, overwrite); !done) return std::unexpected(done.error());
    return sink;
}

}  // namespace roofline::cli
