// x86-64 with tile registers (AMX): products of 16 x 64 bytes by 64 bytes x 16 into 16 x 16. Twice each: operands that
// stay in their tiles, which is the peak of the unit; and operands loaded from the first cache for every four products,
// as a matrix product must.
#include "roofline/measure/accumulators.hpp"
#include "roofline/measure/cpu_kernels.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>

#include "roofline/measure/tile_registers.hpp"
#endif

namespace roofline::measure {
#if defined(__x86_64__) && defined(__linux__)
namespace {

constexpr std::size_t tile_bytes = 1024;
constexpr std::size_t sets = 4;  // pairs of operands for each side that the loop with loads walks through: 16 KiB

/// The left operand is all ones; the right one has lane_step(column) in every row. Column n of the result then grows by
/// (products in a row) x lane_step(n): 32 of bf16, 64 of int8.
struct Operands {
    alignas(64) std::byte left[sets * 2 * tile_bytes];
    alignas(64) std::byte right[sets * 2 * tile_bytes];
};

Operands filled(bool bf16) {
    Operands operands;
    for (std::size_t i = 0; i < sizeof operands.left; ++i) {
        const std::size_t column = i % 64 / 4;  // four bytes of a row belong to one column of the result
        if (bf16) {
            const unsigned shift = i % 2 == 0 ? 0U : 8U;
            operands.left[i] = static_cast<std::byte>(bfloat_bits(1) >> shift & 0xFFU);
            operands.right[i] = static_cast<std::byte>(bfloat_bits(lane_step(column)) >> shift & 0xFFU);
        } else {
            operands.left[i] = std::byte{1};
            operands.right[i] = static_cast<std::byte>(lane_step(column));
        }
    }
    return operands;
}

// FLOPs of one trip: 6 tiles x 16 x 16 results x (32 or 64) products x 2 = 98304 (bf16), 196608 (int8).
#define ROOFLINE_TILES_HELD(NAME, FEATURE, PRODUCT, VALUE, BF16, FACTOR)                    \
    __attribute__((target("amx-tile," FEATURE), noinline)) bool NAME(std::uint64_t trips) { \
        static const Operands operands = filled(BF16);                                      \
        const TileConfig config;                                                            \
        configure(config);                                                                  \
        _tile_zero(0);                                                                      \
        _tile_zero(1);                                                                      \
        _tile_zero(2);                                                                      \
        _tile_zero(3);                                                                      \
        _tile_zero(4);                                                                      \
        _tile_zero(5);                                                                      \
        _tile_loadd(6, operands.left, 64);                                                  \
        _tile_loadd(7, operands.right, 64);                                                 \
        for (std::uint64_t trip = 0; trip < trips; ++trip) {                                \
            PRODUCT(0, 6, 7);                                                               \
            PRODUCT(1, 6, 7);                                                               \
            PRODUCT(2, 6, 7);                                                               \
            PRODUCT(3, 6, 7);                                                               \
            PRODUCT(4, 6, 7);                                                               \
            PRODUCT(5, 6, 7);                                                               \
        }                                                                                   \
        VALUE values[6 * 256];                                                              \
        _tile_stored(0, values, 64);                                                        \
        _tile_stored(1, values + 256, 64);                                                  \
        _tile_stored(2, values + 512, 64);                                                  \
        _tile_stored(3, values + 768, 64);                                                  \
        _tile_stored(4, values + 1024, 64);                                                 \
        _tile_stored(5, values + 1280, 64);                                                 \
        _tile_release();                                                                    \
        asm volatile("" : : "r"(values) : "memory");                                        \
        return counted(values, std::size_t{6 * 256}, std::size_t{16}, FACTOR, trips);       \
    }

// FLOPs of one trip: 4 tiles x 16 x 16 results x (32 or 64) products x 2 = 65536 (bf16), 131072 (int8); it loads 4 KiB.
#define ROOFLINE_TILES_LOADED(NAME, FEATURE, PRODUCT, VALUE, BF16, FACTOR)                  \
    __attribute__((target("amx-tile," FEATURE), noinline)) bool NAME(std::uint64_t trips) { \
        static const Operands operands = filled(BF16);                                      \
        const TileConfig config;                                                            \
        configure(config);                                                                  \
        _tile_zero(0);                                                                      \
        _tile_zero(1);                                                                      \
        _tile_zero(2);                                                                      \
        _tile_zero(3);                                                                      \
        for (std::uint64_t trip = 0; trip < trips; ++trip) {                                \
            const std::size_t at = trip % sets * 2 * tile_bytes;                            \
            _tile_loadd(4, operands.left + at, 64);                                         \
            _tile_loadd(6, operands.right + at, 64);                                        \
            PRODUCT(0, 4, 6);                                                               \
            _tile_loadd(7, operands.right + at + tile_bytes, 64);                           \
            PRODUCT(1, 4, 7);                                                               \
            _tile_loadd(5, operands.left + at + tile_bytes, 64);                            \
            PRODUCT(2, 5, 6);                                                               \
            PRODUCT(3, 5, 7);                                                               \
        }                                                                                   \
        VALUE values[4 * 256];                                                              \
        _tile_stored(0, values, 64);                                                        \
        _tile_stored(1, values + 256, 64);                                                  \
        _tile_stored(2, values + 512, 64);                                                  \
        _tile_stored(3, values + 768, 64);                                                  \
        _tile_release();                                                                    \
        asm volatile("" : : "r"(values) : "memory");                                        \
        return counted(values, std::size_t{4 * 256}, std::size_t{16}, FACTOR, trips);       \
    }

ROOFLINE_TILES_HELD(bf16_held, "amx-bf16", _tile_dpbf16ps, float, true, 32)
ROOFLINE_TILES_HELD(int8_held, "amx-int8", _tile_dpbssd, std::int32_t, false, 64)
ROOFLINE_TILES_LOADED(bf16_loaded, "amx-bf16", _tile_dpbf16ps, float, true, 32)
ROOFLINE_TILES_LOADED(int8_loaded, "amx-int8", _tile_dpbssd, std::int32_t, false, 64)

}  // namespace

void amx_kernels(Kernels& kernels) {
    constexpr std::uint64_t exact = std::uint64_t{1} << 17U;  // 2 x 32 x 2^17 = 2^23 is still exact in fp32
    auto& flops = kernels.flops;
    flops.push_back({"amx", Engine::matrix, DType::bf16, 98304.0, exact, bf16_held, has_tile_products_bf16});
    flops.push_back({"amx", Engine::matrix, DType::int8, 196608.0, exact, int8_held, has_tile_products_int8});
    flops.push_back(
        {"amx", Engine::matrix, DType::bf16, 65536.0, exact, bf16_loaded, has_tile_products_bf16, "with tile loads"});
    flops.push_back(
        {"amx", Engine::matrix, DType::int8, 131072.0, exact, int8_loaded, has_tile_products_int8, "with tile loads"});
}
#else
void amx_kernels(Kernels&) {}
#endif

}  // namespace roofline::measure
