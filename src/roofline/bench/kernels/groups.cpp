// Products with weights in small groups for any processor, and what a group holds, for whoever reads one at a time.
#include "roofline/bench/kernels/groups.hpp"

#include <algorithm>
#include <bit>

#include "roofline/bench/kernels/e4m3.hpp"

namespace roofline::bench {
namespace {

/// Half of a scale: what the table's values are multiplied by. (Of the two least powers it is one that is a little too
/// large or zero: no weight has them.)
float half_of(std::uint8_t power) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(power) << 23U) * 0.5F;
}

float half_at(const std::uint8_t* from) {
    std::uint16_t bits;
    std::memcpy(&bits, from, sizeof bits);
    return from_half(bits);
}

}  // namespace

Group take_apart(const Weights& weights, std::int64_t row, std::int64_t group, std::int64_t k) {
    Group found;
    const auto* values = static_cast<const std::uint8_t*>(weights.values);
    const std::int64_t place = row * (k / small_group) + group;
    const std::uint8_t* halves = values + place * 16;
    const auto each_half = [&](const auto& number) {
        for (int i = 0; i < 16; ++i) {
            found.numbers[i] = static_cast<std::int8_t>(number(i, halves[i] & 15));
            found.numbers[i + 16] = static_cast<std::int8_t>(number(i + 16, halves[i] >> 4));
        }
    };
    const std::int64_t block = row * (k / k_block) + group / groups_of_block;
    const std::int64_t inside = group % groups_of_block;
    switch (weights.type) {
        case WeightFormat::mxfp4:
            each_half([](int, int bits) { return twice_e2m1[bits]; });
            found.scale = found.second_scale = half_of(weights.group_powers[place]);
            break;
        case WeightFormat::nvfp4:
            each_half([](int, int bits) { return twice_e2m1[bits]; });
            found.scale = 0.5F * weights.scale_of_all * e4m3_values[weights.small_scales[2 * place]];
            found.second_scale = 0.5F * weights.scale_of_all * e4m3_values[weights.small_scales[2 * place + 1]];
            break;
        case WeightFormat::q4_0:
            each_half([](int, int bits) { return bits - 8; });
            found.scale = found.second_scale = from_half(weights.half_scales[place]);
            break;
        case WeightFormat::q8_0:
            std::memcpy(found.numbers, values + place * small_group, small_group);
            found.scale = found.second_scale = from_half(weights.half_scales[place]);
            break;
        case WeightFormat::q4_k:
        case WeightFormat::q5_k: {
            if (weights.type == WeightFormat::q4_k) {
                each_half([](int, int bits) { return bits; });
            } else {
                const std::uint8_t* whole = values + block * q5_k_block;
                const std::uint8_t* fifths = whole + q5_k_low + inside / 4 * 16 + inside % 4 * 2;
                halves = whole + inside * 16;
                each_half([&](int i, int bits) {
                    const int byte = fifths[i / 16 * 8 + i % 16 / 8];
                    return bits | (byte >> i % 8 & 1) << 4;
                });
            }
            const SixBits six{weights.headers + block * q4_k_header};
            found.scale = found.second_scale = half_at(six.header) * static_cast<float>(six.scale(inside));
            found.off = half_at(six.header + 2) * static_cast<float>(six.off(inside));
            break;
        }
        default: {  // q6_k
            const std::uint8_t* whole = values + block * q6_k_block;
            const std::uint8_t* upper = whole + q6_k_low + inside % 4 * 16;
            const int shift = inside < 4 ? 0 : 4;
            halves = whole + inside * 16;
            each_half([&](int i, int bits) {
                const int top = upper[i % 16] >> (shift + (i < 16 ? 0 : 2)) & 3;
                return (bits | top << 4) - 32;
            });
            const std::uint8_t* header = weights.headers + block * q6_k_header;
            const auto* small = reinterpret_cast<const std::int8_t*>(header + 2);
            found.scale = half_at(header) * small[inside];
            found.second_scale = half_at(header) * small[groups_of_block + inside];
        }
    }
    return found;
}

void portable_groups(const ProductCall& call, std::int64_t first, std::int64_t last) {
    constexpr std::int64_t at_once = 4;  // rows of x
    const std::int64_t groups = call.k / small_group;
    for (std::int64_t row = first; row < last; ++row) {
        for (std::int64_t x_row = 0; x_row < call.m; x_row += at_once) {
            const std::int64_t columns = std::min(at_once, call.m - x_row);
            float totals[at_once] = {};
            for (std::int64_t at = 0; at < groups; ++at) {
                const Group group = take_apart(call.weights, row, at, call.k);
                for (std::int64_t column = 0; column < columns; ++column) {
                    const std::int64_t place = (x_row + column) * groups + at;
                    const std::int8_t* x = static_cast<const std::int8_t*>(call.x) + place * small_group;
                    std::int32_t low = 0;
                    std::int32_t high = 0;
                    for (int i = 0; i < 16; ++i) {
                        low += group.numbers[i] * x[i];
                        high += group.numbers[i + 16] * x[i + 16];
                    }
                    totals[column] += call.x_scales[place] *
                                      (group.scale * static_cast<float>(low) +
                                       group.second_scale * static_cast<float>(high) - group.off * call.x_sums[place]);
                }
            }
            for (std::int64_t column = 0; column < columns; ++column)
                call.y[(x_row + column) * call.pitch() + row] = totals[column];
        }
    }
}

}  // namespace roofline::bench
