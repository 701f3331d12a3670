// Products for x86-64 with tile registers (AMX) where weights are none that tiles take and x has several rows: 128
// columns of 32 rows of W become bf16 in the first-level cache, which is exact for fp8, mxfp4 and nvfp4, and are
// multiplied by x in bf16. Where x has more than 32 rows, all columns of these rows of W are widened once.
#include "roofline/bench/kernels/amx_products.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <algorithm>
#include <array>
#include <cstring>
#include <immintrin.h>
#include <vector>

#include "roofline/bench/kernels/e4m3.hpp"
#include "roofline/measure/tile_registers.hpp"

namespace roofline::bench::amx {
namespace {

constexpr std::int64_t step_columns = line / 2;  // of bf16, which a product of tiles takes at once
constexpr std::int64_t block_steps = 4;
constexpr std::int64_t block_columns = block_steps * step_columns;
static_assert(block_columns == fp8_block_side);

struct alignas(64) WideBlock {
    Bf16 of[block_steps][rows_at_once][step_columns];
};

/// Columns of a block, in steps.
std::int64_t steps_of(std::int64_t block, std::int64_t k) {
    return std::min(block_steps, (k - block * block_columns) / step_columns);
}

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512bf16,fma,prefer-vector-width=512")

/// A line of bf16 from 32 bytes of e4m3. Exponents move to where they are in bf16 and become larger by 120; numbers
/// without a leading one (s 0000 mmm) are looked up.
struct OfFp8 {
    static constexpr bool scaled = true;  // sums of a block are

    __m512i smallest;
    OfFp8() {
        alignas(64) std::array<Bf16, 32> values = {};
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = to_bf16(static_cast<float>(i % 8) * 0x1p-9F);
        smallest = _mm512_load_si512(values.data());
    }

    static constexpr std::int64_t step_bytes = step_columns;
    static constexpr std::int64_t step_scales = 0;  // that a line is made with, in a row
    static const std::uint8_t* scales(const Weights& /*weights*/) { return nullptr; }
    /// `from`: the bytes of a step; then its scales, where there are any.
    __m512i line_of(const std::uint8_t* from, const std::uint8_t* /*power*/) const {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        const __m512i words = _mm512_maskz_cvtepi8_epi16(~__mmask32{0}, bytes);
        const __m512i moved = _mm512_and_si512(_mm512_slli_epi16(words, 4), _mm512_set1_epi16(0x07F0));
        const __mmask32 small = _mm512_testn_epi16_mask(words, _mm512_set1_epi16(0x78));
        const __m512i sizes =
            _mm512_mask_permutexvar_epi16(_mm512_add_epi16(moved, _mm512_set1_epi16(120 << 7)), small, words, smallest);
        const __m512i signs = _mm512_set1_epi16(static_cast<std::int16_t>(0x8000));
        return _mm512_or_si512(sizes, _mm512_and_si512(words, signs));
    }
};

/// From 16 bytes of half bytes, whose values are looked up; what their scale is beyond one is added to the exponents of
/// what they are looked up in. (The least scale of all is too small for that: no weight has it.)
struct OfMxfp4 {
    static constexpr bool scaled = false;

    __m512i values;
    std::array<std::uint32_t, 256> exponents = {};  // twice what a scale adds
    OfMxfp4() {
        constexpr float sizes[8] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
        alignas(64) std::array<Bf16, 32> all = {};  // twice: the fifth bit is another weight's
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = to_bf16(i % 16 < 8 ? sizes[i % 8] : -sizes[i % 8]);
        values = _mm512_load_si512(all.data());
        for (std::size_t power = 0; power < exponents.size(); ++power) {
            const auto added = static_cast<std::uint16_t>((static_cast<int>(power) - 127) * 128);
            exponents[power] = added * 0x10001U;
        }
    }

    static constexpr std::int64_t step_bytes = step_columns / 2;
    static constexpr std::int64_t step_scales = 1;
    static const std::uint8_t* scales(const Weights& weights) { return weights.group_powers; }
    __m512i line_of(const std::uint8_t* from, const std::uint8_t* power) const {
        constexpr __mmask32 not_zero = 0xFEFEFEFE;
        const __m512i added = _mm512_set1_epi32(static_cast<int>(exponents[*power]));
        const __m512i scaled_values = _mm512_mask_add_epi16(values, not_zero, values, added);
        const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
        const __m512i words = _mm512_maskz_cvtepu8_epi16(~__mmask32{0}, twice);
        const __m512i halves = _mm512_maskz_srlv_epi16(~__mmask32{0}, words, high_half());
        return _mm512_maskz_permutexvar_epi16(~__mmask32{0}, halves, scaled_values);
    }
    static __m512i high_half() {
        return _mm512_set_epi16(4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                0, 0, 0);
    }
};

/// The same with a scale in e4m3 for 16 of them: what both halves are looked up in is scaled, each by its own.
struct OfNvfp4 {
    static constexpr bool scaled = false;

    __m512 values;
    OfNvfp4() {
        constexpr float sizes[8] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
        alignas(64) std::array<float, 16> all = {};
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = i < 8 ? sizes[i] : -sizes[i - 8];
        values = _mm512_load_ps(all.data());
    }

    static constexpr std::int64_t step_bytes = step_columns / 2;
    static constexpr std::int64_t step_scales = 2;
    static const std::uint8_t* scales(const Weights& weights) { return weights.small_scales; }
    __m512i line_of(const std::uint8_t* from, const std::uint8_t* scales) const {
        const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_mul_ps(values, _mm512_set1_ps(e4m3_values[scales[1]])),
                                                  _mm512_mul_ps(values, _mm512_set1_ps(e4m3_values[scales[0]])));
        const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
        const __m512i words = _mm512_maskz_cvtepu8_epi16(~__mmask32{0}, twice);
        const __m512i halves = _mm512_maskz_srlv_epi16(~__mmask32{0}, words, OfMxfp4::high_half());
        // The second 16 are looked up in the second half.
        const __m512i places = _mm512_or_si512(_mm512_and_si512(halves, _mm512_set1_epi16(15)),
                                               _mm512_slli_epi16(OfMxfp4::high_half(), 2));
        return _mm512_maskz_permutexvar_epi16(~__mmask32{0}, places, reinterpret_cast<__m512i>(both));
    }
};

static_assert(small_group == step_columns && 2 * nvfp4_group == step_columns);

template <class Format>
inline void widen(const Format& format, const ProductCall& call, std::int64_t from, std::int64_t block, WideBlock& to) {
    const std::int64_t steps = steps_of(block, call.k);
    const std::int64_t row_bytes = call.k / step_columns * Format::step_bytes;
    const std::int64_t row_scales = call.k / step_columns * Format::step_scales;
    const auto* bytes = static_cast<const std::uint8_t*>(call.weights.values) + from * row_bytes +
                        block * block_steps * Format::step_bytes;
    const std::uint8_t* scales =
        Format::scales(call.weights) + from * row_scales + block * block_steps * Format::step_scales;
    const std::int64_t at_block = block * block_steps * Format::step_bytes;
    const std::int64_t ahead = ahead_of(at_block, row_bytes) - at_block;
    for (std::int64_t row = 0; row < rows_at_once; ++row, bytes += row_bytes, scales += row_scales) {
        for (std::int64_t at = 0; at < block_steps * Format::step_bytes; at += line)
            __builtin_prefetch(bytes + ahead + at, 0, 2);
        const auto take = [&](std::int64_t step) {
            _mm512_store_si512(to.of[step][row],
                               format.line_of(bytes + step * Format::step_bytes, scales + step * Format::step_scales));
        };
        if (steps == block_steps) {
            take(0);
            take(1);
            take(2);
            take(3);
        } else {
            for (std::int64_t step = 0; step < steps; ++step) take(step);
        }
    }
}

#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target( \
    "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512bf16,amx-tile,amx-bf16,fma,prefer-vector-width=512")

/// 32 rows of W by one panel of x, or two: [two halves of the rows][panel][row].
template <bool both, class Format>
void multiply(const Format& format, const ProductCall& call, std::int64_t from, std::int64_t panel, bool widened,
              std::vector<WideBlock>& blocks, Row (&totals)[4][tile_side]) {
    const std::int64_t count = (call.k + block_columns - 1) / block_columns;
    const char* x = static_cast<const char*>(call.packed) + panel * call.k * static_cast<std::int64_t>(sizeof(float));
    const char* x_too = x + tile_side * call.k * static_cast<std::int64_t>(sizeof(float));
    Row sums[4][tile_side];
    const auto save_sums = [&](Row(&to)[4][tile_side]) {
        _tile_stored(0, to[0], line);
        _tile_stored(2, to[2], line);
        if constexpr (both) {
            _tile_stored(1, to[1], line);
            _tile_stored(3, to[3], line);
        }
    };
    const auto begin_sums = [] {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    };
    if constexpr (Format::scaled) std::memset(&totals, 0, sizeof totals);
    if constexpr (!Format::scaled) begin_sums();
    for (std::int64_t block = 0; block < count; ++block) {
        WideBlock& weights = blocks[static_cast<std::size_t>(widened ? block : block % 2)];
        if (!widened) widen(format, call, from, block, weights);
        asm volatile("" : : : "memory");  // the tile loads do not say what they read
        if constexpr (Format::scaled) begin_sums();
        for (std::int64_t step = 0; step < steps_of(block, call.k); ++step) {
            const std::int64_t at = (block * block_steps + step) * tile_bytes;
            _tile_loadd(4, weights.of[step], line);
            _tile_loadd(6, x + at, line);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(5, weights.of[step] + tile_side, line);
            _tile_dpbf16ps(2, 5, 6);
            if constexpr (both) {
                _tile_loadd(7, x_too + at, line);
                _tile_dpbf16ps(1, 4, 7);
                _tile_dpbf16ps(3, 5, 7);
            }
        }
        if constexpr (Format::scaled) {
            save_sums(sums);
            for (std::int64_t row = 0; row < rows_at_once; ++row) {
                const float scale = call.weights.fp8_scale(from + row, block * block_columns, call.k);
                const std::int64_t half = row / tile_side * 2;
                totals[half][row % tile_side] += sums[half][row % tile_side] * scale;
                if constexpr (both) totals[half + 1][row % tile_side] += sums[half + 1][row % tile_side] * scale;
            }
        }
    }
    if constexpr (!Format::scaled) save_sums(totals);
}

template <class Format>
void product(const ProductCall& call, std::int64_t first, std::int64_t last) {
    const Format format;
    const bool several = call.m > 2 * tile_side;  // pairs of panels
    const std::int64_t count = (call.k + block_columns - 1) / block_columns;
    static thread_local std::vector<WideBlock> blocks;
    blocks.resize(static_cast<std::size_t>(several ? count : 2));
    Row totals[4][tile_side];
    measure::configure({});
    for (std::int64_t row = first; row < last; row += rows_at_once) {
        const std::int64_t from = std::min(row, call.n - rows_at_once);
        for (std::int64_t block = 0; several && block < count; ++block)
            widen(format, call, from, block, blocks[static_cast<std::size_t>(block)]);
        for (std::int64_t panel = 0; panel < call.m; panel += 2 * tile_side) {
            if (panel + tile_side < call.m)
                multiply<true>(format, call, from, panel, several, blocks, totals);
            else
                multiply<false>(format, call, from, panel, several, blocks, totals);
            save<false>(call, {from, row, last, panel}, false, [&](int tile, int i) __attribute__((target("avx512f"))) {
                return totals[tile][i] * call.weights.scale_of_all;
            });
        }
    }
    _tile_release();
}

#pragma GCC pop_options

}  // namespace

bool widens(WeightFormat weights) {
    return is_fp8(weights) || weights == WeightFormat::mxfp4 || weights == WeightFormat::nvfp4;
}

void widened_product(const ProductCall& call, std::int64_t first, std::int64_t last) {
    if (call.weights.type == WeightFormat::mxfp4) return product<OfMxfp4>(call, first, last);
    if (call.weights.type == WeightFormat::nvfp4) return product<OfNvfp4>(call, first, last);
    product<OfFp8>(call, first, last);
}

__attribute__((target("avx512f,avx512bw"))) void pack_widened(const float* x, std::int64_t m, std::int64_t k,
                                                              void* packed) {
    auto* to = static_cast<char*>(packed);
    alignas(64) Bf16 narrow[tile_side][step_columns] = {};
    for (std::int64_t at = 0; at < k; at += step_columns) {
        for (std::int64_t row = 0; row < m; ++row) {
            for (std::int64_t i = 0; i < step_columns; ++i) narrow[row][i] = to_bf16(x[row * k + at + i]);
        }
        for (std::int64_t pair = 0; pair < step_columns; pair += 2) {
            for (std::int64_t row = 0; row < tile_side; ++row, to += 4) std::memcpy(to, &narrow[row][pair], 4);
        }
    }
}

}  // namespace roofline::bench::amx
#endif
