// Which rows of a step go to which experts of a mixture, found on the device, and what becomes of the experts' results.
#pragma once

#include "roofline/bench/cuda/elementwise.cuh"
#include "roofline/bench/cuda/memory.cuh"
#include "roofline/bench/cuda/panels.hpp"
#include "roofline/bench/cuda/product.cuh"

namespace roofline::cuda::kernels {

constexpr int most_experts = 512;
constexpr int most_chosen = 32;  // by a row

/// Pointers into device memory.
struct Routing {
    int rows = 0;
    int experts = 0;
    int chosen = 0;  // by a row
    int panel_rows = 0;
    const void* bias = nullptr;  // bf16 [experts], added to scores; null: none
    int* choices = nullptr;      // [row][chosen]: experts, the best first
    float* shares = nullptr;     // [row][chosen]: of an expert in a row's result; those of a row add up to 1
    int* places = nullptr;       // [row][chosen]: where experts find and leave it
    int* rows_at = nullptr;      // [place]
    Panel* panels = nullptr;
    int* panel_count = nullptr;
    int* counters = nullptr;  // [experts + 1], zero between calls
    int* begins = nullptr;    // [expert]: its first place, where there are many rows
};

/// Each row goes to the `chosen` experts with its highest scores (bf16 [rows, experts]; of equal ones the first);
/// shares are the softmax over these. Rows of an expert are in no order. 4 rows chosen FLOP; 2 rows experts and
/// 16 rows chosen bytes.
void route(const Routing& routing, const void* scores, Launch launch);

/// The router's product, and `route` by the block that is done last: one launch less, for up to so many rows.
constexpr int most_routed_together = 32;
void route(const Routing& routing, const Product& router, Launch launch);

/// Memory for a routing of so many rows; choices of several layers, so that they can be looked at afterwards.
class RoutingMemory {
  public:
    RoutingMemory(int rows, int experts, int chosen, int layers, cudaStream_t stream);
    Routing of(int layer, int panel_rows) const;

  private:
    Routing sizes_;
    Memory choices_, shares_, places_, rows_at_, panels_, counters_;
};

}  // namespace roofline::cuda::kernels
