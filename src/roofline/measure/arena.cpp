#include "roofline/measure/arena.hpp"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include <fmt/format.h>

namespace roofline::measure {

Result<Arena> Arena::take(std::size_t bytes) {
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        return std::unexpected(Problem{fmt::format("{:.0f} MB of memory to measure with cannot be had: {}",
                                                   static_cast<double>(bytes) / 1e6, std::strerror(errno)),
                                       true});
    }
#if defined(MADV_HUGEPAGE)
    ::madvise(data, bytes, MADV_HUGEPAGE);  // a wish; small pages do too
#endif
    return Arena(static_cast<std::byte*>(data), bytes);
}

Arena::Arena(Arena&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
    other.size_ = 0;
}

Arena::~Arena() {
    if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace roofline::measure
