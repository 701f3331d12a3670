// The routed product of product.cuh for few rows an expert, on Hopper. Activations are brought to the weights as in
// product_digits.cuh; but an expert's rows of weights are short and each expert meets other activations, so a block
// works otherwise:
// - it takes tiles of 16 rows that lie together, so that they are of two or three panels at most, whose activations it
//   puts into their form once, while the first weights are on their way;
// - a warp takes a whole tile, all of its inner dimension, from a ring of its own: no warp waits for another, and
//   nothing has to be added up between them. Eight gates and the eight rows that they gate are one tile, so a lane has
//   both sums.
#pragma once

#include <algorithm>
#include <cuda_bf16.h>

#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/digit_weights.cuh"
#include "roofline/bench/cuda/fp4_digits.cuh"
#include "roofline/bench/cuda/launch.cuh"
#include "roofline/bench/cuda/product_turn.cuh"

namespace roofline::cuda::kernels {

/// How a block's shared memory is divided: activations of its panels, their units, rings, scales, barriers. Rows: of
/// activations in a panel. Segment: bytes of a row of weights at a time.
template <class Weights, int Rows, int Warps, int Segment>
struct ExpertRoom {
    static constexpr int bytes = 227 * 1024;
    static constexpr int warps = Warps;
    static constexpr int segment = Segment;
    static constexpr int panel_rows = Rows;
    static constexpr int rows = 16;  // of weights
    static constexpr int most_columns = Weights::columns * Rows;
    static constexpr int column_tiles = (most_columns * Weights::together + 7) / 8;
    static constexpr int chunk_values = 4 * Weights::values;
    static constexpr int loads = Weights::words / 4;
    static constexpr int chunk_bytes = loads * most_columns * 64;
    using SegmentRows = kernels::SegmentRows<rows, Segment>;
    static constexpr int stage_bytes = SegmentRows::bytes;
    static constexpr int most_stages = 4;
    static constexpr int most_panels = 3;  // that a block's tiles are of

    /// Where there are no more panels than blocks a block has tiles of two at most, else of three.
    __host__ __device__ static constexpr int panels(int all, int blocks) { return all <= blocks ? 2 : most_panels; }

    /// Of a row; the last may be there by half.
    __host__ __device__ static constexpr int chunks(int k) { return (k + chunk_values - 1) / chunk_values; }
    __host__ __device__ static constexpr int digit_bytes(int k) { return chunks(k) * chunk_bytes; }
    __host__ __device__ static constexpr int unit_bytes(int k) { return (chunks(k) * Rows * 4 + 127) / 128 * 128; }
    __host__ __device__ static constexpr int scale_bytes(int k) { return 2 * scale_rows_bytes<Weights>(8, k); }
    __host__ __device__ static constexpr int fixed_bytes(int k, int panels) {
        return panels * (digit_bytes(k) + unit_bytes(k)) + Warps * most_stages * 8 + 16;
    }
    /// A tile's scales come with its first segment and are needed to its last: there is room for those of all tiles
    /// that segments on their way can be of.
    __host__ __device__ static constexpr int scale_slots(int some_stages, int k) {
        const int segments = (k * 16 / Weights::values + Segment - 1) / Segment;
        return (some_stages + 2 * segments - 2) / segments;
    }
    __host__ __device__ static constexpr int stages(int k, int panels) {
        const int left = bytes - fixed_bytes(k, panels);
        int most = most_stages;
        while (most > 0 && Warps * (most * stage_bytes + scale_slots(most, k) * scale_bytes(k)) > left) --most;
        return most;
    }
    /// As many as are launched.
    static int blocks_for(const RoutedProduct& product) {
        return std::min(product.n / rows * product.most_panels, multiprocessors());
    }
    static bool takes(const RoutedProduct& product) {
        constexpr bool halves = Weights::scaling == Scaling::operands || Weights::scaling == Scaling::pieces;
        const int granule = halves ? chunk_values / 2 : chunk_values;
        return product.k % granule == 0 && scale_rows_bytes<Weights>(8, product.k) % 16 == 0 && product.n % rows == 0 &&
               product.most_panels <= (most_panels - 1) * multiprocessors() &&
               stages(product.k, panels(product.most_panels, blocks_for(product))) >= 2;
    }
};

#if __CUDA_ARCH__ >= 900

/// The tiles of a block, and where its shared memory has what.
template <class Weights, class Shape>
struct ExpertBlock {
    RoutedProduct work;
    int chunks;
    int row_bytes;  // of weights
    int tiles;      // of a panel
    int stages;
    int begin_turn;
    int end_turn;
    std::uint8_t* digits;
    float* units;
    std::uint8_t* rings;

    __device__ ExpertBlock(const RoutedProduct& product, std::uint8_t* shared) : work(product) {
        chunks = Shape::chunks(work.k);
        row_bytes = work.k * 16 / Weights::values;
        tiles = work.n / Shape::rows;
        const int panels = Shape::panels(work.most_panels, static_cast<int>(gridDim.x));
        stages = Shape::stages(work.k, panels);
        digits = shared;
        units = reinterpret_cast<float*>(digits + panels * Shape::digit_bytes(work.k));
        rings = digits + panels * (Shape::digit_bytes(work.k) + Shape::unit_bytes(work.k));
    }
    /// Once panels are known.
    __device__ void divide_turns() {
        const int all = turns(work, tiles);
        const auto block = static_cast<int>(blockIdx.x);
        begin_turn = first_turn(all, block, static_cast<int>(gridDim.x));
        end_turn = first_turn(all, block + 1, static_cast<int>(gridDim.x));
    }
    __device__ RoutedProduct product_at(int turn) const { return at_turn(work, turn, tiles, row_bytes); }
    __device__ int first_row(int turn) const { return turn % tiles * Shape::rows; }
    __device__ int first_panel() const { return begin_turn / tiles; }
    __device__ int panels() const { return begin_turn < end_turn ? (end_turn - 1) / tiles - first_panel() + 1 : 0; }
};

/// A warp's ring: it asks for segments of its tiles in order, as many ahead as there are stages.
template <class Weights, class Shape>
class WarpRing {
  public:
    __device__ WarpRing(const ExpertBlock<Weights, Shape>& block, int warp) : block_(block) {
        const int stages = block.stages;
        slots_ = Shape::scale_slots(stages, block.work.k);
        const int of_scales = slots_ * Shape::scale_bytes(block.work.k);
        std::uint8_t* scales = block.rings + Shape::warps * stages * Shape::stage_bytes;
        ring_ = shared_address(block.rings) + static_cast<std::uint32_t>(warp * stages * Shape::stage_bytes);
        scales_ = scales + warp * of_scales;
        full_ = shared_address(scales + Shape::warps * of_scales) +
                static_cast<std::uint32_t>(warp * Shape::most_stages * 8);
        if (threadIdx.x % 32 == 0) {
            for (int i = 0; i < stages; ++i) barrier_make(full_ + i * 8, 1);
            barriers_ready();
        }
        __syncwarp();
    }

    /// Asks for all stages at first. Then, each time the oldest has been used, for the next.
    __device__ void begin(int warp) {
        policy_ = read_once_policy();
        turn_ = block_.begin_turn + warp;
        for (int i = 0; i < block_.stages; ++i) ask();
    }
    /// Waits for the next segment: where it lies.
    __device__ std::uint32_t wait() const {
        barrier_wait(full_ + static_cast<std::uint32_t>(stage_ * 8), parity_);
        return ring_ + static_cast<std::uint32_t>(stage_ * Shape::stage_bytes);
    }
    /// The lanes are done with the segment.
    __device__ void used() {
        __syncwarp();
        ask();
        if (++stage_ == block_.stages) stage_ = 0, parity_ ^= 1;
    }
    /// The scales of the present tile, row by row, and that it is done.
    __device__ const std::uint8_t* scales() const { return scales_ + slot_ * Shape::scale_bytes(block_.work.k); }
    __device__ void tile_done() {
        if (++slot_ == slots_) slot_ = 0;
    }

  private:
    __device__ void ask() {
        if (turn_ >= block_.end_turn) return;
        const RoutedProduct product = block_.product_at(turn_);
        // Halves of a tile: gates and what they gate, or neighbours.
        const int upper = weight_row(product, block_.first_row(turn_));
        const int lower = weight_row(product, block_.first_row(turn_) + 8);
        const auto row_bytes = static_cast<std::size_t>(block_.row_bytes);
        const auto* weights = static_cast<const std::uint8_t*>(product.weights) + begin_;
        const auto* scales = static_cast<const std::uint8_t*>(product.scales);
        const auto some = static_cast<std::uint32_t>(min(Shape::segment, block_.row_bytes - begin_));
        const auto tile_scales = static_cast<std::uint32_t>(Shape::scale_bytes(block_.work.k));
        const bool with_scales = scales_travel<Weights> && begin_ == 0;
        const std::uint32_t arrival = full_ + static_cast<std::uint32_t>(next_stage_ * 8);
        __syncwarp();
        if (elected()) {
            barrier_expect(arrival, some * Shape::rows + (with_scales ? tile_scales : 0));
#pragma unroll
            for (int i = 0; i < Shape::rows; ++i) {
                const int row = i < 8 ? upper + i : lower + i - 8;
                bulk_copy_once(
                    ring_ + static_cast<std::uint32_t>(next_stage_ * Shape::stage_bytes) + Shape::SegmentRows::at(i),
                    weights + static_cast<std::size_t>(row) * row_bytes, some, arrival, policy_);
            }
            if (with_scales) {
                const std::uint32_t to = shared_address(scales_) + static_cast<std::uint32_t>(next_slot_) * tile_scales;
                bulk_copy_once(to, scales + scale_place<Weights>(upper, block_.work.k), tile_scales / 2, arrival,
                               policy_);
                bulk_copy_once(to + tile_scales / 2, scales + scale_place<Weights>(lower, block_.work.k),
                               tile_scales / 2, arrival, policy_);
            }
        }
        __syncwarp();
        if (++next_stage_ == block_.stages) next_stage_ = 0;
        begin_ += Shape::segment;
        if (begin_ >= block_.row_bytes) {
            begin_ = 0;
            turn_ += Shape::warps;
            if (++next_slot_ == slots_) next_slot_ = 0;
        }
    }

    const ExpertBlock<Weights, Shape>& block_;
    std::uint32_t ring_;
    std::uint32_t full_;  // barriers
    std::uint8_t* scales_;
    std::uint64_t policy_ = 0;
    int turn_ = 0;  // what is asked for next: a tile, where in its rows, into which stage and slot of scales
    int begin_ = 0;
    int next_stage_ = 0;
    int next_slot_ = 0;
    int stage_ = 0;  // what is used next
    std::uint32_t parity_ = 0;
    int slot_ = 0;
    int slots_ = 0;
};

/// Puts the activations of the block's panels into their form, [panel][chunk][load][column][corner][16 bytes], and
/// their units, [panel][chunk][row]. Rows that a panel does not have stay as they are: their sums are of nobody. Past
/// the end of a row there are zeros up to a whole chunk.
template <class Weights, class Shape>
__device__ void put_activations(const ExpertBlock<Weights, Shape>& block) {
    static_assert(Shape::most_panels == 3);
    const RoutedProduct& work = block.work;
    int until[2];   // rows of the first panel, and of the first two
    int places[3];  // of a row, less its number among the rows of all
    int rows = 0;
#pragma unroll
    for (int i = 0; i < Shape::most_panels; ++i) {
        const Panel panel = panel_of(work, block.first_panel() + min(i, max(block.panels() - 1, 0)));
        places[i] = panel.first - rows;
        if (i < block.panels()) rows += panel.rows;
        if (i < 2) until[i] = rows;
    }
    const auto of_panel = [&](int row, int first, int second, int third) {
        return row >= until[1] ? third : row >= until[0] ? second : first;
    };
    constexpr int lanes = Shape::chunk_values / 8;  // that share a chunk
    constexpr int together = 8;                     // loads on their way
    constexpr int threads = Shape::warps * 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int eights = work.k / 8;
    const int with_zeros = block.chunks * lanes;  // eights of a row
    const int items = rows * with_zeros;
    for (int first = static_cast<int>(threadIdx.x) - lane; first < items; first += together * threads) {
        uint4 raw[together];
#pragma unroll
        for (int i = 0; i < together; ++i) {
            const int item = first + i * threads + lane;
            raw[i] = {0, 0, 0, 0};
            if (item >= items || item % with_zeros >= eights) continue;
            const int row = item / with_zeros;
            const int place = row + of_panel(row, places[0], places[1], places[2]);
            const std::size_t from = static_cast<std::size_t>(row_of_x(work, place)) * static_cast<std::size_t>(eights);
            raw[i] = static_cast<const uint4*>(work.x)[from + static_cast<std::size_t>(item % with_zeros)];
        }
#pragma unroll
        for (int i = 0; i < together; ++i) {
            const int item = first + i * threads + lane;
            if (item - lane >= items) break;
            const std::uint32_t largest = largest_among<lanes>(raw[i]);
            if (item >= items) continue;
            const int panel = of_panel(item / with_zeros, 0, 1, 2);
            const int row = item / with_zeros - of_panel(item / with_zeros, 0, until[0], until[1]);
            const int at = item % with_zeros * 8;
            const int chunk = at / Shape::chunk_values;
            Weights::template put<Weights>(
                block.digits + panel * Shape::digit_bytes(work.k) + chunk * Shape::chunk_bytes, raw[i],
                group_power(largest), row, Shape::most_columns, at % Shape::chunk_values / Weights::values,
                at % Weights::values);
            if (at % Shape::chunk_values == 0) {
                block.units[panel * (Shape::unit_bytes(work.k) / 4) + chunk * Shape::panel_rows + row] =
                    Weights::factor * unit_of(largest, Weights::unit_less);
            }
        }
    }
}

/// A warp multiplies one tile with the activations of its panel, and writes.
template <class Weights, class Shape>
__device__ void multiply_tile(const ExpertBlock<Weights, Shape>& block, int turn, const Weights& unpack,
                              WarpRing<Weights, Shape>& ring) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int quad = lane / 4;
    const int corner = lane % 4;
    const RoutedProduct product = block.product_at(turn);
    const int panel = turn / block.tiles - block.first_panel();
    const int first_row = block.first_row(turn);
    float row_scale[2] = {1.0f, 1.0f};
    constexpr bool grouped = Weights::scaling == Scaling::groups;
    if constexpr (Weights::scaled && Weights::scaling == Scaling::rows) {
        row_scale[0] = static_cast<const float*>(product.scales)[weight_row(product, first_row + quad)];
        row_scale[1] = static_cast<const float*>(product.scales)[weight_row(product, first_row + quad + 8)];
    }
    const float row_bias[2] = {bias_of(product, first_row + quad), bias_of(product, first_row + quad + 8)};
    if (product.whole_scale != nullptr) row_scale[0] = row_scale[1] = *product.whole_scale;
    const int scale_row = scale_row_bytes<Weights>(product.k);
    const std::uint8_t* scales = ring.scales() + quad * scale_row;
    const auto* group_scales = reinterpret_cast<const __nv_bfloat16*>(scales);
    const int last_place = product.k / Weights::values - 1;                    // of 16 bytes
    const auto* block_scales = reinterpret_cast<const float*>(ring.scales());  // of the upper half, then of the lower
    const int blocks = scale_row / 4;
    const float* units = block.units + panel * (Shape::unit_bytes(product.k) / 4);
    const std::uint32_t panel_digits =
        shared_address(block.digits) + static_cast<std::uint32_t>(panel * Shape::digit_bytes(product.k));
    const std::uint32_t columns = panel_digits + static_cast<std::uint32_t>(quad * 64 + corner * 16);
    float sums[Shape::column_tiles][Weights::sums] = {};
    for (int begin = 0; begin < block.row_bytes; begin += Shape::segment) {
        const std::uint32_t start = ring.wait() + Shape::SegmentRows::at(quad);
        const int some = (min(Shape::segment, block.row_bytes - begin) + 63) / 64;
#pragma unroll 4
        for (int i = 0; i < some; ++i) {
            const int chunk = begin / 64 + i;
            const std::uint32_t row = start + static_cast<std::uint32_t>(i * 64);
            const uint4 upper_bytes = Weights::read(row, corner);
            const uint4 lower_bytes = Weights::read(row + Shape::SegmentRows::at(8), corner);
            if constexpr (Weights::scaling == Scaling::pieces) {
                const ChunkActivations x{panel_digits + static_cast<std::uint32_t>(chunk * Shape::chunk_bytes),
                                         Shape::most_columns, units + chunk * Shape::panel_rows, Shape::panel_rows};
                unpack.template add_chunk<Shape::column_tiles>(sums, upper_bytes, lower_bytes,
                                                               {scales, 8 * scale_row, scale_row - 1}, x, chunk);
            } else {
                const int place = min(chunk * 4 + corner, last_place);  // past the end activations are zero
                std::uint32_t upper[Weights::words];
                std::uint32_t lower[Weights::words];
                unpack_row(unpack, upper_bytes, scales, place, upper);
                unpack_row(unpack, lower_bytes, scales + 8 * scale_row, place, lower);
                float scale[2] = {1.0f, 1.0f};
                if constexpr (Weights::scaling == Scaling::blocks) {
                    scale[0] = block_scales[chunk / 2];
                    scale[1] = block_scales[blocks + chunk / 2];
                }
                if constexpr (grouped) {
                    scale[0] = __bfloat162float(group_scales[chunk]);
                    scale[1] = __bfloat162float(group_scales[8 * block.chunks + chunk]);
                }
#pragma unroll
                for (int t = 0; t < Shape::column_tiles; ++t) {
                    uint4 other[Shape::loads];
#pragma unroll
                    for (int j = 0; j < Shape::loads; ++j) {
                        other[j] = shared_read_if(
                            8 * t + quad < Shape::most_columns,
                            columns + static_cast<std::uint32_t>(chunk * Shape::chunk_bytes +
                                                                 (j * Shape::most_columns + 8 * t) * 64));
                    }
                    typename Weights::Sum sum[4] = {Weights::start, Weights::start, Weights::start, Weights::start};
#pragma unroll
                    for (int j = 0; j < Weights::words; j += 2) {
                        Weights::multiply(sum, upper[j], lower[j], upper[j + 1], lower[j + 1],
                                          word(other[j / 4], j % 4), word(other[j / 4], j % 4 + 1));
                    }
#pragma unroll
                    for (int j = 0; j < Weights::sums; ++j) {
                        const int row = min(Weights::activation(t, corner, j), Shape::panel_rows - 1);
                        const float unit = Weights::scaled ? units[chunk * Shape::panel_rows + row] : 1.0f;
                        sums[t][j] += unit * scale[Weights::below(j)] * Weights::of(sum, j);
                    }
                }
            }
        }
        ring.used();
    }
    ring.tile_done();
    if constexpr (Weights::together > 1) {
#pragma unroll
        for (float& sum : sums[0]) Weights::join(sum);
    }

    constexpr int of_a_row = Weights::sums / 2;  // sums of the upper row of weights, then as many of the lower
    const auto width = static_cast<std::size_t>(width_of_y(product));
#pragma unroll
    for (int t = 0; t < Shape::column_tiles; ++t) {
#pragma unroll
        for (int j = 0; j < of_a_row; ++j) {
            const int activation = Weights::activation(t, corner, j);
            if (activation >= product.m || corner % Weights::together != 0) continue;
            __nv_bfloat16* y = static_cast<__nv_bfloat16*>(product.y) + static_cast<std::size_t>(activation) * width;
            const float upper = fmaf(sums[t][j], row_scale[0], row_bias[0]);
            const float lower = fmaf(sums[t][of_a_row + j], row_scale[1], row_bias[1]);
            if (product.gated) {
                y[first_row / 2 + quad] = __float2bfloat16_rn(gated(upper, lower));
            } else {
                y[first_row + quad] = __float2bfloat16_rn(upper);
                y[first_row + quad + 8] = __float2bfloat16_rn(lower);
            }
        }
    }
}

#endif

template <class Weights, int Rows, int Warps, int Segment>
__global__ __launch_bounds__(Warps * 32, 1) void expert_product_kernel(RoutedProduct work) {
#if __CUDA_ARCH__ >= 900
    using Shape = ExpertRoom<Weights, Rows, Warps, Segment>;
    extern __shared__ __align__(128) std::uint8_t shared[];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    ExpertBlock<Weights, Shape> block(work, shared);
    WarpRing<Weights, Shape> ring(block, warp);
    if (!work.settled) wait_for_previous();
    let_next_start();
    block.divide_turns();
    ring.begin(warp);
    if (work.settled) wait_for_previous();
    put_activations(block);
    __syncthreads();
    const Weights unpack;
    for (int turn = block.begin_turn + warp; turn < block.end_turn; turn += Warps) {
        multiply_tile(block, turn, unpack, ring);
    }
#endif
}

template <class Weights, int Rows, int Warps, int Segment>
RoutedVariant expert_variant(const char* name) {
    using Shape = ExpertRoom<Weights, Rows, Warps, Segment>;
    return {.name = name,
            .most_rows = Rows,
            .threads = Warps * 32,
            .block_rows = Shape::rows,
            .kernel = &expert_product_kernel<Weights, Rows, Warps, Segment>,
            .shared_bytes = Shape::bytes,
            .resident = 1,
            .takes = &Shape::takes};
}

}  // namespace roofline::cuda::kernels
