// Products of each head: into the queries before attention over latent entries, and out of its results.
#include <algorithm>

#include "roofline/bench/cuda/product_heads.cuh"
#include "roofline/bench/cuda/random_weights.cuh"
#include "roofline/bench/cuda/reference.hpp"
#include "roofline/bench/cuda/tasks.cuh"

namespace roofline::cuda::kernels {

namespace {

/// One of the two products: weights and scales for each buffer, activations and outputs for all.
struct Operands {
    RandomWeights weights;
    Memory x;
    Memory y;
    HeadProduct first;

    HeadProduct buffer(int index) const {
        HeadProduct product = first;
        weights.put_into(product, index * first.heads);
        return product;
    }
};

/// Memory for a product whose sizes are known, random where it is read. Of y there is a row more than is written.
Operands make(HeadProduct product, Format format, int buffers, std::uint32_t seed, cudaStream_t stream) {
    Operands made;
    made.weights = RandomWeights(format, product.n, product.k, product.heads * buffers, seed, stream);
    made.x = Memory(product_of({product.m, product.x_row}) * 2);
    made.y = Memory(product_of({product.m + 1, product.y_row}) * 2);
    fill_random(made.x.at(), made.x.bytes() / 2, Format::bf16, 1.0f, seed + 3, stream);
    product.x = made.x.at();
    product.y = made.y.at();
    made.first = product;
    return made;
}

/// What lies between heads and after the last row must be as it was, all else a number.
bool written_where_it_should(const HeadProduct& product, const std::vector<std::uint16_t>& y) {
    const auto width = static_cast<std::size_t>(product.y_row);
    for (std::size_t i = 0; i < y.size(); ++i) {
        const bool inside = i / width < static_cast<std::size_t>(product.m) &&
                            i % width % static_cast<std::size_t>(product.y_head) < static_cast<std::size_t>(product.n);
        if (inside ? (y[i] & 0x7F80) == 0x7F80 : y[i] != 0xFFFF) return false;
    }
    return true;
}

/// How far the outputs of a run on a buffer are from float64, for heads, rows and outputs spread over all of them.
double error_of(const Operands& operands, int buffer) {
    const HeadProduct& product = operands.first;
    const auto k = static_cast<std::size_t>(product.k);
    const auto y = copied(operands.y.at<std::uint16_t>(), operands.y.bytes() / 2);
    if (!written_where_it_should(product, y)) return 1e30;
    const auto x = copied(operands.x.at(), operands.x.bytes());
    Difference difference;
    for (const int head : sample(product.heads, 4)) {
        for (const int output : sample(product.n, 48)) {
            const auto weights = operands.weights.rows(buffer * product.heads + head, output, 1);
            for (const int row : sample(product.m, 8)) {
                const std::size_t from = product_of({row, product.x_row}) + product_of({head, product.x_head});
                const std::size_t to = product_of({row, product.y_row}) + product_of({head, product.y_head});
                double sum = 0.0;
                for (std::size_t i = 0; i < k; ++i) sum += decode(x.data(), from + i, Format::bf16) * weights[i];
                difference.add(decode_bf16(y[to + static_cast<std::size_t>(output)]),
                               static_cast<double>(product.factor) * sum);
            }
        }
    }
    return difference.relative();
}

}  // namespace

Outcome run(const Clock& clock, const HeadsTask& task, const std::string& backend, const Effort& effort) {
    if (backend != "own") throw Failure{backend + " has no products of heads"};
    // As in a step: beside a head's numbers are those of it that are turned, which go another way.
    constexpr int turned = 64;
    HeadProduct into;
    into.factor = 0.5f;
    into.m = task.rows;
    into.heads = task.heads;
    into.n = task.rank;
    into.k = task.head_dim;
    into.x_head = task.head_dim + turned;
    into.y_head = task.rank + turned;
    HeadProduct out_of = into;
    out_of.factor = 1.0f;
    out_of.n = task.value_dim;
    out_of.k = task.rank;
    out_of.x_head = task.rank;
    out_of.y_head = task.value_dim;
    Outcome outcome;
    outcome.tolerance = 4e-3;
    outcome.variant = "a warp for 16 rows";
    double weights = 0.0;
    for (HeadProduct* product : {&into, &out_of}) {
        product->x_row = task.heads * product->x_head;
        product->y_row = task.heads * product->y_head;
        const double of_heads = static_cast<double>(task.rows) * task.heads;
        outcome.flops += 2.0 * of_heads * product->n * product->k;
        outcome.bytes += 2.0 * of_heads * (product->n + product->k);
        weights += task.heads * weight_bytes(task.weights, product->n, product->k);
    }
    outcome.bytes += weights;
    outcome.buffers = rotation(static_cast<std::size_t>(weights));
    const Operands first = make(into, task.weights, outcome.buffers, 1, clock.stream());
    const Operands second = make(out_of, task.weights, outcome.buffers, 5, clock.stream());
    const Run both = [&](int buffer) {
        launch(first.buffer(buffer), task.weights, true, clock.stream());
        launch(second.buffer(buffer), task.weights, true, clock.stream());
    };
    for (const Operands* operands : {&first, &second}) {
        must(cudaMemsetAsync(operands->y.at(), 0xFF, operands->y.bytes(), clock.stream()), "poison");
    }
    both(outcome.buffers - 1);
    clock.finish();
    outcome.error = std::max(error_of(first, outcome.buffers - 1), error_of(second, outcome.buffers - 1));
    accept(outcome);
    outcome.timing = clock.captured(both, outcome.buffers, effort.seconds);
    return outcome;
}

}  // namespace roofline::cuda::kernels
