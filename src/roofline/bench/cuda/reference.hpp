// What the kernels should have computed: the same in float64 on the host, for a sample of the outputs, from the very
// values the kernel read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "roofline/bench/cuda/memory.cuh"

namespace roofline::cuda::kernels {

/// How far outputs are from the reference: the norm of their difference over the reference's norm.
class Difference {
  public:
    void add(double found, double expected);
    /// 1e30 where anything found is not a number, or nothing was compared.
    double relative() const;

  private:
    double square_ = 0.0;
    double reference_ = 0.0;
    bool broken_ = false;
};

/// Up to `count` numbers under `total`, spread over all of it, the first and the last among them.
std::vector<int> sample(int total, int count);

/// Rows [row][pitch] of numbers, of which each row's first are used.
struct Rows {
    const std::vector<std::uint8_t>& bytes;
    int pitch;
};

/// Attention of one query over rows of keys, as wide as it, and of values of `value_dim`: scores, their exponents, the
/// weighted sum. `first`: the first key that is seen, up to `context`. `sink`: the score of one more entry, without a
/// value.
std::vector<double> attend(const std::vector<double>& query, const Rows& keys, const Rows& values, int value_dim,
                           int context, Format format, int first = 0, std::optional<double> sink = {});

}  // namespace roofline::cuda::kernels
