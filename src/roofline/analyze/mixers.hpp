// Layers of a stack that mix tokens without attention: state-space models, linear attention, gated convolutions. What
// begins and ends each block of such a stack is the sum with what went around it.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "roofline/analyze/structure.hpp"

namespace roofline::analyze {

/// A stretch of pieces, its end behind the last.
struct Region {
    std::size_t begin;
    std::size_t end;
};

/// Sums with what went around a block: additions of two tensors as large as most that follow a product, and kernels of
/// a compiler that add behind a product and normalise.
std::vector<std::size_t> residuals(std::span<const Piece> pieces);

/// For each piece that makes packed weights whole the product that reads them; the number of pieces for all others.
std::vector<std::size_t> unpacked_for(std::span<const Piece> pieces);

/// What lies between the first and the last product of each block that mixes tokens without attention: one with a
/// convolution or a scan in it, or with far more steps than an activation has. Products of blocks that are known for
/// mixers from earlier steps are so again: one token needs no convolution.
std::vector<Region> find_mixers(std::span<const Piece> pieces, const std::vector<std::size_t>& residuals,
                                const std::vector<Region>& attention, std::set<MixerProducts>& known);

}  // namespace roofline::analyze
