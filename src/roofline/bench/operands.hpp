// What a task works on, in this machine's memory: random weights in as many copies as it takes to outgrow the caches,
// inputs, outputs poisoned beforehand, and the right answer in fp64 for a sample of the output.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "roofline/bench/kernels/attention.hpp"
#include "roofline/bench/kernels/chosen.hpp"
#include "roofline/bench/kernels/products.hpp"
#include "roofline/bench/kernels/selective_scan.hpp"
#include "roofline/bench/kernels/state_space.hpp"
#include "roofline/bench/memory.hpp"
#include "roofline/bench/task.hpp"
#include "roofline/bench/threads.hpp"
#include "roofline/bench/weight_matrix.hpp"
#include "roofline/core/problem.hpp"

namespace roofline::bench {

/// Rows of activations in the type that meets weights of some type, packed where kernels want that.
class Activations {
  public:
    /// Turns `x` (rows of k) into what `calls` need, and points them there. Products of one k and one type of weights;
    /// the rows of each follow those of the one before.
    void prepare(const float* x, std::span<ProductCall> calls, const ProductKernels& kernels, Threads& threads);
    void prepare(const float* x, ProductCall& call, const ProductKernels& kernels, Threads& threads) {
        prepare(x, std::span(&call, 1), kernels, threads);
    }

  private:
    void narrow(const float* x, std::span<ProductCall> calls, const ProductKernels& kernels, Threads& threads);
    void pack(const float* x, std::span<ProductCall> calls, const ProductKernels& kernels, Threads& threads);
    void turn_factors(std::span<ProductCall> calls, std::int64_t rows, Threads& threads);

    std::vector<std::byte> narrow_;
    std::vector<std::byte> packed_;
    std::vector<std::int64_t> panels_;
    std::vector<float> scales_;
    std::vector<float> sums_;
    std::vector<float> turned_;
};

struct Sample {
    std::int64_t index = 0;  // into the output
    double value = 0.0;
};

/// Everything of one task.
struct Operands {
    Task task;
    std::vector<WeightMatrix> weights;  // products: matrices_of(task) for each copy
    std::vector<Memory> keys;           // attention, kv_write; latent entries; states; an indexer's
    std::vector<Memory> values;         // none where entries are latent; scales of an indexer's keys
    std::vector<Memory> tables;         // embedding
    std::vector<float> x;               // fp32 input
    std::vector<float> gain;            // of a norm; sinks of attention; taps of a convolution; how fast states decay
    std::vector<float> bias;            // of a layer norm or a convolution; what passes a state by
    std::vector<std::int32_t> tokens;
    std::vector<std::int64_t> places;  // [row][chosen]: where a row's results lie in x (expert_sum), or what it sees
    std::vector<float> shares;         // and the weight of each; those of a row add up to 1
    std::vector<float> y;

    std::size_t copies() const {
        const std::size_t matrices = weights.size() / static_cast<std::size_t>(matrices_of(task));
        return std::max({matrices, keys.size(), tables.size(), std::size_t{1}});
    }
    void poison();
    IndexKeys index_keys(std::size_t copy) const;
};

HeadWidths head_widths(const Task& task);
StateShape state_shape(const Task& task);
SelectiveShape selective_shape(const Task& task);

/// `rotate_past`: bytes that the copies together must reach. Fails where memory is short.
Result<Operands> make_operands(const Task& task, std::int64_t rotate_past, Threads& threads);

/// The right answers for copy 0, in fp64 from the very numbers that kernels read.
std::vector<Sample> reference(const Operands& operands);

/// How far off an output may be, relative to the typical size of its values.
double tolerance(const Task& task);
/// The largest difference of the sampled outputs from the reference, relative to their root mean square; infinite where
/// one is not a number.
double largest_error(std::span<const Sample> samples, std::span<const float> y);

}  // namespace roofline::bench
