#include "roofline/measure/cpu_kernels.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include <fmt/format.h>

namespace roofline::measure {

#define ROOFLINE_ENTRY(name) void name##_kernels(Kernels& kernels);
#include "roofline/measure/cpu.inc"
#undef ROOFLINE_ENTRY

namespace {

double pattern(std::size_t word) {
    return static_cast<double>(word % page_words + 1);
}

double word_at(const std::byte* memory, std::size_t word) {
    double value = 0.0;
    std::memcpy(&value, memory + word * sizeof value, sizeof value);
    return value;
}

/// Words that are looked at: all of a small array, else the ends and some in between that fall on every place of a
/// line.
template <class Look>
void sample(std::size_t bytes, const Look& look) {
    const std::size_t words = bytes / sizeof(double);
    if (words == 0) return;
    const std::size_t step = words <= 4096 ? 1 : words / 509 | 1U;  // odd: not always the same word of a page
    for (std::size_t word = 0; word < words; word += step) look(word);
    look(words - 1);
}

}  // namespace

std::string_view name(Motion motion) {
    switch (motion) {
        case Motion::read:
            return "read";
        case Motion::copy:
            return "copy";
        case Motion::triad:
            return "triad";
        case Motion::write:
            return "write";
    }
    return "";
}

double arrays(Motion motion) {
    switch (motion) {
        case Motion::copy:
            return 2.0;
        case Motion::triad:
            return 3.0;
        case Motion::read:
        case Motion::write:
            return 1.0;
    }
    return 1.0;
}

Kernels all_kernels() {
    Kernels kernels;
#define ROOFLINE_ENTRY(name) name##_kernels(kernels);
#include "roofline/measure/cpu.inc"
#undef ROOFLINE_ENTRY
    return kernels;
}

Kernels kernels_here() {
    Kernels kernels = all_kernels();
    std::erase_if(kernels.flops, [](const FlopKernel& kernel) { return !kernel.here(); });
    std::erase_if(kernels.memory, [](const MemoryKernel& kernel) { return !kernel.here(); });
    return kernels;
}

std::string variant_of(const MemoryKernel& kernel) {
    std::string text(kernel.set);
    if (kernel.streams > 1) text += fmt::format(", {} streams", kernel.streams);
    if (kernel.streaming) text += ", past the caches";
    if (kernel.asking) text += ", asking ahead";
    return text;
}

std::vector<MemoryKernel> wide_ones(const std::vector<MemoryKernel>& kernels) {
    std::set<std::size_t, std::greater<>> widths;
    for (const MemoryKernel& kernel : kernels) widths.insert(kernel.width);
    if (widths.empty()) return {};
    const std::size_t least = widths.size() == 1 ? *widths.begin() : *std::next(widths.begin());
    std::vector<MemoryKernel> result;
    for (const MemoryKernel& kernel : kernels) {
        if (kernel.width >= least) result.push_back(kernel);
    }
    return result;
}

void fill_pages(std::byte* memory, std::size_t bytes) {
    for (std::size_t word = 0; word < bytes / sizeof(double); ++word) {
        const double value = pattern(word);
        std::memcpy(memory + word * sizeof value, &value, sizeof value);
    }
}

std::uint64_t page_word(std::size_t word) {
    const double value = pattern(word);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

std::uint64_t page_sum() {
    std::uint64_t sum = 0;
    for (std::size_t word = 0; word < page_words; ++word) sum += page_word(word);
    return sum;
}

std::uint64_t expected_sum(const MemoryKernel& kernel, std::size_t bytes, std::uint64_t passes) {
    return passes * (kernel.one_pass != nullptr ? kernel.one_pass(bytes) : bytes / page_bytes * page_sum());
}

void spoil(std::byte* a, std::size_t bytes) {
    const double wrong = -1.0;
    sample(bytes, [&](std::size_t word) { std::memcpy(a + word * sizeof wrong, &wrong, sizeof wrong); });
}

bool written_right(Motion motion, const std::byte* a, std::size_t bytes) {
    bool right = true;
    sample(bytes, [&](std::size_t word) {
        const double b = pattern(word);
        double expected = written_value;
        if (motion == Motion::copy) expected = b;
        if (motion == Motion::triad) expected = b + triad_factor * b;
        right = right && word_at(a, word) == expected;
    });
    return right;
}

}  // namespace roofline::measure
