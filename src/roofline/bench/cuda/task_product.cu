// Products, by our kernels and by cuBLASLt.
#include <algorithm>
#include <memory>

#include "roofline/bench/cuda/foreign.cuh"
#include "roofline/bench/cuda/product.cuh"
#include "roofline/bench/cuda/random_weights.cuh"
#include "roofline/bench/cuda/reference.hpp"
#include "roofline/bench/cuda/tasks.cuh"
#include "roofline/bench/cuda/ways.cuh"

namespace roofline::cuda::kernels {

namespace {

/// Weights for each buffer, activations and outputs for all.
struct Operands {
    RandomWeights weights;
    Memory x;
    Memory x_scales;  // beside weights under scales of blocks
    Memory y;
    int experts = 1;
    Product first;

    template <class Work>
    Work buffer(Work product, int index) const {
        weights.put_into(product, index * experts);
        return product;
    }
    Product buffer(int index) const { return buffer(first, index); }
};

/// The first row of an expert; of the one after the last: all of them.
int first_row(const ProductTask& task, int expert) {
    return static_cast<int>(static_cast<long long>(expert) * task.m / task.experts);
}

int expert_of(const ProductTask& task, int row) {
    int expert = 0;
    while (first_row(task, expert + 1) <= row) ++expert;
    return expert;
}

/// The panels of a task's rows, on the device.
struct Panels {
    Memory panels;
    Memory count;
    int size = 0;
    bool settled = false;

    Panels(const ProductTask& task, int panel_rows) : size(panel_rows), settled(task.settled) {
        std::vector<int> begins;
        for (int expert = 0; expert <= task.experts; ++expert) begins.push_back(first_row(task, expert));
        const auto all = panels_of(begins, panel_rows);
        const auto number = static_cast<int>(all.size());
        panels = Memory(all.size() * sizeof(Panel));
        count = Memory(sizeof(int));
        must(cudaMemcpy(panels.at(), all.data(), panels.bytes(), cudaMemcpyHostToDevice), "copy to the device");
        must(cudaMemcpy(count.at(), &number, sizeof number, cudaMemcpyHostToDevice), "copy to the device");
    }

    RoutedProduct routed(const Product& product) const {
        RoutedProduct routed;
        static_cast<Product&>(routed) = product;
        routed.panels = panels.at<Panel>();
        routed.panel_count = count.at<int>();
        routed.most_panels = static_cast<int>(panels.bytes() / sizeof(Panel));
        routed.settled = settled;
        return routed;
    }
};

Format format_of_x(const ProductTask& task) {
    if (!task.narrow_activations) return Format::bf16;
    return task.weights == Format::int8 ? Format::int8 : Format::fp8;
}

/// Whether each 128 values of an activation have a scale. (Those of whole rows are 1 here.)
bool has_x_scales(const ProductTask& task) {
    return task.narrow_activations && task.weights == Format::fp8_block;
}

Operands make(const ProductTask& task, bool unit_scales, int buffers, cudaStream_t stream) {
    Operands made;
    made.experts = task.experts;
    made.weights = RandomWeights(task.weights, task.n, task.k, task.experts * buffers, 1, stream, unit_scales);
    made.x = Memory(product_of({task.m, task.k}) * 2);
    made.y = Memory(product_of({task.m, task.n}) * 2);
    fill_random(made.x.at(), product_of({task.m, task.k}), format_of_x(task), 1.0f, 4, stream);
    made.first = {nullptr, nullptr, made.x.at(), made.y.at(), task.m, task.n, task.k};
    if (has_x_scales(task)) {
        made.x_scales = Memory(product_of({(task.k + 127) / 128, x_scale_stride(task.m), 4}));
        fill_random(made.x_scales.at<float>(), made.x_scales.bytes() / sizeof(float), 0.5f, 1.5f, 5, stream);
        made.first.x_scales = made.x_scales.at<float>();
        made.first.x_scale_stride = x_scale_stride(task.m);
    }
    made.weights.put_into(made.first);
    return made;
}

roofline_cuda_shape shape_of(const ProductTask& task) {
    roofline_cuda_shape shape{};
    shape.kind = "gemm";
    shape.m = task.m;
    shape.n = task.n;
    shape.k = task.k;
    shape.weight_dtype = bench::name(task.weights).data();  // ends with a zero
    shape.activation_dtype = bench::name(format_of_x(task)).data();
    shape.kv_dtype = "bf16";
    return shape;
}

std::vector<roofline_cuda_operands> copies_of(const Operands& operands, int buffers) {
    std::vector<roofline_cuda_operands> copies;
    for (int i = 0; i < buffers; ++i) {
        const Product product = operands.buffer(i);
        copies.push_back({product.x, product.weights, product.scales, nullptr, nullptr, product.y});
    }
    return copies;
}

/// Poisons the outputs, runs, and compares rows of weights spread over all of them.
double error_of(const ProductTask& task, const Operands& operands, int buffer, const Run& run, const Clock& clock) {
    must(cudaMemsetAsync(operands.y.at(), 0xFF, operands.y.bytes(), clock.stream()), "poison");
    run(buffer);
    clock.finish();
    const auto n = static_cast<std::size_t>(task.n);
    const auto k = static_cast<std::size_t>(task.k);
    const auto y = copied(operands.y.at<std::uint16_t>(), static_cast<std::size_t>(task.m) * n);
    for (const std::uint16_t value : y) {
        if ((value & 0x7F80) == 0x7F80) return 1e30;  // not written, or not finite
    }
    const Format x_format = format_of_x(task);
    const std::size_t x_bytes = k * static_cast<std::size_t>(bits(x_format)) / 8;
    const auto x_scales = copied(operands.x_scales.at<float>(), operands.x_scales.bytes() / sizeof(float));
    Difference difference;
    for (const int activation : sample(task.m, task.experts > 1 ? 16 : 4)) {
        const int matrix = buffer * task.experts + expert_of(task, activation);
        const auto raw = copied(operands.x.at(static_cast<std::size_t>(activation) * x_bytes), x_bytes);
        std::vector<double> x(k);
        for (std::size_t i = 0; i < k; ++i) x[i] = decode(raw.data(), i, x_format);
        if (has_x_scales(task)) {
            const auto stride = static_cast<std::size_t>(x_scale_stride(task.m));
            for (std::size_t i = 0; i < k; ++i) {
                x[i] *= static_cast<double>(x_scales[i / 128 * stride + static_cast<std::size_t>(activation)]);
            }
        }
        for (const int row : sample(task.n, 48)) {
            const auto weights = operands.weights.rows(matrix, row, 1);
            double sum = 0.0;
            for (std::size_t i = 0; i < k; ++i) sum += x[i] * weights[i];
            const std::size_t place = static_cast<std::size_t>(activation) * n + static_cast<std::size_t>(row);
            difference.add(decode_bf16(y[place]), sum);
        }
    }
    return difference.relative();
}

}  // namespace

Outcome run(const Clock& clock, const ProductTask& asked, const std::string& backend, const Effort& effort) {
    const roofline_cuda_kernel* foreign = foreign_named(backend);
    ProductTask task = asked;
    // Plugins are told of no scales of activations but 1, and of none in int8.
    if (foreign != nullptr && task.weights != Format::fp8) task.narrow_activations = false;
    Outcome outcome;
    const double m = task.m;
    const double weights = task.experts * weight_bytes(task.weights, task.n, task.k);
    outcome.flops = 2.0 * m * task.n * task.k;
    outcome.bytes = weights + m * task.k * (task.narrow_activations ? 1.0 : 2.0) + 2.0 * m * task.n;
    outcome.tolerance = task.narrow_activations ? 1e-2 : 4e-3;
    outcome.buffers = rotation(static_cast<std::size_t>(weights));
    if (foreign != nullptr && task.weights == Format::nvfp4) throw Failure{"plugins are given no nvfp4 weights"};
    if (task.experts > 1 && backend != "own") throw Failure{backend + " has no products of routed experts"};
    std::vector<ProductWay> made_for;
    if (foreign == nullptr && task.experts == 1) {
        made_for = product_ways(backend, task.weights, task.narrow_activations, task.m, task.n, task.k);
    }
    const Operands operands = make(task, backend == "cublaslt", outcome.buffers, clock.stream());
    std::vector<Run> ways;
    for (const auto& way : made_for) {
        ways.push_back([&](int buffer) { way.run(operands.buffer(buffer), true, clock.stream()); });
    }
    std::vector<Panels> panels;  // of all sizes that our variants take
    std::vector<RoutedVariant> routed;
    if (task.experts > 1) {
        const int each = (task.m + task.experts - 1) / task.experts;
        RoutedProduct shape;
        static_cast<Product&>(shape) = operands.first;
        routed = routed_ways(task.weights, task.narrow_activations, shape, task.experts, each, each);
        for (const auto& variant : routed) {
            const auto found = std::ranges::find(panels, variant.most_rows, &Panels::size);
            if (found == panels.end()) panels.emplace_back(task, variant.most_rows);
        }
        for (const auto& variant : routed) {
            const RoutedProduct product =
                std::ranges::find(panels, variant.most_rows, &Panels::size)->routed(operands.first);
            ways.push_back([&operands, &clock, &variant, product](int buffer) {
                launch(variant, operands.buffer(product, buffer), true, clock.stream());
            });
            made_for.push_back({variant.name + (" (panels of " + std::to_string(variant.most_rows)) + ")", {}});
        }
    }
    std::unique_ptr<ForeignRun> prepared;
    if (foreign != nullptr) {
        clock.finish();  // it may look at the operands
        prepared = std::make_unique<ForeignRun>(*foreign, shape_of(task), copies_of(operands, outcome.buffers));
        ways.push_back([&](int buffer) { prepared->launch(buffer, clock.stream()); });
        made_for.push_back({backend, {}});
    }
    std::vector<double> times;
    fastest(clock, ways, outcome.buffers, std::min(effort.seconds, 0.004), &times);
    for (std::size_t i = 0; i < times.size(); ++i) outcome.tried.push_back({made_for[i].name, times[i], {}});
    const std::size_t chosen = choose(outcome, effort.check_all, [&](std::size_t i) {
        return error_of(task, operands, outcome.buffers - 1, ways[i], clock);
    });
    outcome.timing = clock.captured(ways[chosen], outcome.buffers, effort.seconds);
    return outcome;
}

}  // namespace roofline::cuda::kernels
