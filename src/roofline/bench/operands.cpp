#include "roofline/bench/operands.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include "roofline/bench/kernels/groups.hpp"

namespace roofline::bench {
namespace {

constexpr std::int64_t aligned(std::int64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

void fill(Memory& memory, DType type, std::uint64_t seed, Threads& threads, float size_of_values = 1.0F) {
    threads.ranges(memory.bytes() / (bits(type) / 8), 1 << 16, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
            const float value = size_of_values * random_value(seed + static_cast<std::uint64_t>(i));
            if (type == DType::bf16)
                memory.as<Bf16>()[i] = to_bf16(value);
            else
                memory.as<float>()[i] = value;
        }
    });
}

std::vector<float> random_floats(std::int64_t count, std::uint64_t seed) {
    std::vector<float> values(size(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = random_value(seed + i);
    return values;
}

}  // namespace

// A huge page is had where all of it can be: so memory begins at the boundary of one (what lies before it is given
// back), and ends at one where that costs little. What begins anywhere has small pages at both ends.
Result<Memory> Memory::reserve(std::int64_t bytes) {
    constexpr std::int64_t huge = 2 << 20;
    const auto whole = [](std::int64_t count, std::int64_t page) { return (count + page - 1) / page * page; };
    Memory memory;
    memory.bytes_ = std::max<std::int64_t>(bytes, 64);
    const bool to_the_end = 16 * (whole(memory.bytes_, huge) - memory.bytes_) <= memory.bytes_;
    memory.mapped_ = whole(memory.bytes_, to_the_end ? huge : ::sysconf(_SC_PAGESIZE));
    const std::int64_t more = memory.mapped_ >= huge ? huge : 0;
    void* data =
        ::mmap(nullptr, size(memory.mapped_ + more), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        memory.bytes_ = memory.mapped_ = 0;
        return std::unexpected(
            Problem{fmt::format("{:.1f} GB of memory cannot be had", static_cast<double>(bytes) / 1e9), true});
    }
    memory.data_ = static_cast<std::byte*>(data);
    if (more > 0) {
        const auto place = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data));
        const std::int64_t before = whole(place, huge) - place;
        if (before > 0) ::munmap(data, size(before));
        memory.data_ += before;
        if (more > before) ::munmap(memory.data_ + memory.mapped_, size(more - before));
    }
#ifdef MADV_HUGEPAGE
    ::madvise(memory.data_, size(memory.mapped_), MADV_HUGEPAGE);  // fewer page walks; a wish, not a need
#endif
    return memory;
}

Memory::Memory(Memory&& other) noexcept : data_(other.data_), bytes_(other.bytes_), mapped_(other.mapped_) {
    other.data_ = nullptr;
    other.bytes_ = other.mapped_ = 0;
}

Memory& Memory::operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    return *this;
}

Memory::~Memory() {
    if (data_ != nullptr) ::munmap(data_, size(mapped_));
}

std::int64_t free_memory() {
    std::int64_t free = std::numeric_limits<std::int64_t>::max();
    std::ifstream system("/proc/meminfo");
    std::string key;
    std::string unit;
    for (std::int64_t value = 0; system >> key >> value; std::getline(system, unit)) {
        if (key == "MemAvailable:") free = value * 1024;
    }
    std::int64_t limit = 0;
    std::int64_t used = 0;
    std::ifstream most("/sys/fs/cgroup/memory.max");
    std::ifstream now("/sys/fs/cgroup/memory.current");
    if (most >> limit && now >> used) free = std::min(free, limit - used);
    return std::max<std::int64_t>(free, 0);
}

namespace {

std::int64_t blocks_of(std::int64_t side) {
    return (side + fp8_block_side - 1) / fp8_block_side;
}

}  // namespace

std::int64_t WeightMatrix::bytes(std::int64_t n, std::int64_t k, WeightFormat type) {
    const std::int64_t values = aligned(n * k * bits(type) / 8);
    if (type == WeightFormat::int8 || type == WeightFormat::fp8) return values + aligned(n * 4);
    if (type == WeightFormat::fp8_block) return values + aligned(blocks_of(n) * blocks_of(k) * 4);
    if (type == WeightFormat::int4) {
        const std::int64_t groups = n * (k / int4_group);
        return values + aligned(groups * 2) + aligned((groups + 1) / 2);
    }
    if (type == WeightFormat::mxfp4) return values + aligned(n * (k / small_group));
    if (type == WeightFormat::nvfp4) return values + aligned(n * (k / nvfp4_group));
    if (type == WeightFormat::q4_0 || type == WeightFormat::q8_0) return values + aligned(n * (k / small_group) * 2);
    if (type == WeightFormat::q4_k || type == WeightFormat::q5_k)
        return values + aligned(n * (k / k_block) * q4_k_header);
    if (type == WeightFormat::q6_k) return values + aligned(n * (k / k_block) * q6_k_header);
    return values;
}

namespace {

/// Random scales, in units in which the largest weights are about `magnitude`; what is taken off is about their mean.
void fill_headers(std::uint8_t* to, std::int64_t count, WeightFormat type, float magnitude, std::uint64_t seed) {
    const bool of_six_bits = type != WeightFormat::q6_k;
    const std::int64_t bytes = of_six_bits ? q4_k_header : q6_k_header;
    const std::int64_t small = of_six_bits ? 4 : 2;  // where scales of groups begin
    const float largest = type == WeightFormat::q4_k ? 8.0F : type == WeightFormat::q5_k ? 16.0F : 32.0F;
    const std::uint16_t unit = to_half(magnitude / (largest * (of_six_bits ? 32.0F : 64.0F)));
    const std::uint16_t unit_off = to_half(magnitude / 32.0F);
    for (std::int64_t block = 0; block < count; ++block, to += bytes) {
        std::memcpy(to, &unit, 2);
        if (of_six_bits) std::memcpy(to + 2, &unit_off, 2);
        for (std::int64_t i = small; i < bytes; ++i)
            to[i] = static_cast<std::uint8_t>(mixed(seed + static_cast<std::uint64_t>(block * bytes + i)));
    }
}

}  // namespace

Result<WeightMatrix> WeightMatrix::random(std::int64_t n, std::int64_t k, WeightFormat type, std::uint64_t seed,
                                          Threads& threads) {
    WeightMatrix matrix;
    matrix.n_ = n;
    matrix.k_ = k;
    auto memory = Memory::reserve(bytes(n, k, type));
    if (!memory) return std::unexpected(memory.error());
    matrix.memory_ = std::move(*memory);
    std::byte* values = matrix.memory_.data();
    matrix.view_.type = type;
    matrix.view_.values = values;
    // Sums of k products of evenly spread numbers then have about the size of the input.
    const float magnitude = std::sqrt(3.0F / static_cast<float>(k));
    if (type == WeightFormat::fp32 || type == WeightFormat::bf16) {
        fill(matrix.memory_, type == WeightFormat::bf16 ? DType::bf16 : DType::fp32, seed, threads, magnitude);
        return matrix;
    }
    const std::int64_t payload = aligned(n * k * bits(type) / 8);
    threads.ranges(payload / 8, 1 << 14, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
            std::uint64_t value = mixed(seed + static_cast<std::uint64_t>(i));
            if (type == WeightFormat::int8 || type == WeightFormat::q8_0) {  // -128 is no weight: scales are symmetric
                for (unsigned shift = 0; shift < 64; shift += 8) {
                    if (((value >> shift) & 255U) == 128U) value ^= std::uint64_t{1} << shift;
                }
            }
            if (type == WeightFormat::fp8 || type == WeightFormat::fp8_block) {
                for (unsigned shift = 0; shift < 64; shift += 8) {  // all ones but the sign are no number
                    if (((value >> shift) & 127U) == 127U) value ^= std::uint64_t{1} << shift;
                }
            }
            std::memcpy(values + i * 8, &value, 8);
        }
    });
    if (type == WeightFormat::int8) {
        auto* scales = reinterpret_cast<float*>(values + payload);
        for (std::int64_t row = 0; row < n; ++row)
            scales[row] = magnitude * (1.0F + 0.5F * random_value(seed + 7 + static_cast<std::uint64_t>(row))) / 127.0F;
        matrix.view_.row_scales = scales;
    } else if (type == WeightFormat::fp8 || type == WeightFormat::fp8_block) {
        // e4m3 of random bits is 100 by the root of its mean square, where numbers in +-1 are 0.58.
        auto* scales = reinterpret_cast<float*>(values + payload);
        const bool by_rows = type == WeightFormat::fp8;
        const std::int64_t count = by_rows ? n : blocks_of(n) * blocks_of(k);
        for (std::int64_t i = 0; i < count; ++i)
            scales[i] = magnitude * (1.0F + 0.5F * random_value(seed + 13 + static_cast<std::uint64_t>(i))) / 173.0F;
        (by_rows ? matrix.view_.row_scales : matrix.view_.block_scales) = scales;
    } else if (type == WeightFormat::mxfp4) {
        // e2m1 of random bits is 2.9 by the root of its mean square, where numbers in +-1 are 0.58.
        const int power = 127 + static_cast<int>(std::lround(std::log2(magnitude / 5.07F)));
        auto* powers = reinterpret_cast<std::uint8_t*>(values + payload);
        for (std::int64_t i = 0; i < n * (k / small_group); ++i) {
            const auto turn = static_cast<int>(mixed(seed + 11 + static_cast<std::uint64_t>(i)) % 3);
            powers[i] = static_cast<std::uint8_t>(power - 1 + turn);
        }
        matrix.view_.group_powers = powers;
    } else if (type == WeightFormat::nvfp4) {
        auto* scales = reinterpret_cast<std::uint8_t*>(values + payload);
        for (std::int64_t i = 0; i < n * (k / nvfp4_group); ++i)  // from 0.25 to 0.9375
            scales[i] = static_cast<std::uint8_t>(0x28U + mixed(seed + 15 + static_cast<std::uint64_t>(i)) % 16);
        matrix.view_.small_scales = scales;
        matrix.view_.scale_of_all = magnitude / 3.0F;
    } else if (type == WeightFormat::q4_0 || type == WeightFormat::q8_0) {
        const float largest = type == WeightFormat::q4_0 ? 8.0F : 127.0F;
        auto* scales = reinterpret_cast<std::uint16_t*>(values + payload);
        for (std::int64_t i = 0; i < n * (k / small_group); ++i) {
            const float turn = random_value(seed + 17 + static_cast<std::uint64_t>(i));
            scales[i] = to_half(magnitude * (1.0F + 0.5F * turn) / largest);
        }
        matrix.view_.half_scales = scales;
    } else if (grain_of(type) == k_block) {
        auto* headers = reinterpret_cast<std::uint8_t*>(values + payload);
        fill_headers(headers, n * (k / k_block), type, magnitude, seed + 19);
        matrix.view_.headers = headers;
    } else {
        const std::int64_t groups = n * (k / int4_group);
        auto* scales = reinterpret_cast<Bf16*>(values + payload);
        auto* zeros = reinterpret_cast<std::uint8_t*>(values + payload + aligned(groups * 2));
        for (std::int64_t group = 0; group < groups; ++group)
            scales[group] =
                to_bf16(magnitude * (1.0F + 0.5F * random_value(seed + 9 + static_cast<std::uint64_t>(group))) / 8.0F);
        for (std::int64_t i = 0; i < (groups + 1) / 2; ++i)
            zeros[i] = static_cast<std::uint8_t>(0x66U + (mixed(seed + static_cast<std::uint64_t>(i)) & 0x33U));
        matrix.view_.group_scales = scales;
        matrix.view_.group_zeros = zeros;
    }
    return matrix;
}

std::int64_t WeightMatrix::bytes(std::int64_t n, std::int64_t k, const StoredAs& stored) {
    return bytes(n - stored.others.count, k, stored.format) + bytes(stored.others.count, k, stored.others.format);
}

Result<WeightMatrix> WeightMatrix::random(std::int64_t n, std::int64_t k, const StoredAs& stored, std::uint64_t seed,
                                          Threads& threads) {
    auto matrix = random(n - stored.others.count, k, stored.format, seed, threads);
    if (!matrix || stored.others.count == 0) return matrix;
    auto others = random(stored.others.count, k, stored.others.format, seed + 23, threads);
    if (!others) return others;
    matrix->others_ = std::make_unique<WeightMatrix>(std::move(*others));
    matrix->view_.others = &matrix->others_->view_;
    matrix->view_.other_rows = stored.others.count;
    return matrix;
}

Result<WeightMatrix> WeightMatrix::in_tiles(Tiles tiles, Threads& threads) const {
    const std::int64_t again = bytes(n_, k_, view_.type);
    const std::int64_t free = free_memory();
    if (again > free / 10 * 9) {
        return std::unexpected(
            Problem{fmt::format("needs {:.1f} GB of memory for weights in tiles, and {:.1f} GB are free",
                                static_cast<double>(again) / 1e9, static_cast<double>(free) / 1e9),
                    true});
    }
    auto laid = view_.type == WeightFormat::int4 ? int4_in_tiles(tiles, threads) : bytes_in_tiles(tiles, threads);
    if (laid) laid->view_.tiles = tiles;
    return laid;
}

Result<WeightMatrix> WeightMatrix::bytes_in_tiles(Tiles tiles, Threads& threads) const {
    const std::int64_t row_bytes = k_ * bits(view_.type) / 8;
    const std::int64_t count = (n_ + tile_rows - 1) / tile_rows;
    const std::int64_t scales_at = aligned(count * tile_rows * row_bytes);
    auto memory = Memory::reserve(scales_at + (view_.row_scales != nullptr ? n_ * 4 : 0));
    if (!memory) return std::unexpected(memory.error());
    WeightMatrix matrix;
    matrix.n_ = n_;
    matrix.k_ = k_;
    matrix.memory_ = std::move(*memory);
    std::byte* values = matrix.memory_.data();
    const auto* from = static_cast<const std::byte*>(view_.values);
    threads.ranges(count, 16, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first * tile_rows; row < std::min(n_, last * tile_rows); ++row) {
            for (std::int64_t at = 0; at < row_bytes; at += 4)  // is together by eights too
                std::memcpy(values + tile_place(tiles, row, at, row_bytes), from + row * row_bytes + at, 4);
        }
    });
    matrix.view_ = view_;
    matrix.view_.values = values;
    if (view_.row_scales != nullptr) {
        auto* scales = reinterpret_cast<float*>(values + scales_at);
        std::copy_n(view_.row_scales, n_, scales);
        matrix.view_.row_scales = scales;
    }
    return matrix;
}

Result<WeightMatrix> WeightMatrix::int4_in_tiles(Tiles tiles, Threads& threads) const {
    const Int4Tiles lie(k_);
    const std::int64_t count = (n_ + tile_rows - 1) / tile_rows;
    const std::int64_t scales_at = aligned(count * lie.values);
    const std::int64_t zeros_at = scales_at + aligned(count * lie.scales * 2);
    const std::int64_t sums_at = zeros_at + aligned(count * lie.zeros);
    auto memory = Memory::reserve(sums_at + (tiles == Tiles::fours ? count * lie.scales * 2 : 0));
    if (!memory) return std::unexpected(memory.error());
    WeightMatrix matrix;
    matrix.n_ = n_;
    matrix.k_ = k_;
    matrix.memory_ = std::move(*memory);
    auto* values = reinterpret_cast<std::uint8_t*>(matrix.memory_.data());
    auto* scales = reinterpret_cast<Bf16*>(values + scales_at);
    std::uint8_t* zeros = values + zeros_at;
    auto* sums = tiles == Tiles::fours ? reinterpret_cast<std::int16_t*>(values + sums_at) : nullptr;
    const auto* from = static_cast<const std::uint8_t*>(view_.values);
    const std::int64_t groups = k_ / int4_group;
    threads.ranges(count, 16, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first * tile_rows; row < std::min(n_, last * tile_rows); ++row) {
            for (std::int64_t column = 0; column < k_; column += column % 16 == 15 ? 17 : 1)
                values[lie.value_place(row, column)] = from[row * k_ / 2 + column / 32 * 16 + column % 16];
            for (std::int64_t group = 0; group < groups; ++group) {
                const std::int64_t place = row * groups + group;
                scales[lie.scale_place(row, group)] = view_.group_scales[place];
                const int zero = (view_.group_zeros[place / 2] >> (place % 2 * 4)) & 15;
                std::uint8_t& both = zeros[lie.zero_place(row, group)];
                both = static_cast<std::uint8_t>(group % 2 == 0 ? zero : both | zero << 4);
                if (sums == nullptr) continue;
                int sum = 0;  // of 64 bytes, 31,680 at the most
                for (int i = 0; i < 64; ++i) sum += from[place * 64 + i] + 16 * (from[place * 64 + i] & 15);
                sums[lie.scale_place(row, group)] = static_cast<std::int16_t>(-sum);
            }
        }
    });
    matrix.view_ = {
        .type = WeightFormat::int4, .values = values, .group_scales = scales, .group_zeros = zeros, .group_sums = sums};
    return matrix;
}

namespace {

/// By its definition, whatever table kernels look it up in.
double of_e4m3(int bits) {
    const int exponent = bits >> 3 & 15;
    const double size = exponent > 0 ? std::ldexp(8 + (bits & 7), exponent - 10) : std::ldexp(bits & 7, -9);
    return bits < 128 ? size : -size;
}

}  // namespace

namespace {

double of_half(const std::uint8_t* from) {
    const int bits = from[0] | from[1] << 8;
    const int exponent = bits >> 10 & 31;
    const double size = exponent > 0 ? std::ldexp(1024 + (bits & 1023), exponent - 25) : std::ldexp(bits & 1023, -24);
    return bits < 0x8000 ? size : -size;
}

/// As products.hpp says that they lie, whatever kernels make of it.
double of_gguf(const Weights& weights, std::int64_t row, std::int64_t column, std::int64_t k) {
    const auto* values = static_cast<const std::uint8_t*>(weights.values);
    const auto half_of = [&](const std::uint8_t* bytes, std::int64_t at) {  // of runs of 32 in 16 bytes
        const int both = bytes[at / 32 * 16 + at % 16];
        return at % 32 < 16 ? both & 15 : both >> 4;
    };
    const std::int64_t block = row * (k / k_block) + column / k_block;
    const std::int64_t inside = column % k_block;
    const std::int64_t group = inside / 32;
    switch (weights.type) {
        case WeightFormat::q4_0:
        case WeightFormat::q8_0: {
            const double scale =
                of_half(reinterpret_cast<const std::uint8_t*>(weights.half_scales + (row * k + column) / 32));
            if (weights.type == WeightFormat::q4_0) return (half_of(values, row * k + column) - 8) * scale;
            return static_cast<std::int8_t>(values[row * k + column]) * scale;
        }
        case WeightFormat::q4_k:
        case WeightFormat::q5_k: {
            int q = 0;
            if (weights.type == WeightFormat::q4_k) {
                q = half_of(values, row * k + column);
            } else {
                const std::uint8_t* whole = values + block * 160;
                const std::int64_t byte = inside / 32 * 16 + inside % 16;  // of its low half
                const std::int64_t bit = byte / 64 * 128 + (inside % 32 < 16 ? 0 : 64) + byte % 64;
                q = half_of(whole, inside) + 16 * (whole[128 + bit / 8] >> bit % 8 & 1);
            }
            const std::uint8_t* header = weights.headers + block * 16;
            const int upper = header[12 + group / 2] >> (group % 2 * 4) & 15;
            const int scale = (header[4 + group] & 15) + 16 * (upper & 3);
            const int off = (header[4 + group] >> 4) + 16 * (upper >> 2);
            return of_half(header) * scale * q - of_half(header + 2) * off;
        }
        default: {
            const std::uint8_t* low = values + block * 192;
            const std::uint8_t* header = weights.headers + block * 18;
            const std::int64_t byte = inside / 32 * 16 + inside % 16;  // of its low half
            const int shift = (inside % 32 < 16 ? 0 : 2) + (byte < 64 ? 0 : 4);
            const int q = half_of(low, inside) + 16 * (low[128 + byte % 64] >> shift & 3);
            const int scale = static_cast<std::int8_t>(header[2 + (inside % 32 < 16 ? 0 : 8) + group]);
            return of_half(header) * scale * (q - 32);
        }
    }
}

}  // namespace

double WeightMatrix::at(std::int64_t row, std::int64_t column) const {
    if (row >= n_ && others_ != nullptr) return others_->at(row - n_, column);
    const std::int64_t width = bits(view_.type) / 8;
    const std::int64_t place = view_.in_tiles() && width > 0
                                   ? tile_place(view_.tiles, row, column * width, k_ * width) / width
                                   : row * k_ + column;
    switch (view_.type) {
        case WeightFormat::fp32:
            return static_cast<const float*>(view_.values)[place];
        case WeightFormat::bf16:
            return from_bf16(static_cast<const Bf16*>(view_.values)[place]);
        case WeightFormat::int8:
            return static_cast<double>(static_cast<const std::int8_t*>(view_.values)[place]) * view_.row_scales[row];
        case WeightFormat::fp8:
        case WeightFormat::fp8_block: {
            const std::uint8_t bits = static_cast<const std::uint8_t*>(view_.values)[place];
            return of_e4m3(bits) * static_cast<double>(view_.fp8_scale(row, column, k_));
        }
        case WeightFormat::q4_0:
        case WeightFormat::q8_0:
        case WeightFormat::q4_k:
        case WeightFormat::q5_k:
        case WeightFormat::q6_k:
            return of_gguf(view_, row, column, k_);
        case WeightFormat::mxfp4:
        case WeightFormat::nvfp4: {
            constexpr double sizes[8] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
            const auto* bytes = static_cast<const std::uint8_t*>(view_.values);
            const std::uint8_t both = bytes[row * k_ / 2 + column / 32 * 16 + column % 16];
            const int encoded = column % 32 < 16 ? both & 15 : both >> 4;
            const double value = encoded < 8 ? sizes[encoded] : -sizes[encoded - 8];
            if (view_.type == WeightFormat::nvfp4) {
                const std::uint8_t scale = view_.small_scales[row * (k_ / nvfp4_group) + column / nvfp4_group];
                return value * of_e4m3(scale) * static_cast<double>(view_.scale_of_all);
            }
            return std::ldexp(value, view_.group_powers[row * (k_ / small_group) + column / small_group] - 127);
        }
        default: {
            const auto* bytes = static_cast<const std::uint8_t*>(view_.values);
            const Int4Tiles lie(k_);
            const std::uint8_t both =
                bytes[view_.in_tiles() ? lie.value_place(row, column) : row * k_ / 2 + column / 32 * 16 + column % 16];
            const int q = column % 32 < 16 ? both & 15 : both >> 4;
            const std::int64_t group = column / int4_group;
            const std::int64_t in_row = row * (k_ / int4_group) + group;
            const std::int64_t scale = view_.in_tiles() ? lie.scale_place(row, group) : in_row;
            const std::int64_t zero = view_.in_tiles() ? 2 * lie.zero_place(row, group) + group % 2 : in_row;
            return (static_cast<double>(q) - view_.group_zero(zero)) * view_.group_scale(scale);
        }
    }
}

void Operands::poison() {
    std::fill(y.begin(), y.end(), std::numeric_limits<float>::quiet_NaN());
}

HeadWidths head_widths(const Task& task) {
    return {task.head_dim, value_width(task), task.latent};
}

SelectiveShape selective_shape(const Task& task) {
    return {task.batch, task.width, task.head_dim, task.tokens};
}

StateShape state_shape(const Task& task) {
    return {task.batch, task.query_heads, task.kv_heads, task.head_dim, task.value_dim, task.tokens};
}

namespace {

/// How many numbers go in and come out, weights and cache aside.
struct Numbers {
    std::int64_t in;
    std::int64_t out;
};
Numbers numbers_of(const Task& task) {
    const std::int64_t values = task.rows * task.width;
    const std::int64_t heads = task.rows * fused_heads(task) * task.head_dim;
    const std::int64_t queries = task.batch * task.tokens * task.query_heads;
    switch (task.kind) {
        case TaskKind::product:
            return {task.m * task.k, task.m * task.n};
        case TaskKind::absorption: {
            const std::int64_t of_heads = task.rows * task.query_heads;
            return {of_heads * (task.head_dim + task.k), of_heads * (task.k + task.value_dim)};
        }
        case TaskKind::attention:
            return {queries * task.head_dim, queries * value_width(task)};
        case TaskKind::rotary:
        case TaskKind::kv_write:
            return {heads, heads};
        case TaskKind::state_space:
            return {task.rows * state_space_width(state_shape(task)), values};
        case TaskKind::delta_rule:
            return {task.rows * delta_width(state_shape(task)), values};
        case TaskKind::selective_scan:
            return {task.rows * selective_shape(task).width(), values};
        case TaskKind::activation:
        case TaskKind::multiply:
        case TaskKind::add_two:
        case TaskKind::gated_norm:
            return {2 * values, values};
        case TaskKind::index_scores:  // a score of every entry
            return {values, task.rows * task.context};
        case TaskKind::output_gate:
            return {values + values / task.run, values};
        case TaskKind::sampling:
            return {values, task.rows};
        case TaskKind::embedding:
            return {0, values};
        case TaskKind::choice:  // out: an expert and its share, times the number of experts
            return {values, 2 * task.rows * task.chosen};
        case TaskKind::expert_sum:
            return {task.chosen * values, values};
        default:
            return {values, values};
    }
}

std::int64_t gains_of(const Task& task) {
    if (task.kind == TaskKind::selective_scan) return task.width * task.head_dim;
    if (task.sinks || keeps_state(task)) return task.query_heads;
    return task.kind == TaskKind::convolution ? task.taps * task.width : task.width;
}

struct MatrixShape {
    std::int64_t n;
    std::int64_t k;
};
std::vector<MatrixShape> shapes_of(const Task& task) {
    if (task.kind == TaskKind::product) return {size(task.experts), {task.n, task.k}};
    if (task.kind != TaskKind::absorption) return {};
    std::vector<MatrixShape> shapes(size(task.query_heads), {task.k, task.head_dim});
    shapes.resize(size(2 * task.query_heads), {task.value_dim, task.k});
    return shapes;
}

/// Random floats, written as a step would.
void fill_index_keys(Operands& operands, std::size_t copy, Threads& threads) {
    const Task& task = operands.task;
    const IndexKeys keys = operands.index_keys(copy);
    const std::vector<float> rows =
        random_floats(task.batch * task.context * task.head_dim, static_cast<std::uint64_t>(copy + 1) << 40U);
    write_index_keys({rows.data(), task.head_dim}, keys, task.batch, task.context, 0, threads);
}

/// Entries of each row that sees more, in rising order: every one as likely as another.
void choose_at_random(Operands& operands) {
    const Task& task = operands.task;
    operands.places.assign(size(task.rows * task.chosen), 0);
    for (std::int64_t row = 0; row < task.rows; ++row) {
        const std::int64_t seen = task.context - task.tokens + row % task.tokens + 1;
        std::int64_t wanted = task.chosen;
        std::int64_t* to = operands.places.data() + row * task.chosen;
        for (std::int64_t place = 0; place < seen && seen >= task.chosen; ++place) {
            const auto chance = mixed(static_cast<std::uint64_t>(row * task.context + place)) %
                                static_cast<std::uint64_t>(seen - place);
            if (static_cast<std::int64_t>(chance) < wanted) *to++ = place, --wanted;
        }
    }
}

}  // namespace

IndexKeys Operands::index_keys(std::size_t copy) const {
    return {keys[copy].as<std::int8_t>(), values[copy].as<float>(), task.head_dim, IndexKeys::room(task.context),
            IndexKeys::best_tiles()};
}

Result<Operands> make_operands(const Task& task, std::int64_t rotate_past, Threads& threads) {
    Operands operands;
    operands.task = task;
    const Numbers numbers = numbers_of(task);
    std::int64_t one = 0;     // that is there in copies
    std::int64_t keys = 0;    // or latent entries
    std::int64_t values = 0;  // where they are apart from these
    const std::vector<MatrixShape> matrices = shapes_of(task);
    for (const MatrixShape& shape : matrices)
        one += WeightMatrix::bytes(shape.n, shape.k, StoredAs{task.weights, task.others});
    if (task.kind == TaskKind::attention || task.kind == TaskKind::kv_write) {
        const std::int64_t entries = task.batch * task.kv_heads * task.context;
        keys = entries * task.head_dim * bits(task.kv) / 8;
        if (!task.latent) values = entries * value_width(task) * bits(task.kv) / 8;
    }
    if (keeps_state(task)) keys = task.batch * task.query_heads * task.head_dim * task.value_dim * 4;
    if (task.kind == TaskKind::convolution) keys = task.batch * (task.taps - 1) * task.width * 4;
    if (task.kind == TaskKind::index_scores || task.kind == TaskKind::index_write) {
        keys = task.batch * IndexKeys::room(task.context) * task.head_dim;
        values = task.batch * IndexKeys::room(task.context) * 4;  // scales
    }
    if (task.kind == TaskKind::attention || task.kind == TaskKind::index_scores || keeps_state(task))
        one = keys + values;
    // In fp32; x of a product again, narrowed and packed.
    const std::int64_t around =
        4 * (numbers.in * (matrices.empty() ? 1 : 2) + numbers.out) + (one > 0 ? 0 : keys + values);
    const std::int64_t free = free_memory();
    const std::int64_t room = std::max<std::int64_t>(0, free - around);
    std::int64_t copies = one > 0 ? std::clamp<std::int64_t>((rotate_past + one - 1) / one, 1, 512) : 1;
    if (one > 0) copies = std::min(copies, std::max<std::int64_t>(1, room / 2 / one));  // fewer is better than none
    if (one * copies + around > free / 10 * 9) {
        return std::unexpected(
            Problem{fmt::format("needs {:.1f} GB of memory, and {:.1f} GB are free",
                                static_cast<double>(one * copies + around) / 1e9, static_cast<double>(free) / 1e9),
                    true});
    }
    for (std::int64_t copy = 0; copy < copies; ++copy) {
        const auto seed = static_cast<std::uint64_t>(copy + 1) << 40U;
        for (std::size_t i = 0; i < matrices.size(); ++i) {
            const std::uint64_t own = seed + (static_cast<std::uint64_t>(i) << 52U);
            auto matrix =
                WeightMatrix::random(matrices[i].n, matrices[i].k, StoredAs{task.weights, task.others}, own, threads);
            if (!matrix) return std::unexpected(matrix.error());
            operands.weights.push_back(std::move(*matrix));
        }
        if (matrices.empty()) {
            const auto make = [&](std::vector<Memory>& side, std::int64_t bytes, std::uint64_t own) -> Result<void> {
                if (bytes == 0) return {};
                auto memory = Memory::reserve(bytes);
                if (!memory) return std::unexpected(memory.error());
                fill(*memory, task.kind == TaskKind::convolution ? DType::fp32 : task.kv, own, threads);
                side.push_back(std::move(*memory));
                return {};
            };
            if (auto made = make(operands.keys, keys, seed); !made) return std::unexpected(made.error());
            if (auto made = make(operands.values, values, seed + (1U << 30U)); !made)
                return std::unexpected(made.error());
        }
    }
    if (task.kind == TaskKind::embedding) {
        constexpr std::int64_t table_rows = 4096;
        auto table = Memory::reserve(table_rows * task.width * 2);
        if (!table) return std::unexpected(table.error());
        fill(*table, DType::bf16, 3, threads);
        operands.tables.push_back(std::move(*table));
        for (std::int64_t row = 0; row < task.rows; ++row)
            operands.tokens.push_back(static_cast<std::int32_t>(mixed(static_cast<std::uint64_t>(row)) % table_rows));
    }
    if (task.kind == TaskKind::expert_sum) {
        // In no order, as experts leave them.
        const std::int64_t count = task.rows * task.chosen;
        operands.places.resize(size(count));
        std::iota(operands.places.begin(), operands.places.end(), 0);
        for (std::int64_t i = count - 1; i > 0; --i) {
            const auto other = mixed(static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(i + 1);
            std::swap(operands.places[size(i)], operands.places[other]);
        }
        operands.shares = random_floats(count, 7U << 20U);
        for (std::int64_t row = 0; row < task.rows; ++row) {
            float* own = operands.shares.data() + row * task.chosen;
            std::transform(own, own + task.chosen, own, [](float share) { return std::exp(share); });
            const float total = std::accumulate(own, own + task.chosen, 0.0F);
            std::transform(own, own + task.chosen, own, [&](float share) { return share / total; });
        }
    }
    if (task.kind == TaskKind::index_scores) {
        for (std::size_t copy = 0; copy < operands.keys.size(); ++copy) fill_index_keys(operands, copy, threads);
    }
    if (task.kind == TaskKind::attention && task.chosen > 0) choose_at_random(operands);
    operands.x = random_floats(numbers.in, 1U << 20U);
    operands.gain = random_floats(gains_of(task), 5U << 20U);
    if (keeps_state(task)) {
        for (float& rate : operands.gain) rate *= rate;  // states decay
    }
    if (task.kind == TaskKind::layer_norm || task.kind == TaskKind::convolution || keeps_state(task))
        operands.bias = random_floats(task.width, 7U << 20U);
    operands.y.resize(size(numbers.out));
    operands.poison();
    return operands;
}

}  // namespace roofline::bench
