// The loops that are timed on a CPU. Each instruction set is one file in cpu/ with `NAME_kernels(Kernels&)`; the folder
// is the registry, and every file compiles on every machine (to nothing where the instructions do not exist). Which
// ones run is decided at run time, by `here`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/device.hpp"
#include "roofline/core/dtype.hpp"

namespace roofline::measure {

/// Arithmetic in registers. Accumulators only ever hold whole numbers that their type can hold, so the answer after any
/// number of trips is known exactly.
struct FlopKernel {
    std::string_view set;  // instruction set, as people call it: "avx512"
    Engine engine = Engine::vector;
    DType type = DType::fp32;
    double flops = 0.0;                          // of one trip of the loop
    std::uint64_t longest = 0;                   // trips in one call, beyond which an accumulator could no longer count
    bool (*run)(std::uint64_t trips) = nullptr;  // whether every lane of every accumulator came out right
    bool (*here)() = nullptr;                    // the machine and the system can run it
    std::string_view detail = {};                // "with tile loads"
};

/// What a loop over memory does with arrays a, b and c.
enum class Motion { read, copy, triad, write };
std::string_view name(Motion motion);
/// Bytes that a program moves for each byte of an array: read b (1); b to a (2); b and 3 x c to a (3); to a (1).
/// A cache that first fetches a line to be written moves more; that is not counted, as is the custom.
double arrays(Motion motion);

/// Arrays are filled page by page with the doubles 1 ... 512 (see fill_pages), so that sums of whole pages are known.
struct MemoryKernel {
    std::string_view set;
    Motion motion = Motion::read;
    int streams = 1;         // places of the arrays that are walked at the same time
    bool streaming = false;  // stores that pass by the caches
    std::size_t width = 16;  // bytes of one load or store
    /// Walks `passes` times over `bytes` (a multiple of 4096 x streams) of the arrays. Reading returns the sum of all
    /// words read, as 64-bit integers; the others return nothing of use, and the array a tells.
    std::uint64_t (*run)(std::byte* a, const std::byte* b, const std::byte* c, std::size_t bytes,
                         std::uint64_t passes) = nullptr;
    bool (*here)() = nullptr;
    /// What one pass of reading returns, where it is not the sum of the words.
    std::uint64_t (*one_pass)(std::size_t bytes) = nullptr;
    /// Reading with several streams: `bytes` in all, from as many places, `distance` apart. Streams that never jump are
    /// read faster than those that end with every piece.
    std::uint64_t (*apart)(const std::byte* b, std::size_t distance, std::size_t bytes, std::uint64_t passes) = nullptr;
    bool asking = false;  // asks for what comes, into a cache
};

/// What `passes` passes of reading over `bytes` must return.
std::uint64_t expected_sum(const MemoryKernel& kernel, std::size_t bytes, std::uint64_t passes);

struct Kernels {
    std::vector<FlopKernel> flops;
    std::vector<MemoryKernel> memory;
};

/// All that were compiled in, whether this machine can run them or not.
Kernels all_kernels();
/// Those this machine can run.
Kernels kernels_here();

/// "avx512, 8 streams, past the caches".
std::string variant_of(const MemoryKernel& kernel);
/// The instruction sets with the widest vectors, the two widest widths of them.
std::vector<MemoryKernel> wide_ones(const std::vector<MemoryKernel>& kernels);

inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t page_words = page_bytes / sizeof(double);
inline constexpr double triad_factor = 3.0;
inline constexpr double written_value = 7.0;

/// Writes the pattern that kernels are checked by. Also what makes the system give real pages: memory that was never
/// written reads several times too fast, because all of it is the same page of zeros.
void fill_pages(std::byte* memory, std::size_t bytes);
/// Sum of the words of one such page, as 64-bit integers.
std::uint64_t page_sum();
/// Words of one page, as 64-bit integers, for kernels that add them up in another way.
std::uint64_t page_word(std::size_t word);
/// Spoils, then later checks, a few words of every part of array a that a kernel is to write.
void spoil(std::byte* a, std::size_t bytes);
bool written_right(Motion motion, const std::byte* a, std::size_t bytes);

}  // namespace roofline::measure
