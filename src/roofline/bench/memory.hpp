// Memory that kernels work on, and how much of it there is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "roofline/bench/threads.hpp"
#include "roofline/core/dtype.hpp"
#include "roofline/core/problem.hpp"

namespace roofline::bench {

/// Memory that was written once, so that every page is really there; aligned to huge pages.
class Memory {
  public:
    static Result<Memory> reserve(std::int64_t bytes);
    Memory() = default;
    Memory(Memory&& other) noexcept;
    Memory& operator=(Memory&& other) noexcept;
    ~Memory();
    std::byte* data() const { return data_; }
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(data_);
    }
    std::int64_t bytes() const { return bytes_; }

  private:
    std::byte* data_ = nullptr;
    std::int64_t bytes_ = 0;
    std::int64_t mapped_ = 0;  // from data_ on
};

/// What could be allocated now without pushing others out; the container's limit counts.
std::int64_t free_memory();

/// Numbers in +-size_of_values, in bf16 or fp32, all over it.
void fill_random(Memory& memory, DType type, std::uint64_t seed, Threads& threads, float size_of_values = 1.0F);

}  // namespace roofline::bench
