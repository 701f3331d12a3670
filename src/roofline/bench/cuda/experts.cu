// A mixture's FFN as kernels on a stream, and how they are chosen.
#include <algorithm>
#include <iterator>
#include <set>

#include "roofline/bench/cuda/experts.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr double seconds_of_a_way = 0.003;  // that is tried
constexpr std::size_t most_contenders = 4;  // for a product and a size of panels
constexpr std::size_t most_plans = 8;

std::string words(const RoutedVariant& way) {
    return std::string(way.name) + " (panels of " + std::to_string(way.most_rows) + ")" +
           (way.narrow_activations ? ", narrow activations" : "");
}

}  // namespace

Experts::Experts(const ExpertShape& shape, const Clock& clock)
    : shape_(shape),
      clock_(&clock),
      routing_(shape.rows, shape.experts, shape.chosen, shape.layers, clock.stream()),
      scores_(product_of({shape.rows, shape.experts, 2})),
      activated_(product_of({shape.rows, shape.chosen, shape.width, 2})),
      results_(product_of({shape.rows, shape.chosen, shape.hidden, 2})) {
    const bool few = shape.rows * shape.chosen < least_narrow_activations * shape.experts;
    if (!shape.narrow || !meets_narrow_activations(shape.weights) || few) return;
    narrow_[gate_up].emplace(shape.weights, shape.rows, shape.hidden);
    narrow_[down].emplace(shape.weights, shape.rows * shape.chosen, shape.width);
}

Product Experts::router_product(const ExpertWeights& weights, const void* x) const {
    Product product{nullptr, nullptr, x, scores_.at(), shape_.rows, shape_.experts, shape_.hidden};
    weights.router->put_into(product);
    return product;
}

RoutedProduct Experts::routed(Kind kind, const ExpertWeights& weights, const void* x, const Routing& routing) const {
    RoutedProduct product;
    product.m = shape_.rows * shape_.chosen;
    if (kind == gate_up) {
        weights.gate_up->put_into(product);
        product.bias = weights.gate_up_bias;
        product.x = x;
        product.rows = routing.rows_at;
        product.y = activated_.at();
        product.gated = shape_.gated;
        product.n = (shape_.gated ? 2 : 1) * shape_.width;
        product.k = shape_.hidden;
    } else {
        weights.down->put_into(product);
        product.bias = weights.down_bias;
        product.x = activated_.at();
        product.y = results_.at();
        product.n = shape_.hidden;
        product.k = shape_.width;
    }
    product.panels = routing.panels;
    product.panel_count = shape_.rows == 1 ? nullptr : routing.panel_count;  // one row: as many as it chose
    product.settled = kind == down;
    product.most_panels = most_panels(product.m, shape_.experts, routing.panel_rows);
    return product;
}

std::vector<std::pair<RoutedVariant, double>> Experts::ranked(Kind kind, const std::vector<RoutedVariant>& variants,
                                                              const std::vector<ExpertWeights>& layers, const void* x,
                                                              const Routing& routing) const {
    std::vector<RoutedVariant> candidates;
    std::ranges::copy_if(variants, std::back_inserter(candidates),
                         [&](const RoutedVariant& one) { return one.most_rows == routing.panel_rows; });
    std::vector<Run> runs;
    for (const auto& variant : candidates) {
        runs.push_back([&](int index) {
            run_variant(variant, kind, routed(kind, layers[static_cast<std::size_t>(index)], x, routing), false, true);
        });
    }
    std::vector<double> times;
    fastest(*clock_, runs, static_cast<int>(layers.size()), seconds_of_a_way, &times);
    std::vector<std::pair<RoutedVariant, double>> found;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (times[i] > 0.0) found.emplace_back(candidates[i], times[i]);
    }
    std::ranges::sort(found, {}, &std::pair<RoutedVariant, double>::second);
    if (found.size() > most_contenders) found.resize(most_contenders);
    return found;
}

std::vector<RoutedVariant> Experts::variants_of(Kind kind, const ExpertWeights& weights, const void* x,
                                                const std::string& preferred) const {
    std::vector<RoutedVariant> variants;
    for (const bool narrow : {false, true}) {
        if (narrow && !narrow_[kind]) continue;
        std::ranges::copy(routed_ways(shape_.weights, narrow, routed(kind, weights, x, routing_.of(0, 1)),
                                      shape_.experts, shape_.rows * shape_.chosen / shape_.experts, shape_.rows),
                          std::back_inserter(variants));
    }
    keep_preferred(variants, preferred, words);
    return variants;
}

void Experts::run_variant(const RoutedVariant& variant, Kind kind, RoutedProduct product, bool there,
                          bool overlap) const {
    if (variant.narrow_activations && there) narrow_[kind]->put_into(product);
    if (variant.narrow_activations && !there) narrow_[kind]->narrow(product, {clock_->stream(), overlap});
    launch(variant, product, overlap, clock_->stream());
}

void Experts::choose(const std::string& backend, const std::vector<ExpertWeights>& layers, const void* x,
                     const std::string& preferred) {
    const cudaStream_t stream = clock_->stream();
    const auto router_ways = product_ways(backend, Format::bf16, false, shape_.rows, shape_.experts, shape_.hidden);
    std::vector<Run> runs;
    for (const auto& way : router_ways) {
        runs.push_back(
            [&](int index) { way.run(router_product(layers[static_cast<std::size_t>(index)], x), true, stream); });
    }
    const int best_router = fastest(*clock_, runs, static_cast<int>(layers.size()), seconds_of_a_way);
    if (best_router < 0) throw Failure{"no way to multiply the router ran"};
    router_ = router_ways[static_cast<std::size_t>(best_router)];
    together_ = backend == "own" && shape_.rows <= most_routed_together;
    router_name_ = together_ ? "own, with the choice" : backend + ", " + router_.name;

    std::array<std::vector<RoutedVariant>, 2> variants;
    std::set<int> sizes;
    for (const Kind kind : {gate_up, down}) {
        variants[kind] = variants_of(kind, layers.front(), x, preferred);
        for (const auto& variant : variants[kind]) sizes.insert(variant.most_rows);
    }
    plans_.clear();
    taken_ = 0;
    for (const int size : sizes) {
        Routing routing = routing_.of(0, size);
        routing.bias = layers.front().router_bias;
        router_.run(router_product(layers.front(), x), false, stream);
        route(routing, scores_.at(), {stream, false});
        const auto wide = ranked(gate_up, variants[gate_up], layers, x, routing);
        const auto narrow = ranked(down, variants[down], layers, x, routing);
        for (const auto& [first, first_time] : wide) {
            for (const auto& [second, second_time] : narrow) {
                plans_.push_back({size, {first, second}, first_time + second_time});
            }
        }
    }
    if (plans_.empty()) throw Failure{"no way to multiply the experts ran"};
    std::ranges::sort(plans_, {}, &Plan::time);
    if (plans_.size() > most_plans) plans_.resize(most_plans);
}

std::vector<std::string> Experts::chosen() const {
    const Plan& plan = plans_[taken_];
    return {"router: " + router_name_,
            (shape_.gated ? "experts gate_up: own, " : "experts up: own, ") + words(plan.ways[gate_up]),
            "experts down: own, " + words(plan.ways[down])};
}

std::array<bool, 2> Experts::narrows() const {
    const Plan& plan = plans_[taken_];
    return {plan.ways[gate_up].narrow_activations, plan.ways[down].narrow_activations};
}

void Experts::route_rows(const ExpertWeights& weights, int layer, const void* x, bool overlap) const {
    const Launch launch_as{clock_->stream(), overlap};
    Routing routing = routing_.of(layer, plans_[taken_].panel_rows);
    routing.bias = weights.router_bias;
    if (together_) {
        route(routing, router_product(weights, x), launch_as);
    } else {
        router_.run(router_product(weights, x), overlap, launch_as.stream);
        route(routing, scores_.at(), launch_as);
    }
}

void Experts::multiply(const ExpertWeights& weights, int layer, const void* x, bool narrow, bool settled,
                       bool overlap) const {
    const Plan& plan = plans_[taken_];
    const Routing routing = routing_.of(layer, plan.panel_rows);
    RoutedProduct first = routed(gate_up, weights, x, routing);
    first.settled = settled;
    run_variant(plan.ways[gate_up], gate_up, first, narrow, overlap);
    if (!shape_.gated) {
        // Holds: the second product takes for granted that the routing has ended.
        gelu(activated_.at(), activated_.at(), first.m, shape_.width, {clock_->stream(), overlap}, nullptr, true);
    }
    run_variant(plan.ways[down], down, routed(down, weights, x, routing), false, overlap);
}

RowSums Experts::results() const {
    const Routing routing = routing_.of(0, 1);
    return {results_.at(), routing.places, routing.shares, routing.chosen};
}

std::vector<int> Experts::choices(int layer) const {
    return copied(static_cast<const int*>(routing_.of(layer, 1).choices), product_of({shape_.rows, shape_.chosen}));
}

}  // namespace roofline::cuda::kernels
