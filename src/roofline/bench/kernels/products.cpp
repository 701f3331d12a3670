#include "roofline/bench/kernels/products.hpp"

#include <algorithm>
#include <cstring>

namespace roofline::bench {

std::int64_t packed_bytes(std::int64_t m, std::int64_t k, DType type) {
    return (m + panel_rows - 1) / panel_rows * panel_rows * k * bits(type) / 8;
}

void pack(const void* x, std::int64_t m, std::int64_t k, DType type, void* packed) {
    const std::int64_t row_bytes = k * bits(type) / 8;
    const auto* from = static_cast<const char*>(x);
    auto* to = static_cast<char*>(packed);
    for (std::int64_t panel = 0; panel < m; panel += panel_rows) {
        for (std::int64_t at = 0; at < row_bytes; at += 16) {
            for (std::int64_t pair = 0; pair < panel_rows; pair += 2) {
                for (std::int64_t half = 0; half < 16; half += 8) {
                    for (std::int64_t row = panel + pair; row < panel + pair + 2; ++row, to += 8) {
                        if (row < m)
                            std::memcpy(to, from + row * row_bytes + at + half, 8);
                        else
                            std::memset(to, 0, 8);
                    }
                }
            }
        }
    }
}

void multiply(const ProductCall& call, const ProductKernels& kernels, Threads& threads) {
    const ProductKernels::Function function = kernels.of(call.weights.type);
    // A part begins slowly, for a microsecond or two. So it takes as long at least as all threads together read this
    // much, some ten: less is lost at its beginning, and nobody waits longer for the last to end.
    constexpr std::int64_t read_meanwhile = 1 << 20;
    const std::int64_t row_bytes = call.k * bits(call.weights.type) / 8;
    const std::int64_t least = read_meanwhile / (threads.count() * row_bytes * call.m);
    // Few rows meet rows of weights that are read side by side in odd stretches (side_by_side.hpp): an odd number of
    // them leaves none over. (On x86-64 that gained nothing and made int8 5% slower.)
    const bool side_by_side = kernels.abreast > 0 && call.m <= (call.weights.tiles ? panel_rows : 1);
    const std::int64_t grain = side_by_side ? kernels.abreast * (call.weights.tiles ? tile_rows : 1) : 8;
    threads.ranges(
        call.n, grain, [&](std::int64_t first, std::int64_t last) { function(call, first, last); }, least,
        side_by_side ? Threads::Multiple::odd : Threads::Multiple::any);
}

const ProductKernels& best_products() {
    static const ProductKernels* const best = [] {
        for (const ProductKernels* kernels : {neon_products(), avx512_products(), avx2_products()}) {
            if (kernels != nullptr) return kernels;
        }
        return &portable_products();
    }();
    return *best;
}

}  // namespace roofline::bench
