// How a step's kernels are chosen: each product alone first, on as many matrices as the L2 cannot hold; then the
// fastest few, attention and experts among their neighbours. Which is fastest alone need not be where others go before
// it and behind it.
#include <algorithm>
#include <iterator>

#include "roofline/bench/cuda/model.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr double seconds_of_a_way = 0.003;  // that is tried
constexpr std::size_t most_contenders = 4;

}  // namespace

void Model::choose(const std::string& backend, const std::string& preferred) {
    chosen_.clear();
    const std::string products_of = backend == "cudnn" ? "cublaslt" : backend;
    for (Place& place : places_) choose_alone(place, products_of, preferred);
    for (Kind& kind : kinds_) {
        if (kind.experts != nullptr) choose_experts(kind, products_of, preferred);
        if (kind.shape.attention.query_heads > 0) begin_attention(kind, backend);
    }
    if (!step_.prefill) choose_among_neighbours(backend);
    for (const Place& place : places_) {
        chosen_.push_back(place.name + ": " + products_of + ", " + place.way.name);
    }
    for (const Kind& kind : kinds_) {
        if (kind.experts != nullptr) std::ranges::copy(kind.experts->chosen(), std::back_inserter(chosen_));
        if (kind.shape.attention.query_heads == 0) continue;
        const std::string of = kinds_.size() > 1 ? "attention of " + kind.shape.name : "attention";
        if (kind.library != nullptr) {
            chosen_.push_back(of + ": cudnn, plan " + std::to_string(kind.plan));
        } else {
            chosen_.push_back(of + ": own" + (kind.decode ? ", " + kind.decode->name : ""));
        }
    }
}

std::vector<ProductWay> Model::ways_of(const Place& place, const std::string& backend) {
    const Product& shape = place.shape;
    std::vector<ProductWay> ways;
    if (place.narrow) ways = narrowing_ways(backend, place.format, shape.m, shape.n, shape.k);
    if (!ways.empty() && backend == "cublaslt") return ways;  // it multiplies nothing else by bf16
    auto plain = product_ways(backend, place.format, false, shape.m, shape.n, shape.k);
    std::ranges::move(plain, std::back_inserter(ways));
    return ways;
}

void Model::choose_alone(Place& place, const std::string& backend, const std::string& preferred) const {
    const Product& shape = place.shape;
    auto ways = ways_of(place, backend);
    keep_preferred(ways, preferred, [](const ProductWay& way) { return way.name; });
    std::vector<Run> runs;
    for (const auto& way : ways) {
        runs.push_back([&](int index) {
            Product product = shape;
            place.matrices[static_cast<std::size_t>(index)]->weights.put_into(product);
            way.run(product, true, clock_->stream());
        });
    }
    const auto bytes = static_cast<std::size_t>(weight_bytes(place.format, shape.n, shape.k));
    std::vector<double> times;
    const int best = fastest(*clock_, runs, std::min(static_cast<int>(place.matrices.size()), rotation(bytes)),
                             seconds_of_a_way, &times);
    if (best < 0) throw Failure{"no way to multiply " + place.name + " ran"};
    place.way = ways[static_cast<std::size_t>(best)];
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < ways.size(); ++i) {
        if (times[i] > 0.0) order.push_back(i);
    }
    std::ranges::sort(order, {}, [&](std::size_t i) { return times[i]; });
    if (order.size() > most_contenders) order.resize(most_contenders);
    place.contenders.clear();
    for (const std::size_t i : order) place.contenders.push_back(ways[i]);
}

void Model::choose_experts(Kind& kind, const std::string& backend, const std::string& preferred) const {
    std::vector<ExpertWeights> layers;
    for (const LayerWeights& own : kind.layers) layers.push_back(expert_weights(own));
    // Rows that differ, so that they choose as a step's do.
    fill_random(normed_.at(), product_of({rows_, hidden_}), Format::bf16, 1.0f, 104, clock_->stream());
    kind.experts->choose(backend, layers, normed_.at(), preferred);
}

void Model::begin_attention(Kind& kind, const std::string& backend) const {
    kind.library.reset();
    kind.decode.reset();
    const Format cache = attended_format();
    const Attention first = attention(kind, kind.layers.front());
    if (backend == "cudnn") {
        kind.library = std::make_unique<LibraryAttention>(first, cache);
        std::vector<Run> runs;
        for (int plan = 0; plan < kind.library->plans(); ++plan) {
            runs.push_back([&, plan](int index) {
                kind.library->run(attention(kind, kind.layers[static_cast<std::size_t>(index)]), plan,
                                  clock_->stream());
            });
        }
        kind.plan = fastest(*clock_, runs, static_cast<int>(kind.layers.size()), seconds_of_a_way);
        if (kind.plan < 0) throw Failure{"no plan of cuDNN's ran"};
        return;
    }
    if (step_.prefill) {
        if (prefill_supported(first, cache)) return;
        throw Failure{"our prefill attention takes a bf16 cache and heads of 64 or 128, on Hopper of 256 too"};
    }
    const auto ways = decode_ways(first, cache);
    if (ways.empty()) throw Failure{"our decode attention does not take this shape of heads and cache"};
    kind.decode = ways.front();
}

void Model::choose_among_neighbours(const std::string& backend) {
    /// The first of the choices that is fastest when `part` of the step is run with it.
    const auto settle_on = [&](const auto& choices, Part part, const auto& take) {
        std::vector<Run> runs;
        for (const auto& choice : choices) {
            runs.push_back([&](int) {
                take(choice);
                run(part, true);
            });
        }
        const int best = fastest(*clock_, runs, 1, seconds_of_a_way);
        take(choices[static_cast<std::size_t>(std::max(best, 0))]);
        return best >= 0;
    };
    for (Kind& kind : kinds_) {
        if (kind.shape.attention.query_heads == 0 || backend == "cudnn") continue;
        const auto ways = decode_ways(attention(kind, kind.layers.front()), attended_format());
        if (!settle_on(ways, attention_part, [&](const DecodeWay& way) { kind.decode = way; })) {
            throw Failure{"our decode attention does not take this shape of heads and cache"};
        }
    }
    for (Kind& kind : kinds_) {
        if (kind.experts == nullptr) continue;
        std::vector<std::size_t> plans(kind.experts->plans());
        for (std::size_t i = 0; i < plans.size(); ++i) plans[i] = i;
        settle_on(plans, ffn_part, [&](std::size_t plan) { kind.experts->take(plan); });
    }
    for (Place& place : places_) {
        if (place.part == other_part) continue;
        settle_on(place.contenders, place.part, [&](const ProductWay& way) { place.way = way; });
    }
}

}  // namespace roofline::cuda::kernels
