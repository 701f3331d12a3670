// Several rows of x against rows of W by vector instructions: panels of up to four of them at a time, which share what
// is widened of W.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/side_by_side.hpp"

namespace roofline::bench {

/// Up to so many rows of x are laid anew, in fp32, by every thread for every part of W; of more that would take longer
/// than it gains.
inline constexpr std::int64_t most_laid_wide = 16;

/// Rows of x as they meet W, a line further apart than they need to be: those that are a power of two apart push each
/// other out of the nearest cache. (W lies so as it is, but only few rows of it meet at a time.)
template <class X>
class LaidRows {
  public:
    /// lay(row, to) leaves a row of x there, or what is made of it: `width` numbers.
    template <class Lay>
    const LaidRows& laid(std::int64_t rows, std::int64_t width, const Lay& lay) {
        constexpr std::int64_t of_line = 64 / sizeof(X);
        pitch_ = (width / of_line + 2) * of_line;
        lines_.resize(static_cast<std::size_t>(rows * pitch_ / of_line));
        for (std::int64_t row = 0; row < rows; ++row) lay(row, lines_.data()->values + row * pitch_);
        return *this;
    }
    template <class Lay>
    const LaidRows& laid(const ProductCall& call, const Lay& lay) {
        return laid(call.m, call.k, lay);
    }
    const X* row(std::int64_t at) const { return lines_.data()->values + at * pitch_; }
    std::int64_t pitch() const { return pitch_; }

  private:
    struct alignas(64) Line {
        X values[64 / sizeof(X)];
    };
    std::vector<Line> lines_;
    std::int64_t pitch_ = 0;
};

/// Calls dots(std::integral_constant<int, columns>, rows, x_row) until all rows of x, `most_columns` of them at a time,
/// have met rows [first, last) of W, `count` of them side by side: those are in a cache when the next rows of x come.
/// (With a panel going over a kilobyte or two of each row before the next did, eight rows of x took as long.)
template <int count, int most_columns, class Dots>
inline __attribute__((always_inline)) void by_panels(const ProductCall& call, std::int64_t first, std::int64_t last,
                                                     const Dots& dots) {
    side_by_side<count>(first, last, [&](const std::int64_t(&rows)[count]) {
        std::int64_t x_row = 0;
        for (; x_row + most_columns <= call.m; x_row += most_columns)
            dots(std::integral_constant<int, most_columns>(), rows, x_row);
        const std::int64_t left = call.m - x_row;
        if constexpr (most_columns == 4) {
            if (left == 3) dots(std::integral_constant<int, 3>(), rows, x_row);
            if (left == 2) dots(std::integral_constant<int, 2>(), rows, x_row);
        }
        if (left == 1) dots(std::integral_constant<int, 1>(), rows, x_row);
    });
}

}  // namespace roofline::bench
