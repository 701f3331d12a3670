#include "roofline/bench/weight_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "roofline/bench/kernels/groups.hpp"

namespace roofline::bench {
namespace {

constexpr std::int64_t aligned(std::int64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

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
        fill_random(matrix.memory_, type == WeightFormat::bf16 ? DType::bf16 : DType::fp32, seed, threads, magnitude);
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

}  // namespace roofline::bench
