// The loops over memory, written once for vectors of any width. ROOFLINE_MEMORY_LOOPS(SET, TARGET, WIDTH) defines them
// in a namespace SET, compiled for the instructions that TARGET (an attribute) allows; ROOFLINE_STREAMING_LOOPS those
// whose stores pass by the caches, given STORE(address, vector) and FENCE() of that instruction set.
//
// Bytes of one pass over arrays of `bytes`:  read bytes;  copy 2 x bytes;  triad 3 x bytes;  write bytes.
//
// Reading may ask for what comes `ahead` bytes on, a line with each line that is read: with `hint` 1 into the cache
// that all processors share, with 3 into the nearest (where it goes is up to the processor).
//
// The empty asm statements keep the compiler from seeing that passes repeat each other and from replacing a loop by
// memcpy or memset.
#pragma once

#include <cstddef>
#include <cstdint>

#include "roofline/measure/cpu_kernels.hpp"

#define ROOFLINE_MEMORY_LOOPS(SET, TARGET, WIDTH)                                                              \
    namespace SET {                                                                                            \
    typedef std::uint64_t Words __attribute__((vector_size(WIDTH), may_alias));                                \
    typedef double Doubles __attribute__((vector_size(WIDTH), may_alias));                                     \
    template <int streams, std::size_t ahead = 0, int hint = 1>                                                \
    TARGET std::uint64_t read_apart(const std::byte* b, std::size_t distance, std::size_t bytes,               \
                                    std::uint64_t passes) {                                                    \
        constexpr std::size_t vectors = streams == 1 ? 16 : 64 / WIDTH; /* of each stream in one trip */       \
        const std::size_t part = bytes / streams;                                                              \
        Words s0{}, s1{}, s2{}, s3{}, s4{}, s5{}, s6{}, s7{};                                                  \
        for (std::uint64_t pass = 0; pass < passes; ++pass) {                                                  \
            asm volatile("" : "+r"(b) : : "memory");                                                           \
            for (std::size_t at = 0; at < part; at += vectors * WIDTH) {                                       \
                _Pragma("GCC unroll 16") for (std::size_t stream = 0; stream < streams; ++stream) {            \
                    const auto* from = reinterpret_cast<const Words*>(b + stream * distance + at);             \
                    if constexpr (ahead > 0) __builtin_prefetch(b + stream * distance + at + ahead, 0, hint);  \
                    if constexpr (vectors % 8 == 0) {                                                          \
                        _Pragma("GCC unroll 2") for (std::size_t v = 0; v < vectors; v += 8) {                 \
                            s0 += from[v];                                                                     \
                            s1 += from[v + 1];                                                                 \
                            s2 += from[v + 2];                                                                 \
                            s3 += from[v + 3];                                                                 \
                            s4 += from[v + 4];                                                                 \
                            s5 += from[v + 5];                                                                 \
                            s6 += from[v + 6];                                                                 \
                            s7 += from[v + 7];                                                                 \
                        }                                                                                      \
                    } else if constexpr (vectors == 4) {                                                       \
                        s0 += from[0];                                                                         \
                        s1 += from[1];                                                                         \
                        s2 += from[2];                                                                         \
                        s3 += from[3];                                                                         \
                    } else if constexpr (vectors == 2) {                                                       \
                        (stream % 2 == 0 ? s0 : s2) += from[0];                                                \
                        (stream % 2 == 0 ? s1 : s3) += from[1];                                                \
                    } else {                                                                                   \
                        (stream % 4 == 0 ? s0 : stream % 4 == 1 ? s1 : stream % 4 == 2 ? s2 : s3) += from[0];  \
                    }                                                                                          \
                }                                                                                              \
            }                                                                                                  \
        }                                                                                                      \
        const Words all = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));                                   \
        std::uint64_t sum = 0;                                                                                 \
        for (std::size_t lane = 0; lane < WIDTH / 8; ++lane) sum += all[lane];                                 \
        return sum;                                                                                            \
    }                                                                                                          \
    template <int streams, std::size_t ahead = 0, int hint = 1>                                                \
    TARGET std::uint64_t read(std::byte*, const std::byte* b, const std::byte*, std::size_t bytes,             \
                              std::uint64_t passes) {                                                          \
        return read_apart<streams, ahead, hint>(b, bytes / streams, bytes, passes);                            \
    }                                                                                                          \
    TARGET inline std::uint64_t copy(std::byte* a, const std::byte* b, const std::byte*, std::size_t bytes,    \
                                     std::uint64_t passes) {                                                   \
        for (std::uint64_t pass = 0; pass < passes; ++pass) {                                                  \
            for (std::size_t at = 0; at < bytes; at += 8 * WIDTH) {                                            \
                asm volatile("" : : : "memory");                                                               \
                const auto* from = reinterpret_cast<const Words*>(b + at);                                     \
                auto* to = reinterpret_cast<Words*>(a + at);                                                   \
                const Words v0 = from[0], v1 = from[1], v2 = from[2], v3 = from[3];                            \
                const Words v4 = from[4], v5 = from[5], v6 = from[6], v7 = from[7];                            \
                to[0] = v0, to[1] = v1, to[2] = v2, to[3] = v3;                                                \
                to[4] = v4, to[5] = v5, to[6] = v6, to[7] = v7;                                                \
            }                                                                                                  \
        }                                                                                                      \
        return 0;                                                                                              \
    }                                                                                                          \
    TARGET inline std::uint64_t triad(std::byte* a, const std::byte* b, const std::byte* c, std::size_t bytes, \
                                      std::uint64_t passes) {                                                  \
        for (std::uint64_t pass = 0; pass < passes; ++pass) {                                                  \
            for (std::size_t at = 0; at < bytes; at += 4 * WIDTH) {                                            \
                asm volatile("" : : : "memory");                                                               \
                const auto* first = reinterpret_cast<const Doubles*>(b + at);                                  \
                const auto* second = reinterpret_cast<const Doubles*>(c + at);                                 \
                auto* to = reinterpret_cast<Doubles*>(a + at);                                                 \
                const Doubles v0 = first[0] + second[0] * triad_factor;                                        \
                const Doubles v1 = first[1] + second[1] * triad_factor;                                        \
                const Doubles v2 = first[2] + second[2] * triad_factor;                                        \
                const Doubles v3 = first[3] + second[3] * triad_factor;                                        \
                to[0] = v0, to[1] = v1, to[2] = v2, to[3] = v3;                                                \
            }                                                                                                  \
        }                                                                                                      \
        return 0;                                                                                              \
    }                                                                                                          \
    TARGET inline std::uint64_t write(std::byte* a, const std::byte*, const std::byte*, std::size_t bytes,     \
                                      std::uint64_t passes) {                                                  \
        Doubles value = Doubles{} + written_value;                                                             \
        for (std::uint64_t pass = 0; pass < passes; ++pass) {                                                  \
            for (std::size_t at = 0; at < bytes; at += 8 * WIDTH) {                                            \
                asm volatile("" : : : "memory");                                                               \
                auto* to = reinterpret_cast<Doubles*>(a + at);                                                 \
                to[0] = value, to[1] = value, to[2] = value, to[3] = value;                                    \
                to[4] = value, to[5] = value, to[6] = value, to[7] = value;                                    \
            }                                                                                                  \
        }                                                                                                      \
        return 0;                                                                                              \
    }                                                                                                          \
    }

#define ROOFLINE_STREAMING_LOOPS(SET, TARGET, WIDTH, STORE, FENCE)                                                    \
    namespace SET {                                                                                                   \
    TARGET inline std::uint64_t streaming_copy(std::byte* a, const std::byte* b, const std::byte*, std::size_t bytes, \
                                               std::uint64_t passes) {                                                \
        for (std::uint64_t pass = 0; pass < passes; ++pass) {                                                         \
            for (std::size_t at = 0; at < bytes; at += 4 * WIDTH) {                                                   \
                asm volatile("" : : : "memory");                                                                      \
                const auto* from = reinterpret_cast<const Words*>(b + at);                                            \
                const Words v0 = from[0], v1 = from[1], v2 = from[2], v3 = from[3];                                   \
                STORE(a + at, v0);                                                                                    \
                STORE(a + at + WIDTH, v1);                                                                            \
                STORE(a + at + 2 * WIDTH, v2);                                                                        \
                STORE(a + at + 3 * WIDTH, v3);                                                                        \
            }                                                                                                         \
        }                                                                                                             \
        FENCE();                                                                                                      \
        return 0;                                                                                                     \
    }                                                                                                                 \
    TARGET inline std::uint64_t streaming_triad(std::byte* a, const std::byte* b, const std::byte* c,                 \
                                                std::size_t bytes, std::uint64_t passes) {                            \
        for (std::uint64_t pass = 0; pass < passes; ++pass) {                                                         \
            for (std::size_t at = 0; at < bytes; at += 4 * WIDTH) {                                                   \
                asm volatile("" : : : "memory");                                                                      \
                const auto* first = reinterpret_cast<const Doubles*>(b + at);                                         \
                const auto* second = reinterpret_cast<const Doubles*>(c + at);                                        \
                const Doubles v0 = first[0] + second[0] * triad_factor;                                               \
                const Doubles v1 = first[1] + second[1] * triad_factor;                                               \
                const Doubles v2 = first[2] + second[2] * triad_factor;                                               \
                const Doubles v3 = first[3] + second[3] * triad_factor;                                               \
                STORE(a + at, v0);                                                                                    \
                STORE(a + at + WIDTH, v1);                                                                            \
                STORE(a + at + 2 * WIDTH, v2);                                                                        \
                STORE(a + at + 3 * WIDTH, v3);                                                                        \
            }                                                                                                         \
        }                                                                                                             \
        FENCE();                                                                                                      \
        return 0;                                                                                                     \
    }                                                                                                                 \
    TARGET inline std::uint64_t streaming_write(std::byte* a, const std::byte*, const std::byte*, std::size_t bytes,  \
                                                std::uint64_t passes) {                                               \
        const Doubles value = Doubles{} + written_value;                                                              \
        for (std::uint64_t pass = 0; pass < passes; ++pass) {                                                         \
            for (std::size_t at = 0; at < bytes; at += 4 * WIDTH) {                                                   \
                asm volatile("" : : : "memory");                                                                      \
                STORE(a + at, value);                                                                                 \
                STORE(a + at + WIDTH, value);                                                                         \
                STORE(a + at + 2 * WIDTH, value);                                                                     \
                STORE(a + at + 3 * WIDTH, value);                                                                     \
            }                                                                                                         \
        }                                                                                                             \
        FENCE();                                                                                                      \
        return 0;                                                                                                     \
    }                                                                                                                 \
    }

/// One more way to read memory (and no cache).
#define ROOFLINE_ADD_ASKING_LOOP(SET, CALLED, WIDTH, HERE, STREAMS, AHEAD, HINT)                                  \
    kernels.memory.push_back({CALLED, Motion::read, STREAMS, false, WIDTH, SET::read<STREAMS, AHEAD, HINT>, HERE, \
                              nullptr, SET::read_apart<STREAMS, AHEAD, HINT>, true})

#define ROOFLINE_ADD_MEMORY_LOOPS(SET, CALLED, WIDTH, HERE)                                           \
    kernels.memory.push_back({CALLED, Motion::read, 1, false, WIDTH, SET::read<1>, HERE});            \
    kernels.memory.push_back(                                                                         \
        {CALLED, Motion::read, 2, false, WIDTH, SET::read<2>, HERE, nullptr, SET::read_apart<2>});    \
    kernels.memory.push_back(                                                                         \
        {CALLED, Motion::read, 4, false, WIDTH, SET::read<4>, HERE, nullptr, SET::read_apart<4>});    \
    kernels.memory.push_back(                                                                         \
        {CALLED, Motion::read, 8, false, WIDTH, SET::read<8>, HERE, nullptr, SET::read_apart<8>});    \
    kernels.memory.push_back(                                                                         \
        {CALLED, Motion::read, 16, false, WIDTH, SET::read<16>, HERE, nullptr, SET::read_apart<16>}); \
    kernels.memory.push_back({CALLED, Motion::copy, 1, false, WIDTH, SET::copy, HERE});               \
    kernels.memory.push_back({CALLED, Motion::triad, 1, false, WIDTH, SET::triad, HERE});             \
    kernels.memory.push_back({CALLED, Motion::write, 1, false, WIDTH, SET::write, HERE})

#define ROOFLINE_ADD_STREAMING_LOOPS(SET, CALLED, WIDTH, HERE)                                     \
    kernels.memory.push_back({CALLED, Motion::copy, 1, true, WIDTH, SET::streaming_copy, HERE});   \
    kernels.memory.push_back({CALLED, Motion::triad, 1, true, WIDTH, SET::streaming_triad, HERE}); \
    kernels.memory.push_back({CALLED, Motion::write, 1, true, WIDTH, SET::streaming_write, HERE})
