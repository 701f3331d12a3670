// What llama.cpp puts into a file that is called by one name: Q4_K_M keeps half of its values and down projections in
// Q6_K, a head never below Q6_K, and rows that 256 does not divide in something wider. Sizes of small models hang on
// it.
#pragma once

#include <cstddef>
#include <string_view>

#include "roofline/model/architecture.hpp"
#include "roofline/model/types.hpp"

namespace roofline::model {

/// Formats that are names of GGUF files: unpacked to 8 bits before they are multiplied.
bool is_gguf(const Format& format);

/// The layers, half of them, whose values and second products of the FFN have more bits in q4_k_m and q5_k_m.
constexpr bool has_more_bits(std::size_t layer, std::size_t layers) {
    return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

/// T1: every tensor in the type that llama.cpp's quantiser gives it without an importance matrix. The plan carries
/// exact bits per role and layer, under the name that was asked for.
TypePlan gguf_plan(const Architecture& architecture, const Format& named, DType activation, const Format& kv);

}  // namespace roofline::model
