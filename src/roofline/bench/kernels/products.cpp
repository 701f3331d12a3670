#include "roofline/bench/kernels/products.hpp"

namespace roofline::bench {

void multiply(const ProductCall& call, const ProductKernels& kernels, Threads& threads) {
    const ProductKernels::Function function = kernels.of(call.weights.type);
    // A part begins slowly, for a microsecond or two. So it takes as long at least as all threads together read this
    // much, some ten: less is lost at its beginning, and nobody waits longer for the last to end.
    constexpr std::int64_t read_meanwhile = 1 << 20;
    const std::int64_t row_bytes = call.k * bits(call.weights.type) / 8;
    const std::int64_t least = read_meanwhile / (threads.count() * row_bytes * call.m);
    // Few rows meet rows of weights that are read side by side in odd stretches (side_by_side.hpp): an odd number of
    // them leaves none over. (On x86-64 that gained nothing and made int8 5% slower.)
    const bool side_by_side = kernels.abreast > 0 && call.m <= (call.weights.in_tiles() ? panel_rows : 1);
    const std::int64_t grain =
        side_by_side ? kernels.abreast * (call.weights.in_tiles() ? tile_rows : 1) : kernels.panels.rows_of_w;
    threads.ranges(
        call.n, grain, [&](std::int64_t first, std::int64_t last) { function(call, first, last); }, least,
        side_by_side ? Threads::Multiple::odd : Threads::Multiple::any);
}

const ProductKernels& best_products() {
    static const ProductKernels* const best = [] {
        for (const ProductKernels* kernels :
             {neon_products(), neon_dot_products(), amx_products(), avx512_products(), avx2_products()}) {
            if (kernels != nullptr) return kernels;
        }
        return &portable_products();
    }();
    return *best;
}

}  // namespace roofline::bench
