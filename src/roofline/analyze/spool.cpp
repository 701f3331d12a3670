#include "roofline/analyze/spool.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace roofline::analyze::spool_room {
namespace {

/// The file grows by so much at a time.
constexpr std::size_t region_bytes = std::size_t{64} << 20U;
constexpr std::size_t slot_bytes = std::size_t{1} << 20U;  // no block is larger

class Room {
  public:
    std::byte* take(std::size_t bytes) {
        const std::scoped_lock lock(mutex_);
        if (in_memory_ + bytes > most_in_memory_) {
            if (std::byte* slot = mapped_slot()) return slot;
        }
        auto* block = static_cast<std::byte*>(std::malloc(bytes));
        if (block == nullptr) throw std::bad_alloc();
        in_memory_ += bytes;
        return block;
    }

    void give_back(std::byte* block, std::size_t bytes) {
        if (block == nullptr) return;
        const std::scoped_lock lock(mutex_);
        if (is_mapped(block)) {
            free_slots_.push_back(block);
            return;
        }
        std::free(block);
        in_memory_ -= bytes;
    }

    /// The pages stay in the system's cache of files, which takes them back when it needs to: they are nobody's memory.
    void let_go() {
        const std::scoped_lock lock(mutex_);
        for (std::byte* region : regions_) ::madvise(region, region_bytes, MADV_DONTNEED);
    }

    std::size_t mapped() {
        const std::scoped_lock lock(mutex_);
        return regions_.size() * region_bytes - free_slots_.size() * slot_bytes;
    }
    void keep_in_memory(std::size_t bytes) {
        const std::scoped_lock lock(mutex_);
        most_in_memory_ = bytes;
    }

  private:
    bool is_mapped(const std::byte* block) const {
        const auto after = regions_.upper_bound(const_cast<std::byte*>(block));
        return after != regions_.begin() && block < *std::prev(after) + region_bytes;
    }

    /// Null where there is no room for a file; then memory must do.
    std::byte* mapped_slot() {
        if (free_slots_.empty() && !add_region()) return nullptr;
        std::byte* slot = free_slots_.back();
        free_slots_.pop_back();
        return slot;
    }

    bool add_region() {
        if (file_ < 0) file_ = nameless_file();
        if (file_ < 0) return false;
        const auto begin = static_cast<off_t>(regions_.size() * region_bytes);
        // A hole that cannot be filled later would end the program when it is written to.
        if (::posix_fallocate(file_, begin, static_cast<off_t>(region_bytes)) != 0) return false;
        void* region = ::mmap(nullptr, region_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, begin);
        if (region == MAP_FAILED) return false;
        auto* bytes = static_cast<std::byte*>(region);
        regions_.insert(bytes);
        for (std::size_t at = region_bytes; at > 0; at -= slot_bytes) free_slots_.push_back(bytes + at - slot_bytes);
        return true;
    }

    /// In TMPDIR, else where large things may lie: /tmp is often memory itself.
    static int nameless_file() {
        const char* asked = std::getenv("TMPDIR");
        for (const char* folder : {asked, "/var/tmp", "/tmp"}) {
            if (folder == nullptr || *folder == '\0') continue;
            std::string name = std::string(folder) + "/roofline-XXXXXX";
            const int file = ::mkostemp(name.data(), O_CLOEXEC);
            if (file < 0) continue;
            ::unlink(name.c_str());
            return file;
        }
        return -1;
    }

    std::mutex mutex_;
    std::size_t in_memory_ = 0;
    std::size_t most_in_memory_ = usual_bytes_in_memory;
    int file_ = -1;
    std::set<std::byte*> regions_;
    std::vector<std::byte*> free_slots_;
};

/// Outlives every list, so it is never taken down; the system closes the file.
Room& room() {
    static Room* const one = new Room();
    return *one;
}

}  // namespace

std::byte* take(std::size_t bytes) {
    return room().take(bytes);
}
void give_back(std::byte* block, std::size_t bytes) noexcept {
    room().give_back(block, bytes);
}
void let_go() noexcept {
    room().let_go();
}
std::size_t mapped() {
    return room().mapped();
}
void keep_in_memory(std::size_t bytes) {
    room().keep_in_memory(bytes);
}

}  // namespace roofline::analyze::spool_room
