// What the arithmetic loops in cpu/ share: enough independent accumulators to hide the latency of a multiply-add on any
// machine, kept in registers, and a check of every lane. Each loop adds the same whole number to a lane on every trip,
// so a lane ends at trips x step, exactly.
//
// Macros and not templates, because vectors without a fixed size (SVE) can be neither members nor elements, and because
// a function must name its instruction set itself. A loop is spelt:
//
//     #define UPDATE(a) vfmaq_f32(y, a, x)          the new value of an accumulator
//     #define STORE(to, a) vst1q_f32(to, a)
//     ROOFLINE_LOOP(ROOFLINE_24, "w", start)        register class of the compiler's constraints
//
// and leaves the lanes of all accumulators in `values`, `lanes` apart. ROOFLINE_HOLD makes the compiler believe that an
// accumulator changed, so that it can neither fold trips together nor swap loops.
#pragma once

#include <cstddef>
#include <cstdint>

#define ROOFLINE_12(DO, R) \
    DO(0, R) DO(1, R) DO(2, R) DO(3, R) DO(4, R) DO(5, R) DO(6, R) DO(7, R) DO(8, R) DO(9, R) DO(10, R) DO(11, R)
#define ROOFLINE_16(DO, R) ROOFLINE_12(DO, R) DO(12, R) DO(13, R) DO(14, R) DO(15, R)
#define ROOFLINE_20(DO, R) ROOFLINE_16(DO, R) DO(16, R) DO(17, R) DO(18, R) DO(19, R)
#define ROOFLINE_24(DO, R) \
    ROOFLINE_12(DO, R)     \
    DO(12, R)              \
    DO(13, R) DO(14, R) DO(15, R) DO(16, R) DO(17, R) DO(18, R) DO(19, R) DO(20, R) DO(21, R) DO(22, R) DO(23, R)

#define ROOFLINE_MAKE(i, START) auto a##i = START;
#define ROOFLINE_STEP(i, R) a##i = UPDATE(a##i);
#define ROOFLINE_BACK(i, R) a##i = UPDATE_BACK(a##i);
#define ROOFLINE_HOLD(i, R) asm volatile("" : "+" R(a##i));
#define ROOFLINE_SAVE(i, R) STORE(values + (i) * lanes, a##i);

// Two trips at a time, with several numbers of accumulators, of which the fastest counts. A file may say before it
// includes this one how an operand is read anew for every trip (ROOFLINE_KEEP, ROOFLINE_AGAIN): on Neoverse-V1 a loop
// whose operands were all written long ago soon runs at half its rate, and one load in 24 instructions prevents it.
#ifndef ROOFLINE_AGAIN
#define ROOFLINE_KEEP
#define ROOFLINE_AGAIN
#endif
#define ROOFLINE_PAIRS(TIMES, REGISTERS, START, SECOND)     \
    ROOFLINE_KEEP                                           \
    TIMES(ROOFLINE_MAKE, START)                             \
    for (std::uint64_t trip = 1; trip < trips; trip += 2) { \
        ROOFLINE_AGAIN                                      \
        TIMES(ROOFLINE_STEP, REGISTERS)                     \
        TIMES(ROOFLINE_HOLD, REGISTERS)                     \
        ROOFLINE_AGAIN                                      \
        TIMES(SECOND, REGISTERS)                            \
        TIMES(ROOFLINE_HOLD, REGISTERS)                     \
    }                                                       \
    if (trips % 2 == 1) {                                   \
        TIMES(ROOFLINE_STEP, REGISTERS)                     \
        TIMES(ROOFLINE_HOLD, REGISTERS)                     \
    }                                                       \
    TIMES(ROOFLINE_SAVE, REGISTERS)
#define ROOFLINE_LOOP(TIMES, REGISTERS, START) ROOFLINE_PAIRS(TIMES, REGISTERS, START, ROOFLINE_STEP)
// Forth by UPDATE, back by UPDATE_BACK.
#define ROOFLINE_SWING(TIMES, REGISTERS, START) ROOFLINE_PAIRS(TIMES, REGISTERS, START, ROOFLINE_BACK)

namespace roofline::measure {

/// What lane `lane` grows by on every trip, before the factor of the instruction: neighbours differ in sign and size.
constexpr int lane_step(std::size_t lane) {
    constexpr int steps[4] = {1, -1, 2, -2};
    return steps[lane % 4];
}

/// Every value equals trips x factor x lane_step(lane mod period).
template <class Value>
bool counted(const Value* values, std::size_t count, std::size_t period, int factor, std::uint64_t trips) {
    for (std::size_t i = 0; i < count; ++i) {
        const auto step = static_cast<Value>(factor * lane_step(i % period));
        if (values[i] != static_cast<Value>(trips) * step) return false;
    }
    return true;
}

/// Small whole numbers as the bits of a 16-bit float: the compiler need not know the type.
constexpr std::uint16_t half_bits(int number) {
    if (number == 0) return 0;
    const unsigned sign = number < 0 ? 0x8000U : 0U;
    const auto size = static_cast<unsigned>(number < 0 ? -number : number);
    unsigned exponent = 0;
    while ((size >> (exponent + 1)) != 0) ++exponent;
    return static_cast<std::uint16_t>(sign | ((exponent + 15) << 10U) | ((size << (10 - exponent)) & 0x3FFU));
}
constexpr std::uint16_t bfloat_bits(int number) {
    if (number == 0) return 0;
    const unsigned sign = number < 0 ? 0x8000U : 0U;
    const auto size = static_cast<unsigned>(number < 0 ? -number : number);
    unsigned exponent = 0;
    while ((size >> (exponent + 1)) != 0) ++exponent;
    return static_cast<std::uint16_t>(sign | ((exponent + 127) << 7U) | ((size << (7 - exponent)) & 0x7FU));
}

/// 16-bit floats cannot count far. Their lanes go to and fro instead: a' = c - a, with c = 1, 2, 3, 4 by lane, from 8.
inline constexpr int swing_start = 8;
constexpr int swing_sum(std::size_t lane) {
    return static_cast<int>(lane % 4) + 1;
}
inline bool swung(const std::uint16_t* values, std::size_t count, std::uint64_t trips) {
    for (std::size_t i = 0; i < count; ++i) {
        const int expected = trips % 2 == 0 ? swing_start : swing_sum(i) - swing_start;
        if (values[i] != half_bits(expected)) return false;
    }
    return true;
}

/// Operands of a vector of up to 2048 bits, by lane.
template <class Value>
struct Lanes {
    alignas(256) Value value[256 / sizeof(Value)];
};
template <class Value>
Lanes<Value> step_lanes(std::size_t repeat = 1) {  // each step `repeat` times in a row: inputs of one output lane
    Lanes<Value> lanes{};
    for (std::size_t i = 0; i < 256 / sizeof(Value); ++i) lanes.value[i] = static_cast<Value>(lane_step(i / repeat));
    return lanes;
}
inline Lanes<std::uint16_t> bfloat_step_lanes(std::size_t repeat) {
    Lanes<std::uint16_t> lanes{};
    for (std::size_t i = 0; i < 128; ++i) lanes.value[i] = bfloat_bits(lane_step(i / repeat));
    return lanes;
}
inline Lanes<std::uint16_t> swing_lanes() {
    Lanes<std::uint16_t> lanes{};
    for (std::size_t i = 0; i < 128; ++i) lanes.value[i] = half_bits(swing_sum(i));
    return lanes;
}

}  // namespace roofline::measure
