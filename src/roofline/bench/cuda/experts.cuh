// The FFN of a mixture of experts: router, choice, the experts' products on the rows that chose them, and their sum.
#pragma once

#include <string>
#include <vector>

#include "roofline/bench/cuda/memory.cuh"
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
};

/// Weights of a layer: router [experts, hidden], experts' [experts, 2 width, hidden] and [experts, hidden, width].
struct ExpertWeights {
    const void* router = nullptr;
    const void* gate_up = nullptr;
    const void* gate_up_scales = nullptr;
    const void* down = nullptr;
    const void* down_scales = nullptr;
};

class Experts {
  public:
    Experts(const ExpertShape& shape, const Clock& clock);

    /// Chooses the fastest ways on these layers' weights. The router's product is the backend's; those of experts are
    /// ours, whoever multiplies the rest: no library here takes its rows from the device.
    void choose(const std::string& backend, const std::vector<ExpertWeights>& layers, const void* x);
    /// y = the mixture's result, both [rows, hidden].
    void run(const ExpertWeights& weights, int layer, const void* x, void* y, bool overlap) const;

    const std::vector<std::string>& chosen() const { return chosen_; }
    /// [row][chosen] experts of a layer, as the last run found them.
    std::vector<int> choices(int layer) const;

  private:
    enum Kind { gate_up, down };
    Product router_product(const ExpertWeights& weights, const void* x) const;
    RoutedProduct routed(Kind kind, const ExpertWeights& weights, const void* x, const Routing& routing) const;

    ExpertShape shape_;
    const Clock* clock_;
    RoutingMemory routing_;
    Memory scores_, gate_up_, activated_, results_;
    ProductWay router_;
    RoutedVariant ways_[2] = {};
    int panel_rows_ = 0;
    std::vector<std::string> chosen_;
};

}  // namespace roofline::cuda::kernels
