#include "roofline/bench/memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include "roofline/bench/numbers.hpp"

namespace roofline::bench {
namespace {

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

}  // namespace

// A huge page is had where all of it can be: so memory begins at the boundary of one (what lies before it is given
// back), and ends at one where that costs little. What begins anywhere has small pages at both ends.
Result<Memory> Memory::reserve(std::int64_t bytes) {
    constexpr std::int64_t huge = 2 << 20;
    const auto whole = [](std::int64_t count, std::int64_t page) { return (count + page - 1) / page * page; };
    Memory memory;
    memory.bytes_ = std::max<std::int64_t>(bytes, 64);
    const bool to_the_end = 16 * (whole(memory.bytes_, huge) - memory.bytes_) <= memory.bytes_;
    memory.mapped_ = whole(memory.bytes_, to_the_end ? huge : ::sysconf(_SC_PAGESIZE));
    const std::int64_t more = memory.mapped_ >= huge ? huge : 0;
    void* data =
        ::mmap(nullptr, size(memory.mapped_ + more), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        memory.bytes_ = memory.mapped_ = 0;
        return std::unexpected(
            Problem{fmt::format("{:.1f} GB of memory cannot be had", static_cast<double>(bytes) / 1e9), true});
    }
    memory.data_ = static_cast<std::byte*>(data);
    if (more > 0) {
        const auto place = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data));
        const std::int64_t before = whole(place, huge) - place;
        if (before > 0) ::munmap(data, size(before));
        memory.data_ += before;
        if (more > before) ::munmap(memory.data_ + memory.mapped_, size(more - before));
    }
#ifdef MADV_HUGEPAGE
    ::madvise(memory.data_, size(memory.mapped_), MADV_HUGEPAGE);  // fewer page walks; a wish, not a need
#endif
    return memory;
}

Memory::Memory(Memory&& other) noexcept : data_(other.data_), bytes_(other.bytes_), mapped_(other.mapped_) {
    other.data_ = nullptr;
    other.bytes_ = other.mapped_ = 0;
}

Memory& Memory::operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    return *this;
}

Memory::~Memory() {
    if (data_ != nullptr) ::munmap(data_, size(mapped_));
}

std::int64_t free_memory() {
    std::int64_t free = std::numeric_limits<std::int64_t>::max();
    std::ifstream system("/proc/meminfo");
    std::string key;
    std::string unit;
    for (std::int64_t value = 0; system >> key >> value; std::getline(system, unit)) {
        if (key == "MemAvailable:") free = value * 1024;
    }
    std::int64_t limit = 0;
    std::int64_t used = 0;
    std::ifstream most("/sys/fs/cgroup/memory.max");
    std::ifstream now("/sys/fs/cgroup/memory.current");
    if (most >> limit && now >> used) free = std::min(free, limit - used);
    return std::max<std::int64_t>(free, 0);
}

void fill_random(Memory& memory, DType type, std::uint64_t seed, Threads& threads, float size_of_values) {
    threads.ranges(memory.bytes() / (bits(type) / 8), 1 << 16, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
            const float value = size_of_values * random_value(seed + static_cast<std::uint64_t>(i));
            if (type == DType::bf16)
                memory.as<Bf16>()[i] = to_bf16(value);
            else
                memory.as<float>()[i] = value;
        }
    });
}

}  // namespace roofline::bench
