#include "roofline/analyze/decompress.hpp"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>
#include <vector>

#include <fmt/format.h>

namespace roofline::analyze {
namespace {

// ---- the libraries, loaded when a compressed file is met: both interfaces have been the same for many years ----

/// zlib's z_stream.
struct ZlibStream {
    const unsigned char* next_in;
    unsigned int avail_in;
    unsigned long total_in;
    unsigned char* next_out;
    unsigned int avail_out;
    unsigned long total_out;
    const char* msg;
    void* state;
    void* (*zalloc)(void*, unsigned int, unsigned int);
    void (*zfree)(void*, void*);
    void* opaque;
    int data_type;
    unsigned long adler;
    unsigned long reserved;
};

struct Zlib {
    int (*inflate_init)(ZlibStream*, int, const char*, int) = nullptr;
    int (*inflate)(ZlibStream*, int) = nullptr;
    int (*inflate_reset)(ZlibStream*) = nullptr;
    int (*inflate_end)(ZlibStream*) = nullptr;
};
constexpr int zlib_ok = 0;
constexpr int zlib_end = 1;
constexpr int zlib_no_progress = -5;
constexpr int zlib_gzip_window = 15 + 16;  // the largest window, with gzip's header and check sum

struct ZstdIn {
    const void* src;
    std::size_t size;
    std::size_t pos;
};
struct ZstdOut {
    void* dst;
    std::size_t size;
    std::size_t pos;
};

struct Zstd {
    void* (*create)() = nullptr;
    std::size_t (*free)(void*) = nullptr;
    std::size_t (*decompress)(void*, ZstdOut*, ZstdIn*) = nullptr;
    unsigned (*is_error)(std::size_t) = nullptr;
    const char* (*error_name)(std::size_t) = nullptr;
};

struct Symbol {
    const char* name;
    void** call;
};

bool load(std::initializer_list<const char*> files, std::initializer_list<Symbol> symbols) {
    for (const char* file : files) {
        void* handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) continue;
        bool all = true;
        for (const Symbol& symbol : symbols) {
            *symbol.call = ::dlsym(handle, symbol.name);
            all = all && *symbol.call != nullptr;
        }
        if (all) return true;
    }
    return false;
}

const Zlib* zlib() {
    static Zlib library;
    static const bool there = load({"libz.so.1", "libz.so", "libz.dylib"},
                                   {{"inflateInit2_", reinterpret_cast<void**>(&library.inflate_init)},
                                    {"inflate", reinterpret_cast<void**>(&library.inflate)},
                                    {"inflateReset", reinterpret_cast<void**>(&library.inflate_reset)},
                                    {"inflateEnd", reinterpret_cast<void**>(&library.inflate_end)}});
    return there ? &library : nullptr;
}

const Zstd* zstd() {
    static Zstd library;
    static const bool there = load({"libzstd.so.1", "libzstd.so", "libzstd.dylib"},
                                   {{"ZSTD_createDStream", reinterpret_cast<void**>(&library.create)},
                                    {"ZSTD_freeDStream", reinterpret_cast<void**>(&library.free)},
                                    {"ZSTD_decompressStream", reinterpret_cast<void**>(&library.decompress)},
                                    {"ZSTD_isError", reinterpret_cast<void**>(&library.is_error)},
                                    {"ZSTD_getErrorName", reinterpret_cast<void**>(&library.error_name)}});
    return there ? &library : nullptr;
}

// ---- the streams ----

/// What two formats share: a window of compressed bytes, and an eye on how much they grow.
class Unpacked : public ByteSource {
  public:
    Unpacked(std::unique_ptr<ByteSource> bytes, std::string name, GrowthLimit limit)
        : bytes_(std::move(bytes)), name_(std::move(name)), limit_(limit), window_(std::size_t{256} << 10U) {}

    Result<std::size_t> read(std::span<char> room) final {
        while (!finished_ && !room.empty()) {
            if (begin_ == end_) {
                const auto got = bytes_->read(window_);
                if (!got) return std::unexpected(got.error());
                begin_ = 0;
                end_ = *got;
                if (*got == 0) {
                    finished_ = true;
                    cut_ = inside_ || produced_ == 0;
                    break;
                }
            }
            const std::size_t before = begin_;
            const auto made = unpack(room);
            if (!made) return std::unexpected(made.error());
            eaten_ += begin_ - before;
            produced_ += *made;
            if (produced_ > limit_.free_bytes && produced_ / limit_.largest_growth > eaten_) {
                return fail(fmt::format(
                    "{}: the first {} bytes of this {} file unpack to more than {} MiB, over {} times as much: refused",
                    name_, eaten_, kind(), produced_ >> 20U, limit_.largest_growth));
            }
            if (*made > 0) return made;
        }
        return std::size_t{0};
    }

    std::string cut_short() const final {
        if (cut_)
            return fmt::format("the {} stream ends in the middle, after {} bytes ({} unpacked)", kind(), eaten_,
                               produced_);
        return trailing_ ? fmt::format("something that is not {} follows byte {}", kind(), eaten_) : "";
    }
    std::uint64_t size() const final { return bytes_->size(); }
    std::uint64_t consumed() const final { return bytes_->consumed(); }
    bool packed() const final { return true; }

  protected:
    virtual std::string_view kind() const = 0;
    /// Turns bytes from `begin_` on into bytes in `room`; says how many.
    virtual Result<std::size_t> unpack(std::span<char> room) = 0;
    std::unexpected<Problem> damaged(std::string_view what) const {
        return fail(
            fmt::format("{}: damaged {} data near byte {}: {}", name_, kind(), eaten_ + begin_ - start_of_call_, what));
    }

    std::unique_ptr<ByteSource> bytes_;
    std::string name_;
    GrowthLimit limit_;
    std::vector<char> window_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::size_t start_of_call_ = 0;
    std::uint64_t eaten_ = 0;
    std::uint64_t produced_ = 0;
    bool inside_ = true;  // a member or frame was begun and not ended
    bool finished_ = false;
    bool cut_ = false;
    bool trailing_ = false;
};

class Gunzipped final : public Unpacked {
  public:
    Gunzipped(std::unique_ptr<ByteSource> bytes, std::string name, GrowthLimit limit, const Zlib& library)
        : Unpacked(std::move(bytes), std::move(name), limit), library_(library) {
        ready_ =
            library_.inflate_init(&stream_, zlib_gzip_window, "1", static_cast<int>(sizeof(ZlibStream))) == zlib_ok;
    }
    Gunzipped(const Gunzipped&) = delete;
    Gunzipped& operator=(const Gunzipped&) = delete;
    ~Gunzipped() override {
        if (ready_) library_.inflate_end(&stream_);
    }

  private:
    std::string_view kind() const override { return "gzip"; }
    Result<std::size_t> unpack(std::span<char> room) override {
        start_of_call_ = begin_;
        if (!ready_) return damaged("zlib could not start");
        if (!inside_) {  // between members: another one, zeros that fill a block of a tape, or something else
            while (begin_ < end_ && window_[begin_] == '\0') ++begin_;
            if (begin_ == end_) return std::size_t{0};
            if (static_cast<unsigned char>(window_[begin_]) != 0x1f) {
                trailing_ = finished_ = true;
                return std::size_t{0};
            }
            library_.inflate_reset(&stream_);
            inside_ = true;
        }
        stream_.next_in = reinterpret_cast<const unsigned char*>(window_.data() + begin_);
        stream_.avail_in = static_cast<unsigned int>(end_ - begin_);
        const std::size_t most = std::min<std::size_t>(room.size(), std::size_t{1} << 30U);
        stream_.next_out = reinterpret_cast<unsigned char*>(room.data());
        stream_.avail_out = static_cast<unsigned int>(most);
        const int answer = library_.inflate(&stream_, 0);
        begin_ = end_ - stream_.avail_in;
        if (answer == zlib_end) {
            inside_ = false;
        } else if (answer != zlib_ok && answer != zlib_no_progress) {
            return damaged(stream_.msg != nullptr ? stream_.msg : "not readable");
        }
        return most - stream_.avail_out;
    }

    const Zlib& library_;
    ZlibStream stream_{};
    bool ready_ = false;
};

class Unzstd final : public Unpacked {
  public:
    Unzstd(std::unique_ptr<ByteSource> bytes, std::string name, GrowthLimit limit, const Zstd& library)
        : Unpacked(std::move(bytes), std::move(name), limit), library_(library), stream_(library.create()) {}
    Unzstd(const Unzstd&) = delete;
    Unzstd& operator=(const Unzstd&) = delete;
    ~Unzstd() override { library_.free(stream_); }

  private:
    std::string_view kind() const override { return "zstd"; }
    Result<std::size_t> unpack(std::span<char> room) override {
        start_of_call_ = begin_;
        if (stream_ == nullptr) return damaged("zstd could not start");
        ZstdIn in{window_.data(), end_, begin_};
        ZstdOut out{room.data(), room.size(), 0};
        const std::size_t answer = library_.decompress(stream_, &out, &in);
        const bool stuck = in.pos == begin_ && out.pos == 0;
        begin_ = in.pos;
        if (library_.is_error(answer) != 0) return damaged(library_.error_name(answer));
        if (stuck && answer != 0) return damaged("no progress");
        inside_ = answer != 0;  // zero: a frame ended; the next call begins another
        return out.pos;
    }

    const Zstd& library_;
    void* stream_;
};

/// A source whose first bytes were already read.
class Prefixed final : public ByteSource {
  public:
    Prefixed(std::string first, std::unique_ptr<ByteSource> rest) : first_(std::move(first)), rest_(std::move(rest)) {}
    Result<std::size_t> read(std::span<char> room) override {
        if (at_ == first_.size()) return rest_->read(room);
        const std::size_t count = std::min(room.size(), first_.size() - at_);
        std::memcpy(room.data(), first_.data() + at_, count);
        at_ += count;
        return count;
    }
    std::string cut_short() const override { return rest_->cut_short(); }
    std::uint64_t size() const override { return rest_->size(); }
    std::uint64_t consumed() const override { return rest_->consumed() - (first_.size() - at_); }

  private:
    std::string first_;
    std::size_t at_ = 0;
    std::unique_ptr<ByteSource> rest_;
};

std::unexpected<Problem> missing(const std::string& name, std::string_view kind, std::string_view package) {
    return std::unexpected(Problem{fmt::format("{}: is compressed with {}, and its library is not on this machine "
                                               "(Debian: apt-get install {})",
                                               name, kind, package),
                                   /*unavailable=*/true});
}

}  // namespace

Compression compression_of(std::string_view first_bytes) {
    if (first_bytes.starts_with("\x1f\x8b")) return Compression::gzip;
    if (first_bytes.starts_with("\x28\xb5\x2f\xfd")) return Compression::zstd;
    return Compression::none;
}

Result<std::unique_ptr<ByteSource>> decompressed(std::unique_ptr<ByteSource> bytes, const std::string& name,
                                                 GrowthLimit limit) {
    std::string first(4, '\0');
    std::size_t filled = 0;
    while (filled < first.size()) {
        const auto got = bytes->read(std::span(first).subspan(filled));
        if (!got) return std::unexpected(got.error());
        if (*got == 0) break;
        filled += *got;
    }
    first.resize(filled);
    const Compression how = compression_of(first);
    std::unique_ptr<ByteSource> whole = std::make_unique<Prefixed>(std::move(first), std::move(bytes));
    if (how == Compression::gzip) {
        if (zlib() == nullptr) return missing(name, "gzip", "zlib1g");
        return std::make_unique<Gunzipped>(std::move(whole), name, limit, *zlib());
    }
    if (how == Compression::zstd) {
        if (zstd() == nullptr) return missing(name, "zstd", "libzstd1");
        return std::make_unique<Unzstd>(std::move(whole), name, limit, *zstd());
    }
    return whole;
}

}  // namespace roofline::analyze
