// Sixteen rows of sixteen numbers become columns, in registers of AVX-512.
#pragma once

#if defined(__x86_64__)
#include <cstdint>
#include <type_traits>
#include <utility>

namespace roofline::bench {

using SixteenFloats = float __attribute__((vector_size(64), aligned(64)));
using SixteenIntegers = std::int32_t __attribute__((vector_size(64), aligned(64)));
inline constexpr int turned_side = 16;

/// Neighbouring stretches of `width` lanes change places between two vectors.
template <int width, int... place>
__attribute__((target("avx512f"))) inline void exchange(SixteenFloats& a, SixteenFloats& b,
                                                        std::integer_sequence<int, place...>) {
    const SixteenFloats first =
        __builtin_shuffle(a, b, SixteenIntegers{((place & width) == 0 ? place : place - width + turned_side)...});
    b = __builtin_shuffle(a, b, SixteenIntegers{((place & width) == 0 ? place + width : place + turned_side)...});
    a = first;
}
/// Rows become columns.
__attribute__((target("avx512f"))) inline void turn(SixteenFloats (&rows)[turned_side]) {
    const auto step = [&]<int width>(std::integral_constant<int, width>) __attribute__((target("avx512f"))) {
#pragma GCC unroll 16
        for (int i = 0; i < turned_side; ++i) {
            if ((i & width) == 0)
                exchange<width>(rows[i], rows[i + width], std::make_integer_sequence<int, turned_side>());
        }
    };
    step(std::integral_constant<int, 1>());
    step(std::integral_constant<int, 2>());
    step(std::integral_constant<int, 4>());
    step(std::integral_constant<int, 8>());
}

}  // namespace roofline::bench
#endif
