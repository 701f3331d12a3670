// A mixture's FFN as kernels on a stream, and how they are chosen.
#include <algorithm>
#include <numeric>
#include <set>

#include "roofline/bench/cuda/experts.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr double seconds_of_a_way = 0.003;  // that is tried

}  // namespace

Experts::Experts(const ExpertShape& shape, const Clock& clock)
    : shape_(shape),
      clock_(&clock),
      routing_(shape.rows, shape.experts, shape.chosen, shape.layers, clock.stream()),
      scores_(product_of({shape.rows, shape.experts, 2})),
      gate_up_(product_of({shape.rows, shape.chosen, shape.width, 4})),
      activated_(product_of({shape.rows, shape.chosen, shape.width, 2})),
      results_(product_of({shape.rows, shape.chosen, shape.hidden, 2})) {}

Product Experts::router_product(const ExpertWeights& weights, const void* x) const {
    return {weights.router, nullptr, x, scores_.at(), shape_.rows, shape_.experts, shape_.hidden};
}

RoutedProduct Experts::routed(Kind kind, const ExpertWeights& weights, const void* x, const Routing& routing) const {
    RoutedProduct product;
    product.m = shape_.rows * shape_.chosen;
    if (kind == gate_up) {
        product.weights = weights.gate_up;
        product.scales = weights.gate_up_scales;
        product.x = x;
        product.rows = routing.rows_at;
        product.y = gate_up_.at();
        product.n = 2 * shape_.width;
        product.k = shape_.hidden;
    } else {
        product.weights = weights.down;
        product.scales = weights.down_scales;
        product.x = activated_.at();
        product.y = results_.at();
        product.n = shape_.hidden;
        product.k = shape_.width;
    }
    product.panels = routing.panels;
    product.panel_count = routing.panel_count;
    product.most_panels = most_panels(product.m, shape_.experts, routing.panel_rows);
    return product;
}

void Experts::choose(const std::string& backend, const std::vector<ExpertWeights>& layers, const void* x) {
    const auto router_ways = product_ways(backend, Format::bf16, false, shape_.rows, shape_.experts, shape_.hidden);
    const cudaStream_t stream = clock_->stream();
    const auto count = static_cast<int>(layers.size());
    const auto layer_at = [&](int index) -> const ExpertWeights& {
        return layers[static_cast<std::size_t>(index) % layers.size()];
    };
    std::vector<Run> runs;
    for (const auto& way : router_ways) {
        runs.push_back([&](int index) { way.run(router_product(layer_at(index), x), true, stream); });
    }
    const int best_router = fastest(*clock_, runs, count, seconds_of_a_way);
    if (best_router < 0) throw Failure{"no way to multiply the router ran"};
    router_ = router_ways[static_cast<std::size_t>(best_router)];

    // Both products share their panels, so what is compared is the sum of the best of each.
    const auto variants = routed_ways(shape_.weights, shape_.rows, std::gcd(shape_.hidden, shape_.width));
    std::set<int> sizes;
    for (const auto& variant : variants) sizes.insert(variant.most_rows);
    double least = 0.0;
    for (const int size : sizes) {
        const Routing routing = routing_.of(0, size);
        router_.run(router_product(layer_at(0), x), false, stream);
        route(routing, scores_.at(), {stream, false});
        RoutedVariant best[2] = {};
        double sum = 0.0;
        for (const Kind kind : {gate_up, down}) {
            std::vector<RoutedVariant> candidates;
            runs.clear();
            for (const auto& variant : variants) {
                if (variant.most_rows == size) candidates.push_back(variant);
            }
            for (const auto& variant : candidates) {
                runs.push_back(
                    [&](int index) { launch(variant, routed(kind, layer_at(index), x, routing), true, stream); });
            }
            std::vector<double> times;
            const int found = fastest(*clock_, runs, count, seconds_of_a_way, &times);
            if (found < 0) {
                sum = 0.0;
                break;
            }
            best[kind] = candidates[static_cast<std::size_t>(found)];
            sum += times[static_cast<std::size_t>(found)];
        }
        if (sum > 0.0 && (least == 0.0 || sum < least)) {
            least = sum;
            panel_rows_ = size;
            std::ranges::copy(best, ways_);
        }
    }
    if (least == 0.0) throw Failure{"no way to multiply the experts ran"};
    const std::string panels = " (panels of " + std::to_string(panel_rows_) + ")";
    chosen_ = {"router: " + backend + ", " + router_.name,
               "experts gate_up: own, " + std::string(ways_[gate_up].name) + panels,
               "experts down: own, " + std::string(ways_[down].name) + panels};
}

void Experts::run(const ExpertWeights& weights, int layer, const void* x, void* y, bool overlap) const {
    const cudaStream_t stream = clock_->stream();
    const Launch launch_as{stream, overlap};
    const Routing routing = routing_.of(layer, panel_rows_);
    router_.run(router_product(weights, x), overlap, stream);
    route(routing, scores_.at(), launch_as);
    launch(ways_[gate_up], routed(gate_up, weights, x, routing), overlap, stream);
    silu_product(activated_.at(), gate_up_.at(), shape_.rows * shape_.chosen, shape_.width, launch_as);
    launch(ways_[down], routed(down, weights, x, routing), overlap, stream);
    combine(y, results_.at(), routing, shape_.hidden, launch_as);
}

std::vector<int> Experts::choices(int layer) const {
    return copied(static_cast<const int*>(routing_.of(layer, 1).choices), product_of({shape_.rows, shape_.chosen}));
}

}  // namespace roofline::cuda::kernels
