// The weights of a product: random ones in every format that kernels for processors read, in rows or tiles, and what
// each of them is in fp64.
#pragma once

#include <cstdint>
#include <memory>

#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/memory.hpp"
#include "roofline/bench/weight_format.hpp"
#include "roofline/core/problem.hpp"

namespace roofline::bench {

/// Weights of a product with what belongs to them, in one piece of memory.
class WeightMatrix {
  public:
    static Result<WeightMatrix> random(std::int64_t n, std::int64_t k, WeightFormat type, std::uint64_t seed,
                                       Threads& threads);
    static Result<WeightMatrix> random(std::int64_t n, std::int64_t k, const StoredAs& stored, std::uint64_t seed,
                                       Threads& threads);
    /// The same weights in tiles (products.hpp).
    Result<WeightMatrix> in_tiles(Tiles tiles, Threads& threads) const;
    Weights view() const { return view_; }
    static std::int64_t bytes(std::int64_t n, std::int64_t k, WeightFormat type);
    static std::int64_t bytes(std::int64_t n, std::int64_t k, const StoredAs& stored);
    /// As fp64, whatever the type.
    double at(std::int64_t row, std::int64_t column) const;

  private:
    Result<WeightMatrix> bytes_in_tiles(Tiles tiles, Threads& threads) const;
    Result<WeightMatrix> int4_in_tiles(Tiles tiles, Threads& threads) const;

    std::int64_t n_ = 0;  // but for other rows
    std::int64_t k_ = 0;
    Memory memory_;
    Weights view_;
    std::unique_ptr<WeightMatrix> others_;  // the last rows, where they are in another format
};

}  // namespace roofline::bench
