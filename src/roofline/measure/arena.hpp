// Memory to walk through: large, aligned, in huge pages where the system has them, and given back when done.
#pragma once

#include <cstddef>

#include "roofline/core/problem.hpp"

namespace roofline::measure {

class Arena {
  public:
    static Result<Arena> take(std::size_t bytes);
    Arena(Arena&& other) noexcept;
    Arena& operator=(Arena&&) = delete;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena();

    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }

  private:
    Arena(std::byte* data, std::size_t size) : data_(data), size_(size) {}
    std::byte* data_;
    std::size_t size_;
};

}  // namespace roofline::measure
