// Making rows of activations narrow: a block takes a row.
#include "roofline/bench/cuda/narrow.cuh"
#include "roofline/bench/cuda/row_pieces.cuh"

namespace roofline::cuda::kernels {

namespace {

/// Gates and what they gate, side by side in a row.
struct GateUp {
    const void* rows;
    const void* bias;  // of both; null: none
};
__device__ Eight eight_of(const GateUp& x, std::size_t row, int piece, int pieces) {
    Eight gate = read(x.rows, row * 2 * pieces + piece);
    Eight up = read(x.rows, (row * 2 + 1) * pieces + piece);
    if (x.bias != nullptr) {
        add_to(gate, read(x.bias, piece));
        add_to(up, read(x.bias, pieces + piece));
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) up.v[i] *= silu(gate.v[i]);
    return up;
}

template <int Most, class Rows>
__global__ __launch_bounds__(most_row_threads) void narrow_kernel(NarrowTo to, Rows x, int pieces, bool holds) {
    if (!holds) let_next_start();
    wait_for_previous();
    if (holds) let_next_start();
    Eight mine[Most];
    each_piece<Most>(pieces, [&](int i, int piece) { mine[i] = eight_of(x, blockIdx.x, piece, pieces); });
    write_narrow(to, static_cast<int>(blockIdx.x), pieces, mine);
}

template <class Rows>
void start_narrow(const NarrowTo& to, const Rows& x, int rows, int width, bool holds, Launch launch) {
    start_for_pieces(width, [&]<int Most>(std::integral_constant<int, Most>) {
        start(&narrow_kernel<Most, Rows>, dim3(static_cast<unsigned>(rows)), row_threads(width), 0, launch.overlap,
              launch.stream, to, x, width / 8, holds);
    });
}

}  // namespace

void silu_product(const NarrowTo& to, const void* gate_up, int rows, int width, Launch launch, const void* bias,
                  bool holds) {
    start_narrow(to, GateUp{gate_up, bias}, rows, width, holds, launch);
}

void narrow_rows(const NarrowTo& to, const void* x, int rows, int width, Launch launch) {
    start_narrow(to, Apart{x, width / 8}, rows, width, false, launch);
}

NarrowRoom::NarrowRoom(Format weights, int rows, int width)
    : rows_(rows),
      width_(width),
      blocks_(weights == Format::fp8_block),
      whole_(weights == Format::int8),
      stride_(x_scale_stride(rows)),
      values_(product_of({rows, width})),
      scales_(product_of({blocks_ ? (width + 127) / 128 : 1, stride_, 4})) {}

void NarrowRoom::put_into(Product& product) const {
    product.x = values_.at();
    product.x_scales = scales_.at<float>();
    product.x_scale_stride = stride_;
}

void NarrowRoom::narrow(Product& product, Launch launch) const {
    narrow_rows(to(), product.x, rows_, width_, launch);
    put_into(product);
}

}  // namespace roofline::cuda::kernels
