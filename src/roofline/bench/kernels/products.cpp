#include "roofline/bench/kernels/products.hpp"

#include <algorithm>
#include <vector>

namespace roofline::bench {

namespace {

/// A part of a product begins slowly, for a microsecond or two. So it takes as long at least as all threads together
/// read this much, some ten: less is lost at its beginning, and nobody waits longer for the last to end.
constexpr std::int64_t read_meanwhile = 1 << 20;

std::int64_t row_bytes(const ProductCall& call) {
    return call.k * bits(call.weights.type) / 8;
}

/// Few rows meet rows of weights that are read side by side in odd stretches (side_by_side.hpp): an odd number of them
/// leaves none over. (On x86-64 that gained nothing and made int8 5% slower.)
bool side_by_side(const ProductCall& call, const ProductKernels& kernels) {
    return kernels.abreast > 0 && call.m <= (call.weights.in_tiles() ? panel_rows : 1);
}

/// Rows of W that a part has, or a multiple of it.
std::int64_t grain_of(const ProductCall& call, const ProductKernels& kernels) {
    if (!side_by_side(call, kernels)) return kernels.panels.rows_of_w;
    return kernels.abreast * (call.weights.in_tiles() ? tile_rows : 1);
}

/// A matrix of two formats, in parts whose results lie side by side.
void add_parts(const ProductCall& call, std::vector<ProductCall>& parts) {
    const Weights* others = call.weights.others;
    ProductCall first = call;
    first.n -= call.weights.other_rows;
    first.y_pitch = call.pitch();
    first.weights.others = nullptr;
    if (first.n > 0) parts.push_back(first);
    if (others == nullptr) return;
    ProductCall second = first;
    second.n = call.weights.other_rows;
    second.weights = *others;
    second.y = call.y + first.n;
    parts.push_back(second);
}

}  // namespace

void multiply(const ProductCall& call, const ProductKernels& kernels, Threads& threads) {
    if (call.weights.others != nullptr) return multiply(std::span(&call, 1), kernels, threads);
    const ProductKernels::Function function = kernels.of(call.weights.type);
    const std::int64_t least = read_meanwhile / (threads.count() * row_bytes(call) * call.m);
    threads.ranges(
        call.n, grain_of(call, kernels), [&](std::int64_t first, std::int64_t last) { function(call, first, last); },
        least, side_by_side(call, kernels) ? Threads::Multiple::odd : Threads::Multiple::any);
}

void multiply(std::span<const ProductCall> calls, const ProductKernels& kernels, Threads& threads) {
    std::vector<ProductCall> parts;
    if (std::ranges::any_of(calls, [](const ProductCall& call) { return call.weights.others != nullptr; })) {
        for (const ProductCall& call : calls) add_parts(call, parts);
        calls = parts;
    }
    if (calls.size() == 1) return multiply(calls.front(), kernels, threads);
    std::vector<std::int64_t> begins = {0};  // of each product, in grains of rows
    std::int64_t bytes = 0;                  // for every row of x that they meet
    for (const ProductCall& call : calls) {
        const std::int64_t grain = grain_of(call, kernels);
        begins.push_back(begins.back() + (call.n + grain - 1) / grain);
        bytes += call.n * row_bytes(call) * call.m;
    }
    const std::int64_t grains = begins.back();
    if (grains == 0) return;
    const std::int64_t least = read_meanwhile / (threads.count() * std::max<std::int64_t>(1, bytes / grains));
    threads.ranges(
        grains, 1,
        [&](std::int64_t first, std::int64_t last) {
            for (auto next = std::upper_bound(begins.begin(), begins.end(), first); first < last; ++next) {
                const std::int64_t end = std::min(last, *next);
                const ProductCall& call = calls[static_cast<std::size_t>(next - begins.begin() - 1)];
                const std::int64_t grain = grain_of(call, kernels);
                const std::int64_t begin = *(next - 1);
                if (first < end)
                    kernels.of(call.weights.type)(call, (first - begin) * grain,
                                                  std::min(call.n, (end - begin) * grain));
                first = end;
            }
        },
        least);
}

const ProductKernels& best_products() {
    static const ProductKernels* const best = [] {
        for (const ProductKernels* kernels : {neon_products(), neon_dot_products(), amx_products(),
                                              avx512_vnni_products(), avx512_products(), avx2_products()}) {
            if (kernels != nullptr) return kernels;
        }
        return &portable_products();
    }();
    return *best;
}

}  // namespace roofline::bench
