// The tile registers of x86-64 (AMX): eight of 16 rows of 64 bytes. The system hands them out on request only, to the
// process, before it first touches them.
#pragma once

#if defined(__x86_64__) && defined(__linux__)
#include <cstdint>
#include <sys/syscall.h>
#include <unistd.h>

namespace roofline::measure {

inline bool has_tile_registers() {
    static const bool granted = [] {
        constexpr int request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
        constexpr int tile_data = 18;
        return __builtin_cpu_supports("amx-tile") != 0 && ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
    }();
    return granted;
}
/// And products of what lies in them.
inline bool has_tile_products_bf16() {
    return __builtin_cpu_supports("amx-bf16") != 0 && has_tile_registers();
}
inline bool has_tile_products_int8() {
    return __builtin_cpu_supports("amx-int8") != 0 && has_tile_registers();
}

struct alignas(64) TileConfig {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// As an operand of the asm statement the whole struct is read; the intrinsic of GCC 12 only reads eight bytes of it,
/// as far as the compiler knows, and the rest may never be stored.
inline void configure(const TileConfig& config) {
    asm volatile("ldtilecfg %0" : : "m"(config));
}

}  // namespace roofline::measure
#endif
