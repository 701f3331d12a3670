// The products for x86-64 with tile registers (AMX), where x has several rows. W is the left operand, 16 rows of 64
// bytes out of plain rows; x the right one, laid so that a tile is a kilobyte after another (pack_for_tiles). Two tiles
// of W by two of x: four products of 16 x 16 results for four loads. Fewer rows of x go to AVX-512, weights that no
// tile takes to amx_widened.cpp.
//
// Up to some hundred rows of x reading W still takes longer than multiplying: what comes 1 KiB on in each row of W is
// asked for the first time that it is read. After that it is in the second-level cache, until all rows of x have
// passed. Results lie by rows of W in a tile, and by rows of x in y: they are turned in registers.
#include "roofline/bench/kernels/amx_products.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <algorithm>
#include <cstring>
#include <immintrin.h>
#include <type_traits>
#include <utility>
#include <vector>

#include "roofline/measure/tile_registers.hpp"

namespace roofline::bench {
namespace amx {
namespace {

constexpr std::int64_t least_rows = 4;            // of x: fewer are read as fast by AVX-512
constexpr std::int64_t least_rows_of_others = 8;  // int4, and what has to be widened
// What of W meets all rows of x in turn, 32 at a time, stays in the second-level cache beside these, and so does what
// another thread on the same core has there: a stretch of some rows.
constexpr std::int64_t stretch_bytes = 8 << 10;
constexpr std::int64_t block_bytes = 512 << 10;

using UnalignedRow = float __attribute__((vector_size(64), aligned(4)));
using Integers = std::int32_t __attribute__((vector_size(64), aligned(64)));

struct Bf16Tiles {
    using Sums = Row;
    static constexpr bool scaled = false;
};
struct Int8Tiles {
    using Sums = Integers;
    static constexpr bool scaled = true;  // by rows of W and of x
};

// Tiles 0 to 3 are the results, [rows of W][rows of x], 4 and 5 W, 6 and 7 x.
#define ROOFLINE_STEP(PRODUCT, BOTH)                           \
    _tile_loadd(4, w + at, row_bytes);                         \
    _tile_loadd(6, x + at * tile_side, line);                  \
    PRODUCT(0, 4, 6);                                          \
    _tile_loadd(5, w + at + tile_side * row_bytes, row_bytes); \
    PRODUCT(2, 5, 6);                                          \
    if constexpr (BOTH) {                                      \
        _tile_loadd(7, x_too + at * tile_side, line);          \
        PRODUCT(1, 4, 7);                                      \
        PRODUCT(3, 5, 7);                                      \
    }
#define ROOFLINE_TILES(TILES, FEATURE, PRODUCT)                                                               \
    template <bool both>                                                                                      \
    __attribute__((target("amx-tile," FEATURE))) inline void multiply(                                        \
        TILES, const char* w, std::int64_t row_bytes, const char* x, const char* x_too, std::int64_t stretch, \
        bool ask, TILES::Sums(&sums)[4][tile_side]) {                                                         \
        _tile_zero(0);                                                                                        \
        _tile_zero(1);                                                                                        \
        _tile_zero(2);                                                                                        \
        _tile_zero(3);                                                                                        \
        for (std::int64_t at = 0; at < stretch; at += line) {                                                 \
            if (ask) {                                                                                        \
                for (std::int64_t row = 0; row < rows_at_once; ++row)                                         \
                    __builtin_prefetch(w + row * row_bytes + ahead_of(at, row_bytes), 0, 2);                  \
            }                                                                                                 \
            ROOFLINE_STEP(PRODUCT, both)                                                                      \
        }                                                                                                     \
        _tile_stored(0, sums[0], line);                                                                       \
        _tile_stored(2, sums[2], line);                                                                       \
        if constexpr (both) {                                                                                 \
            _tile_stored(1, sums[1], line);                                                                   \
            _tile_stored(3, sums[3], line);                                                                   \
        }                                                                                                     \
    }
ROOFLINE_TILES(Bf16Tiles, "amx-bf16", _tile_dpbf16ps)
ROOFLINE_TILES(Int8Tiles, "amx-int8", _tile_dpbssd)
#undef ROOFLINE_TILES
#undef ROOFLINE_STEP

template <class Tiles>
__attribute__((target("avx512f"))) void save_tiles(const ProductCall& call, const Place& place, bool added,
                                                   const typename Tiles::Sums (&sums)[4][tile_side]) {
    save<Tiles::scaled>(call, place, added, [&](int tile, int i) __attribute__((target("avx512f"))) {
        return __builtin_convertvector(sums[tile][i], Row);
    });
}

template <class Tiles>
__attribute__((target("amx-tile"))) void product(const ProductCall& call, std::int64_t first, std::int64_t last) {
    measure::configure({});
    const std::int64_t row_bytes = call.k * bits(call.weights.type) / 8;
    const auto* weights = static_cast<const char*>(call.weights.values);
    const auto* packed = static_cast<const char*>(call.packed);
    const bool met_once = call.m <= 2 * tile_side;
    const std::int64_t stretch = met_once ? row_bytes : std::min(row_bytes, stretch_bytes);
    const std::int64_t block = std::max(rows_at_once, block_bytes / stretch / rows_at_once * rows_at_once);
    typename Tiles::Sums sums[4][tile_side];
    for (std::int64_t begin = first; begin < last; begin += block) {
        const std::int64_t block_end = std::min(last, begin + block);
        for (std::int64_t at = 0; at < row_bytes; at += stretch) {
            const std::int64_t here = std::min(stretch, row_bytes - at);
            for (std::int64_t panel = 0; panel < call.m; panel += 2 * tile_side) {
                const char* x = packed + panel * row_bytes + at * tile_side;
                const char* x_too = x + tile_side * row_bytes;
                for (std::int64_t row = begin; row < block_end; row += rows_at_once) {
                    const std::int64_t from = std::min(row, call.n - rows_at_once);
                    const char* w = weights + from * row_bytes + at;
                    if (panel + tile_side < call.m)
                        multiply<true>(Tiles(), w, row_bytes, x, x_too, here, panel == 0, sums);
                    else
                        multiply<false>(Tiles(), w, row_bytes, x, x_too, here, panel == 0, sums);
                    save_tiles<Tiles>(call, {from, row, block_end, panel}, at > 0, sums);
                }
            }
        }
    }
    _tile_release();
}

/// Scales of rows of W from `from` on, and their zero points in these units, [row][group].
struct Int4Rows {
    std::vector<float> scales;
    std::vector<float> zeros;
    std::vector<std::uint8_t> halves;

    /// Loops that a compiler makes vectors of: one by one they would take longer than the products.
    __attribute__((target("avx512f,avx512bw"))) void take(const Weights& weights, std::int64_t from,
                                                          std::int64_t groups) {
        const std::int64_t count = rows_at_once * groups;
        const std::int64_t begin = from * groups;
        const std::int64_t odd = begin % 2;  // it begins with the high half of a byte
        scales.resize(static_cast<std::size_t>(count));
        zeros.resize(scales.size());
        halves.resize(static_cast<std::size_t>(count + 2));
        const std::uint8_t* bytes = weights.group_zeros + begin / 2;
        std::uint8_t* half = halves.data();
        for (std::int64_t i = 0; i < (count + odd + 1) / 2; ++i) {
            half[2 * i] = bytes[i] & 15U;
            half[2 * i + 1] = static_cast<std::uint8_t>(bytes[i] >> 4U);
        }
        const Bf16* scale = weights.group_scales + begin;
        for (std::int64_t i = 0; i < count; ++i) scales[static_cast<std::size_t>(i)] = from_bf16(scale[i]);
        for (std::int64_t i = 0; i < count; ++i)
            zeros[static_cast<std::size_t>(i)] =
                scales[static_cast<std::size_t>(i)] * static_cast<float>(half[i + odd]);
    }
};

using Bytes = std::uint8_t __attribute__((vector_size(64), aligned(64)));

/// A group of 32 rows as bytes: 64 low halves of each row, and 64 high ones.
struct Int4Bytes {
    Bytes halves[2][rows_at_once];
};

__attribute__((target("avx512f,avx512bw"))) inline void unpack(const std::uint8_t* w, std::int64_t groups,
                                                               std::int64_t group, Int4Bytes& to) {
    using Unaligned = std::uint8_t __attribute__((vector_size(64), aligned(1)));
    using Words = std::uint16_t __attribute__((vector_size(64), aligned(64)));
    const std::int64_t ahead = ahead_of(group * (int4_group / 2), groups * (int4_group / 2));
    for (std::int64_t row = 0; row < rows_at_once; ++row) {
        const std::uint8_t* from = w + (row * groups + group) * (int4_group / 2);
        __builtin_prefetch(from - group * (int4_group / 2) + ahead, 0, 2);
        const Bytes bytes = *reinterpret_cast<const Unaligned*>(from);
        to.halves[0][row] = bytes & 15;
        to.halves[1][row] = reinterpret_cast<Bytes>(reinterpret_cast<Words>(bytes) >> 4) & 15;
    }
}

/// 32 rows of W and what belongs to them.
struct Int4Block {
    const std::uint8_t* w;
    Int4Rows rows;
    std::vector<Int4Bytes> bytes;  // of all groups, where several pairs of panels meet them; else of the last one
};

/// int4: a group of the block is multiplied with a panel, or two; then every result gets the scales of its row and
/// column.
template <bool both, bool unpacked>
__attribute__((target("avx512f,avx512bw,amx-tile,amx-int8"))) void multiply_int4(const ProductCall& call,
                                                                                 Int4Block& block, std::int64_t panel,
                                                                                 Row (&totals)[rows_at_once][2]) {
    const std::int64_t groups = call.k / int4_group;
    const std::int64_t columns = (call.m + tile_side - 1) / tile_side * tile_side;
    const char* x = static_cast<const char*>(call.packed) + panel * call.k;
    const char* x_too = x + tile_side * call.k;
    for (auto& row : totals) row[0] = row[1] = Row{};
    Integers sums[2][rows_at_once];  // [column tile][row]
    for (std::int64_t group = 0; group < groups; ++group) {
        Int4Bytes& bytes = block.bytes[static_cast<std::size_t>(unpacked ? group : 0)];
        if constexpr (!unpacked) unpack(block.w, groups, group, bytes);
        asm volatile("" : : : "memory");  // the tile loads do not say what they read
        _tile_zero(0);
        _tile_zero(2);
        if constexpr (both) {
            _tile_zero(1);
            _tile_zero(3);
        }
        for (int half = 0; half < 2; ++half) {
            const std::int64_t at = (group * 2 + half) * tile_bytes;
            _tile_loadd(4, bytes.halves[half], line);
            _tile_loadd(5, bytes.halves[half] + tile_side, line);
            _tile_loadd(6, x + at, line);
            _tile_dpbssd(0, 4, 6);
            _tile_dpbssd(2, 5, 6);
            if constexpr (both) {
                _tile_loadd(7, x_too + at, line);
                _tile_dpbssd(1, 4, 7);
                _tile_dpbssd(3, 5, 7);
            }
        }
        _tile_stored(0, sums[0], line);
        _tile_stored(2, sums[0] + tile_side, line);
        if constexpr (both) {
            _tile_stored(1, sums[1], line);
            _tile_stored(3, sums[1] + tile_side, line);
        }
        const float* scales = block.rows.scales.data() + group;
        const float* zeros = block.rows.zeros.data() + group;
        for (int which = 0; which < (both ? 2 : 1); ++which) {
            const std::int64_t at = group * columns + panel + which * tile_side;
            const Row x_scales = *reinterpret_cast<const UnalignedRow*>(call.turned_scales + at);
            const Row x_sums = *reinterpret_cast<const UnalignedRow*>(call.turned_sums + at);
            for (std::int64_t row = 0; row < rows_at_once; ++row)
                totals[row][which] +=
                    __builtin_convertvector(sums[which][row], Row) * (x_scales * scales[row * groups]) -
                    x_sums * zeros[row * groups];
        }
    }
}

__attribute__((target("avx512f,amx-tile"))) void several_rows_int4(const ProductCall& call, std::int64_t first,
                                                                   std::int64_t last) {
    measure::configure({});
    const std::int64_t groups = call.k / int4_group;
    const bool several = call.m > 2 * tile_side;  // pairs of panels
    static thread_local Int4Block block;
    block.bytes.resize(static_cast<std::size_t>(several ? groups : 1));
    Row totals[rows_at_once][2];
    for (std::int64_t row = first; row < last; row += rows_at_once) {
        const std::int64_t from = std::min(row, call.n - rows_at_once);
        block.w = static_cast<const std::uint8_t*>(call.weights.values) + from * (call.k / 2);
        block.rows.take(call.weights, from, groups);
        for (std::int64_t group = 0; several && group < groups; ++group)
            unpack(block.w, groups, group, block.bytes[static_cast<std::size_t>(group)]);
        for (std::int64_t panel = 0; panel < call.m; panel += 2 * tile_side) {
            const bool both = panel + tile_side < call.m;
            if (several)
                both ? multiply_int4<true, true>(call, block, panel, totals)
                     : multiply_int4<false, true>(call, block, panel, totals);
            else
                both ? multiply_int4<true, false>(call, block, panel, totals)
                     : multiply_int4<false, false>(call, block, panel, totals);
            save<false>(call, {from, row, last, panel}, false, [&](int tile, int i) __attribute__((target("avx512f"))) {
                return totals[tile / 2 * tile_side + i][tile % 2];
            });
        }
    }
    _tile_release();
}

/// Panels of 16 rows of x: of 64 bytes of them first four of each row, then the next four. Beside int4 first what meets
/// low halves of a group's bytes and then what meets high halves.
void pack_for_tiles(const void* x, std::int64_t m, std::int64_t row_bytes, WeightFormat weights, void* packed) {
    if (widens(weights))
        return pack_widened(static_cast<const float*>(x), m, row_bytes / static_cast<std::int64_t>(sizeof(float)),
                            packed);
    const auto* from = static_cast<const char*>(x);
    auto* to = static_cast<char*>(packed);
    for (std::int64_t at = 0; at < row_bytes; at += 4) {
        const std::int64_t in = at % int4_group;
        const std::int64_t place =
            weights == WeightFormat::int4 ? at - in + in % 64 / 16 * 32 + in / 64 * 16 + in % 16 : at;
        for (std::int64_t row = 0; row < tile_side; ++row, to += 4) {
            if (row < m)
                std::memcpy(to, from + row * row_bytes + place, 4);
            else
                std::memset(to, 0, 4);
        }
    }
}

bool reads_panels(WeightFormat weights, std::int64_t m, std::int64_t n, std::int64_t k) {
    if (weights == WeightFormat::fp32 || n < rows_at_once) return false;
    if (widens(weights)) return m >= least_rows_of_others && k % (line / 2) == 0;
    if (weights == WeightFormat::int4) return m >= least_rows_of_others;
    const bool whole = weights == WeightFormat::bf16 || weights == WeightFormat::int8;
    return whole && m >= least_rows && k * bits(weights) / 8 % line == 0;
}

void product_bf16(const ProductCall& call, std::int64_t first, std::int64_t last) {
    reads_panels(WeightFormat::bf16, call.m, call.n, call.k) ? product<Bf16Tiles>(call, first, last)
                                                             : avx512_vnni_products()->bf16(call, first, last);
}

void product_int8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    reads_panels(WeightFormat::int8, call.m, call.n, call.k) ? product<Int8Tiles>(call, first, last)
                                                             : avx512_vnni_products()->int8(call, first, last);
}

void product_int4(const ProductCall& call, std::int64_t first, std::int64_t last) {
    reads_panels(WeightFormat::int4, call.m, call.n, call.k) ? several_rows_int4(call, first, last)
                                                             : avx512_vnni_products()->int4(call, first, last);
}

void product_groups(const ProductCall& call, std::int64_t first, std::int64_t last) {
    reads_panels(call.weights.type, call.m, call.n, call.k) ? widened_product(call, first, last)
                                                            : avx512_vnni_products()->groups(call, first, last);
}

void product_fp8(const ProductCall& call, std::int64_t first, std::int64_t last) {
    reads_panels(call.weights.type, call.m, call.n, call.k) ? widened_product(call, first, last)
                                                            : avx512_vnni_products()->fp8(call, first, last);
}

}  // namespace
}  // namespace amx

const ProductKernels* amx_products() {
    static const ProductKernels* const here = []() -> const ProductKernels* {
        const ProductKernels* vectors = avx512_vnni_products();
        if (vectors == nullptr || !__builtin_cpu_supports("avx512bf16") || !measure::has_tile_products_bf16() ||
            !measure::has_tile_products_int8())
            return nullptr;
        static const ProductKernels kernels = {.name = "AVX-512 and AMX",
                                               .fp32 = vectors->fp32,
                                               .bf16 = amx::product_bf16,
                                               .int8 = amx::product_int8,
                                               .int4 = amx::product_int4,
                                               .groups = amx::product_groups,
                                               .fp8 = amx::product_fp8,
                                               .panels = {.rows = amx::tile_side,
                                                          .rows_of_w = amx::rows_at_once,
                                                          .pack = amx::pack_for_tiles,
                                                          .read = amx::reads_panels,
                                                          .turn_factors = true,
                                                          .of_wide_x = amx::widens}};
        return &kernels;
    }();
    return here;
}
}  // namespace roofline::bench
#else
namespace roofline::bench {
const ProductKernels* amx_products() {
    return nullptr;
}
}  // namespace roofline::bench
#endif
