// The FFN of a mixture of experts: router, choice, the experts' products on the rows that chose them, and their sum.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "roofline/bench/cuda/memory.cuh"
#include "roofline/bench/cuda/narrow.cuh"
#include "roofline/bench/cuda/random_weights.cuh"
#include "roofline/bench/cuda/routing.cuh"
#include "roofline/bench/cuda/timing.cuh"
#include "roofline/bench/cuda/ways.cuh"

namespace roofline::cuda::kernels {

struct ExpertShape {
    int rows = 0;
    int experts = 0;
    int chosen = 0;  // by a row
    int hidden = 0;
    int width = 0;  // of an expert
    int layers = 0;
    Format weights = Format::bf16;  // of experts; a router's stay bf16
    bool gated = true;
    bool narrow = false;  // activations may be made as narrow as weights
};

/// Weights of a layer: router [experts, hidden], experts' [experts, 2 width, hidden] (width, where there is no gate)
/// and [experts, hidden, width].
struct ExpertWeights {
    const RandomWeights* router = nullptr;
    const void* router_bias = nullptr;  // bf16 [experts]; null: none
    const RandomWeights* gate_up = nullptr;
    const void* gate_up_bias = nullptr;  // bf16 [experts, 2 width]; null: none
    const RandomWeights* down = nullptr;
    const void* down_bias = nullptr;
};

class Experts {
  public:
    Experts(const ExpertShape& shape, const Clock& clock);

    /// Finds the ways that are fastest on these layers' weights, each product by itself, and takes the first. The
    /// router's product is the backend's; those of experts are ours, whoever multiplies the rest: no library here takes
    /// its rows from the device.
    /// `preferred`: as Model::choose.
    void choose(const std::string& backend, const std::vector<ExpertWeights>& layers, const void* x,
                const std::string& preferred);
    /// What was found, the most promising first; which is fastest among its neighbours, a step finds out.
    std::size_t plans() const { return plans_.size(); }
    void take(std::size_t plan) { taken_ = plan; }
    /// Finds the experts of x [rows, hidden].
    void route_rows(const ExpertWeights& weights, int layer, const void* x, bool overlap) const;
    /// Where x is made narrow for the experts; null: they take it in bf16.
    const NarrowRoom* room() const { return narrows()[gate_up] ? &*narrow_[gate_up] : nullptr; }
    /// Their results. `narrow`: x is in that room already. `settled`: the routing had ended before the kernel that goes
    /// before could begin.
    void multiply(const ExpertWeights& weights, int layer, const void* x, bool narrow, bool settled,
                  bool overlap) const;
    /// What the last run made of each row: to be added up by whoever reads it.
    RowSums results() const;

    /// The ways taken, in words.
    std::vector<std::string> chosen() const;
    /// Whether activations are made narrow before the first product, and before the second.
    std::array<bool, 2> narrows() const;
    /// [row][chosen] experts of a layer, as the last run found them.
    std::vector<int> choices(int layer) const;

  private:
    enum Kind { gate_up, down };
    /// Both products share their panels.
    struct Plan {
        int panel_rows = 0;
        std::array<RoutedVariant, 2> ways = {};
        double time = 0.0;  // of both, each by itself
    };
    std::vector<std::pair<RoutedVariant, double>> ranked(Kind kind, const std::vector<RoutedVariant>& variants,
                                                         const std::vector<ExpertWeights>& layers, const void* x,
                                                         const Routing& routing) const;
    Product router_product(const ExpertWeights& weights, const void* x) const;
    RoutedProduct routed(Kind kind, const ExpertWeights& weights, const void* x, const Routing& routing) const;
    /// Our variants, with the activations that they are given and with narrow ones.
    std::vector<RoutedVariant> variants_of(Kind kind, const ExpertWeights& weights, const void* x,
                                           const std::string& preferred) const;
    /// Makes activations narrow first where the variant reads such and they are not there yet.
    void run_variant(const RoutedVariant& variant, Kind kind, RoutedProduct product, bool there, bool overlap) const;

    ExpertShape shape_;
    const Clock* clock_;
    RoutingMemory routing_;
    Memory scores_, activated_, results_;
    std::array<std::optional<NarrowRoom>, 2> narrow_;  // activations of both products
    ProductWay router_;
    bool together_ = false;  // router and choice are one kernel
    std::string router_name_;
    std::vector<Plan> plans_;
    std::size_t taken_ = 0;
};

}  // namespace roofline::cuda::kernels
