// The product of product.cuh for panels of 32 to 256 rows of activations, on Hopper: prompts, and batches that are
// large for one. Weights are the tensor cores' first operand, 64 rows for each of a block's warp groups; narrow ones
// become bf16 on their way through registers, and never lie in memory as such. Activations are the second operand,
// which the tensor cores read from shared memory themselves. One warp group more copies both into a ring, 16 bytes at a
// time: so rows of activations may lie anywhere, as those of an expert do. Where weights have too few rows for all
// multiprocessors, the blocks of a cluster share the inner dimension of a tile and add up what they have.
//
// Bytes a multiprocessor asks of the L2 for 128 x 256 x 64 products in bf16: (128 + 256) 128, 87 FLOPs a byte; so at
// 700 TFLOP/s all of them ask for 8 TB/s, of which more than half is of blocks side by side that read the same.
#pragma once

#include <cuda_bf16.h>

#include "roofline/bench/cuda/bulk.cuh"
#include "roofline/bench/cuda/cluster.cuh"
#include "roofline/bench/cuda/eights.cuh"
#include "roofline/bench/cuda/panel_weights.cuh"
#include "roofline/bench/cuda/product_turn.cuh"

namespace roofline::cuda::kernels {

constexpr int most_split = 8;  // blocks that share a tile

/// Groups: of warps that multiply, each 64 rows of weights. Rows: of activations in a panel. Lines: of 128 bytes of a
/// row of activations in a stage.
template <class Weights, int Groups, int Rows, int Lines>
struct PanelShape {
    static constexpr int groups = Groups;
    static constexpr int rows = Rows;
    static constexpr int lines = Lines;
    static constexpr int weights = 64 * Groups;  // rows of them
    static constexpr int line = 128;
    static constexpr int values = line / Weights::x_bytes * Lines;  // of a row in a stage
    static constexpr int weight_bytes = Weights::line_bytes * Lines;
    // Rows that lanes read together lie in banks of their own; what the tensor cores read lies as they want it.
    static constexpr int pitch = Weights::in_place ? line : weight_bytes + 16;
    static constexpr int x_stage = Lines * Rows * line;
    static constexpr int x_scales = x_stage + weights * pitch * (Weights::in_place ? Lines : 1);  // where they begin
    static constexpr int stage_bytes = (x_scales + (Weights::scaled_lines ? Rows * 4 : 0) + 1023) / 1024 * 1024;
    static constexpr int most_bytes = 227 * 1024;
    static constexpr int fitting = (most_bytes - 1024) / (stage_bytes + 16);
    static constexpr int stages = fitting < 8 ? fitting : 8;
    static constexpr int bytes = 1024 + stages * (stage_bytes + 16);
    static constexpr int threads = 128 * (1 + Groups);
    static constexpr int instruction_rows = Rows < 128 ? Rows : 128;  // of activations that one multiplies
    static constexpr int instructions = Rows / instruction_rows;
    static constexpr int sums = instruction_rows / 2;  // of an instruction, a lane's
    static constexpr int part_pitch = weights + 4;     // floats between the sums of two activations
    static_assert(stages >= 3 && Rows * part_pitch * 4 <= stages * stage_bytes);
    static_assert(!Weights::scaled_lines || (Lines == 1 && Rows <= 128));  // a thread copies the scale of a row

    /// With so many blocks to a tile. Results are written two at a time.
    template <int Split>
    static bool takes(const Product& product) {
        return product.k >= Split * values && product.n % 2 == 0;
    }
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// What a block has to do with the tiles of its cluster: a share of the inner dimension, in stages.
struct Share {
    int blocks;  // of the cluster
    int rank;
    int begin;
    int end;
    __device__ explicit Share(int stages) {
        asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
        asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
        begin = first_turn(stages, rank, blocks);
        end = first_turn(stages, rank + 1, blocks);
    }
};

template <class Weights, class Shape, class Work>
class PanelProduct {
  public:
    __device__ PanelProduct(const Work& work, std::uint8_t* shared)
        : work_(work),
          ring_((shared_address(shared) + 1023u) & ~1023u),
          full_(ring_ + Shape::stages * Shape::stage_bytes),
          empty_(full_ + Shape::stages * 8),
          parts_(reinterpret_cast<float*>(shared + (ring_ - shared_address(shared)))),
          row_bytes_(work.k * Weights::x_bytes * Weights::line_bytes / Shape::line),
          tiles_((work.n + Shape::weights - 1) / Shape::weights),
          share_((work.k + Shape::values - 1) / Shape::values),
          at_(Shape::stages) {
        if (threadIdx.x == 0) {
            for (int i = 0; i < Shape::stages; ++i) {
                barrier_make(full_ + i * 8, 128);                 // copying threads
                barrier_make(empty_ + i * 8, 4 * Shape::groups);  // multiplying warps
            }
            barriers_ready();
        }
        __syncthreads();
    }

    /// What the copying warp group does. Weights are there before the kernel before has ended, and which ones of a
    /// mixture sometimes too: a ring full of them is asked for meanwhile.
    __device__ void copy() {
        const bool early = !is_routed<Work> || settled(work_);
        if (!early) wait_for_previous();
        if (is_routed<Work>) let_next_start();
        bool first = true;
        each_turn([&](const auto& product, int tile) {
            const WeightCopy weights(product, tile, row_bytes_);
            int asked = share_.begin;
            if (first && early) {
                asked = min(share_.begin + Shape::stages, share_.end);
                for (int i = share_.begin; i < asked; ++i) weights.copy(i, stage_at(i - share_.begin));
                wait_for_previous();
            }
            first = false;
            const ActivationCopy activations(product);
            for (int i = share_.begin; i < share_.end; ++i) {
                barrier_wait(empty_ + at_.index * 8, at_.parity ^ 1);
                if (i >= asked) weights.copy(i, stage_at(at_.index));
                activations.copy(i, stage_at(at_.index));
                arrive_with_pieces(full_ + at_.index * 8);
                at_.advance();
            }
            if (share_.blocks > 1) {
                cluster_arrive(), cluster_wait();
                cluster_arrive(), cluster_wait();
            }
        });
    }

    /// What the multiplying ones do.
    __device__ void multiply(int group) {
        wait_for_previous();
        if (!is_routed<Work>) let_next_start();
        each_turn([&](const auto& product, int tile) {
            Sum sums[Shape::instructions][Shape::sums];
            if constexpr (Weights::scaled_lines) {
                add_up_lines(product, tile, group, sums);
            } else {
                add_up(product, tile, group, sums);
            }
            if (share_.blocks > 1) {
                write_together(product, tile, group, sums);
            } else {
                write(product, tile, group, sums);
            }
        });
    }

  private:
    template <class Take>
    __device__ void each_turn(const Take& take) const {
        const int all = panel_turns(work_, tiles_, Shape::rows);
        const int clusters = static_cast<int>(gridDim.x) / share_.blocks;
        for (int turn = static_cast<int>(blockIdx.x) / share_.blocks; turn < all; turn += clusters) {
            int tile = 0;
            const auto product = panel_at(work_, turn, tiles_, Shape::rows, Weights::x_bytes, row_bytes_, tile);
            take(product, tile);
        }
    }

    __device__ std::uint32_t stage_at(int stage) const {
        return ring_ + static_cast<std::uint32_t>(stage * Shape::stage_bytes);
    }

    // Copying is four warps' work for all the others, so addresses are found once a turn and then counted on.

    /// A thread's pieces of a tile of weights: of every row that is a multiple of 16 further on.
    class WeightCopy {
      public:
        template <class Part>
        __device__ WeightCopy(const Part& product, int tile, int row_bytes)
            : from_(static_cast<const std::uint8_t*>(product.weights) + piece() * 16 +
                    static_cast<std::size_t>(weight_row(product, tile * Shape::weights + row())) *
                        static_cast<std::size_t>(row_bytes)),
              apart_(static_cast<std::size_t>(is_gated(product) ? step / 2 : step) *
                     static_cast<std::size_t>(row_bytes)),
              bytes_(row_bytes - piece() * 16),
              rows_(product.n - tile * Shape::weights - row()) {}

        __device__ void copy(int number, std::uint32_t stage) const {
            const int begin = number * Shape::weight_bytes;
            const bool there = begin < bytes_;
            const std::uint8_t* from = from_ + (there ? begin : 0);
            const int at = Weights::in_place
                               ? (piece() / 8 * Shape::weights + row()) * Shape::line + (piece() % 8 ^ row() % 8) * 16
                               : row() * Shape::pitch + piece() * 16;
            const std::uint32_t to = stage + static_cast<std::uint32_t>(Shape::x_stage + at);
#pragma unroll
            for (int i = 0; i < Shape::weights / step; ++i) {
                copy_piece(to + static_cast<std::uint32_t>(i * step * Shape::pitch), from, there && i * step < rows_);
                from += apart_;
            }
        }

      private:
        static constexpr int pieces = Shape::weight_bytes / 16;  // of a row
        static constexpr int step = 128 / pieces;                // rows that are copied together
        static_assert(step % 16 == 0 && Shape::weights % step == 0);
        __device__ static int piece() { return static_cast<int>(threadIdx.x) % pieces; }
        __device__ static int row() { return static_cast<int>(threadIdx.x) / pieces; }

        const std::uint8_t* from_;
        std::size_t apart_;
        int bytes_;  // of a row, from the first piece on
        int rows_;   // of weights, from the first on
    };

    /// The same of a panel's activations.
    class ActivationCopy {
      public:
        template <class Part>
        __device__ explicit ActivationCopy(const Part& product)
            : from_(static_cast<const std::uint8_t*>(product.x) + piece() * 16),
              row_bytes_(product.k * Weights::x_bytes) {
#pragma unroll
            for (int i = 0; i < Shape::rows / 16; ++i) {
                rows_[i] = line() + 16 * i < product.m ? row_of_x(product, line() + 16 * i) : -1;
            }
            if constexpr (Weights::scaled_lines) {
                const int row = min(static_cast<int>(threadIdx.x), product.m - 1);
                scales_ = product.x_scales + row_of_x(product, row);
                scale_stride_ = product.x_scale_stride;
            }
        }

        __device__ void copy(int number, std::uint32_t stage) const {
            const std::uint32_t to =
                stage + static_cast<std::uint32_t>(line() * Shape::line + (piece() ^ line() % 8) * 16);
#pragma unroll
            for (int j = 0; j < Shape::lines; ++j) {
                const int begin = (number * Shape::lines + j) * Shape::line;
                const bool there = begin + piece() * 16 < row_bytes_;
                const std::uint8_t* from = from_ + (there ? begin : 0);
#pragma unroll
                for (int i = 0; i < Shape::rows / 16; ++i) {
                    copy_piece(to + static_cast<std::uint32_t>((j * Shape::rows + i * 16) * Shape::line),
                               from + static_cast<std::int64_t>(max(rows_[i], 0)) * row_bytes_, there && rows_[i] >= 0);
                }
            }
            if constexpr (Weights::scaled_lines) {
                const int row = static_cast<int>(threadIdx.x);
                if (row < Shape::rows) {
                    copy_four(stage + static_cast<std::uint32_t>(Shape::x_scales + row * 4),
                              scales_ + static_cast<std::int64_t>(number) * scale_stride_);
                }
            }
        }

      private:
        __device__ static int line() { return static_cast<int>(threadIdx.x) / 8; }  // of 16 that are copied together
        __device__ static int piece() { return static_cast<int>(threadIdx.x) % 8; }

        const std::uint8_t* from_;
        int row_bytes_;
        int rows_[Shape::rows / 16];
        const float* scales_ = nullptr;  // of the thread's row, where lines have scales
        int scale_stride_ = 0;
    };

    using StageScales = typename Weights::Scales;
    using Sum = typename Weights::Sum;

    /// Multiplies with 32 bytes of each row of activations.
    template <class Operand>
    __device__ static void multiply_step(Sum (&sums)[Shape::instructions][Shape::sums], const Operand& a,
                                         std::uint32_t x, int step, bool more) {
#pragma unroll
        for (int j = 0; j < Shape::instructions; ++j) {
            Weights::multiply(sums[j], a, operand_at(x + j * Shape::instruction_rows * Shape::line) + 2 * step, more);
        }
    }

    /// Multiplies a line of activations with weights that lie beside them in the same format.
    template <class Begun>
    __device__ static void multiply_line(Sum (&sums)[Shape::instructions][Shape::sums], std::uint32_t stage, int line,
                                         int group, bool more, const Begun& begun) {
        const std::uint32_t x = stage + line * Shape::rows * Shape::line;
        const std::uint32_t rows = stage + Shape::x_stage + (line * Shape::weights + group * 64) * Shape::line;
        warpgroup_begin();
#pragma unroll
        for (int i = 0; i < 4; ++i) multiply_step(sums, operand_at(rows) + 2 * i, x, i, more || i > 0);
        warpgroup_commit();
        warpgroup_wait<1>();
        begun();
    }

    /// The same with others, which become operands two steps at a time, while the two before are multiplied.
    template <class Begun>
    __device__ static void multiply_line(Sum (&sums)[Shape::instructions][Shape::sums], std::uint32_t stage, int line,
                                         int first_row, const StageScales& scales, bool more, const Begun& begun) {
        const int corner = static_cast<int>(threadIdx.x) % 4;
        const std::uint32_t x = stage + line * Shape::rows * Shape::line;
        const std::uint32_t row = stage + Shape::x_stage + first_row * Shape::pitch + line * Weights::line_bytes;
        std::uint32_t raw[4][2][2];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            Weights::read(row, i, corner, raw[i][0]);
            Weights::read(row + 8 * Shape::pitch, i, corner, raw[i][1]);
        }
#pragma unroll
        for (int two = 0; two < 4; two += 2) {
            std::uint32_t a[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                Weights::operands(raw[two + i][0], a[i][0], a[i][2]);
                Weights::operands(raw[two + i][1], a[i][1], a[i][3]);
                if constexpr (Weights::grouped) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) a[i][j] = multiply_bf16(a[i][j], scales.of(j % 2, line, two + i));
                }
            }
            warpgroup_begin();
#pragma unroll
            for (int i = 0; i < 2; ++i) multiply_step(sums, a[i], x, two + i, more || two + i > 0);
            warpgroup_commit();
            warpgroup_wait<1>();
            if (two == 0) begun();
        }
    }

    template <class Part>
    __device__ void add_up(const Part& product, int tile, int group, Sum (&sums)[Shape::instructions][Shape::sums]) {
        static_assert(!Weights::grouped || 128 % Shape::values == 0);
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int first_row = group * 64 + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
        [[maybe_unused]] int rows[2] = {};
        [[maybe_unused]] StageScales next_scales;
        if constexpr (Weights::grouped) {
            rows[0] = weight_row(product, tile * Shape::weights + first_row);
            rows[1] = weight_row(product, tile * Shape::weights + first_row + 8);
            Weights::read_scales(product, rows, share_.begin * Shape::values, next_scales);
        }
        int before = -1;  // the stage that is given back when what was asked of it is done
        const auto give_back = [&] {
            if (before >= 0 && lane == 0) barrier_arrive(empty_ + before * 8);
        };
        for (int number = share_.begin; number < share_.end; ++number) {
            [[maybe_unused]] const StageScales scales = next_scales;
            if constexpr (Weights::grouped) {
                Weights::read_scales(product, rows, (number + 1) * Shape::values, next_scales);
            }
            barrier_wait(full_ + at_.index * 8, at_.parity);
            shared_settled();
            const std::uint32_t stage = stage_at(at_.index);
            const bool more = number > share_.begin;
#pragma unroll
            for (int line = 0; line < Shape::lines; ++line) {
                // What was asked of the stage before is done when the first of this one is on its way.
                const auto begun = [&] {
                    if (line == 0) give_back();
                };
                if constexpr (Weights::in_place) {
                    multiply_line(sums, stage, line, group, more || line > 0, begun);
                } else {
                    multiply_line(sums, stage, line, first_row, scales, more || line > 0, begun);
                }
            }
            before = at_.index;
            at_.advance();
        }
        warpgroup_wait<0>();
#pragma unroll
        for (int j = 0; j < Shape::instructions; ++j) sums_settled(sums[j]);
        give_back();
    }

    /// The same where each line's sums have scales of their own, of weights and of activations: they are added to the
    /// totals when they are there. Meanwhile the tensor cores have the other warp groups' lines.
    template <class Part>
    __device__ void add_up_lines(const Part& product, int tile, int group,
                                 float (&totals)[Shape::instructions][Shape::sums]) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int first_row = group * 64 + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
        const int rows[2] = {weight_row(product, tile * Shape::weights + first_row),
                             weight_row(product, tile * Shape::weights + first_row + 8)};
#pragma unroll
        for (int j = 0; j < Shape::instructions; ++j) {
#pragma unroll
            for (float& total : totals[j]) total = 0.0f;
        }
        float2 next = Weights::line_scales(product, rows, share_.begin);
        for (int number = share_.begin; number < share_.end; ++number) {
            // All rows of a lane are of one block, but where gates and what they gate are side by side.
            const float2 scales = {next.x, is_gated(product) ? next.y : next.x};
            next = Weights::line_scales(product, rows, number + 1);
            barrier_wait(full_ + at_.index * 8, at_.parity);
            shared_settled();
            const std::uint32_t stage = stage_at(at_.index);
            const std::uint32_t lines = stage + Shape::x_stage + group * 64 * Shape::line;
            float sums[Shape::instructions][Shape::sums];
            warpgroup_begin();
#pragma unroll
            for (int i = 0; i < 4; ++i) multiply_step(sums, operand_at(lines) + 2 * i, stage, i, i > 0);
            warpgroup_commit();
            float2 of_x[Shape::instructions][Shape::sums / 4];
#pragma unroll
            for (int j = 0; j < Shape::instructions; ++j) {
#pragma unroll
                for (int i = 0; i < Shape::sums / 4; ++i) {
                    const int activation = j * Shape::instruction_rows + 8 * i + lane % 4 * 2;
                    of_x[j][i] = shared_pair(stage + static_cast<std::uint32_t>(Shape::x_scales + activation * 4));
                }
            }
            warpgroup_wait<0>();
#pragma unroll
            for (int j = 0; j < Shape::instructions; ++j) sums_settled(sums[j]);
            __syncwarp();  // all lanes have their scales
            if (lane == 0) barrier_arrive(empty_ + at_.index * 8);
            at_.advance();
#pragma unroll
            for (int j = 0; j < Shape::instructions; ++j) {
#pragma unroll
                for (int i = 0; i < Shape::sums; ++i) {
                    const float x = i % 2 == 0 ? of_x[j][i / 4].x : of_x[j][i / 4].y;
                    totals[j][i] = fmaf(sums[j][i], x * (i % 4 < 2 ? scales.x : scales.y), totals[j][i]);
                }
            }
        }
    }

    /// Of the two rows of weights of a lane's sums.
    template <class Part>
    __device__ static float2 row_scales(const Part& product, int row) {
        if constexpr (requires { Weights::factor(product); }) {
            const float factor = Weights::factor(product);
            return {factor, factor};
        }
        if constexpr (!Weights::scaled) return {1.0f, 1.0f};
        const auto* scales = static_cast<const float*>(product.scales);
        return {scales[weight_row(product, row)], scales[weight_row(product, row + 8)]};
    }

    /// Of an activation, where a row of them has one.
    template <class Part>
    __device__ static float x_scale(const Part& product, int activation) {
        if constexpr (Weights::x_bytes == 2 || Weights::scaled_lines) return 1.0f;
        if (product.x_scales == nullptr) return 1.0f;
        return __ldg(product.x_scales + row_of_x(product, min(activation, product.m - 1)));
    }

    /// Two neighbours of y.
    template <class Part>
    __device__ static void put(const Part& product, int activation, int row, int width, std::uint32_t pair) {
        if (activation >= product.m || row >= width) return;
        *reinterpret_cast<std::uint32_t*>(static_cast<__nv_bfloat16*>(product.y) +
                                          static_cast<std::size_t>(activation) * static_cast<std::size_t>(width) +
                                          static_cast<std::size_t>(row)) = pair;
    }

    /// What the blocks of the cluster have of four neighbouring rows of weights and an activation.
    __device__ float4 sum_of(int activation, int row) const {
        const float* at = parts_ + activation * Shape::part_pitch + row;
        float4 parts[most_split];
#pragma unroll
        for (int i = 0; i < most_split; ++i) {  // all on their way at once
            parts[i] = i < share_.blocks ? cluster_read(reinterpret_cast<const float4*>(at), i) : float4{};
        }
        float4 sum = parts[0];
#pragma unroll
        for (int i = 1; i < most_split; ++i) {
            sum.x += parts[i].x, sum.y += parts[i].y, sum.z += parts[i].z, sum.w += parts[i].w;
        }
        return sum;
    }

    /// Writes a whole tile. Two neighbouring activations of a row of weights become two neighbouring rows of an
    /// activation first, as y has them.
    template <class Part>
    __device__ void write(const Part& product, int tile, int group,
                          const Sum (&sums)[Shape::instructions][Shape::sums]) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
        const int width = width_of_y(product);
        const int sixteen = tile * (Shape::weights / 16) + group * 4 + warp;  // rows of weights
        const float2 scales = row_scales(product, sixteen * 16 + lane / 4);
        const float2 bias = {bias_of(product, sixteen * 16 + lane / 4), bias_of(product, sixteen * 16 + lane / 4 + 8)};
#pragma unroll
        for (int j = 0; j < Shape::instructions; ++j) {
#pragma unroll
            for (int i = 0; i < Shape::sums; i += 4) {
                const int own = j * Shape::instruction_rows + 2 * i + lane % 4 * 2;  // the sums' activations
                const float2 of_x = {x_scale(product, own), x_scale(product, own + 1)};
                const auto scaled = [&](int at, float scale, float beside) {
                    return fmaf(static_cast<float>(sums[j][i + at]), scale, beside);
                };
                const float sum[4] = {scaled(0, scales.x * of_x.x, bias.x), scaled(1, scales.x * of_x.y, bias.x),
                                      scaled(2, scales.y * of_x.x, bias.y), scaled(3, scales.y * of_x.y, bias.y)};
                const int activation = j * Shape::instruction_rows + 2 * i + lane / 4;
                if (is_gated(product)) {
                    put(product, activation, sixteen * 8 + lane % 4 * 2, width,
                        turned(pack(gated(sum[0], sum[2]), gated(sum[1], sum[3]))));
                } else {
                    put(product, activation, sixteen * 16 + lane % 4 * 2, width, turned(pack(sum[0], sum[1])));
                    put(product, activation, sixteen * 16 + 8 + lane % 4 * 2, width, turned(pack(sum[2], sum[3])));
                }
            }
        }
    }

    /// The blocks of a cluster add up, each some of the tile's numbers.
    template <class Part>
    __device__ void write_together(const Part& product, int tile, int group,
                                   const Sum (&sums)[Shape::instructions][Shape::sums]) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int row = group * 64 + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
        const float2 scales = row_scales(product, tile * Shape::weights + row);
        float2 bias = {};  // from one of them
        if (share_.rank == 0) {
            bias = {bias_of(product, tile * Shape::weights + row), bias_of(product, tile * Shape::weights + row + 8)};
        }
        constexpr int threads = 128 * Shape::groups;
        asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory");  // nobody multiplies from the ring any more
#pragma unroll
        for (int j = 0; j < Shape::instructions; ++j) {
#pragma unroll
            for (int i = 0; i < Shape::sums; ++i) {
                const int activation = j * Shape::instruction_rows + i / 4 * 8 + lane % 4 * 2 + i % 2;
                const float of_x = x_scale(product, activation);
                const float sum = static_cast<float>(sums[j][i]);
                parts_[activation * Shape::part_pitch + row + i / 2 % 2 * 8] =
                    i % 4 < 2 ? fmaf(sum, scales.x * of_x, bias.x) : fmaf(sum, scales.y * of_x, bias.y);
            }
        }
        cluster_arrive(), cluster_wait();
        const int width = width_of_y(product);
        const int fours = (is_gated(product) ? Shape::weights / 2 : Shape::weights) / 4;  // results of an activation
        const int all = min(product.m, Shape::rows) * fours;
        for (int i = share_.rank * threads + static_cast<int>(threadIdx.x) - 128; i < all;
             i += threads * share_.blocks) {
            const int activation = i / fours;
            const int four = i % fours;
            const int to = tile * fours * 4 + four * 4;
            float4 result;
            if (is_gated(product)) {
                const int gate = four / 2 * 16 + four % 2 * 4;
                const float4 gates = sum_of(activation, gate);
                const float4 ups = sum_of(activation, gate + 8);
                result = {gated(gates.x, ups.x), gated(gates.y, ups.y), gated(gates.z, ups.z), gated(gates.w, ups.w)};
            } else {
                result = sum_of(activation, four * 4);
            }
            put(product, activation, to, width, pack(result.x, result.y));
            put(product, activation, to + 2, width, pack(result.z, result.w));
        }
        cluster_arrive(), cluster_wait();  // until then others read what is here
    }

    Work work_;
    std::uint32_t ring_;
    std::uint32_t full_;
    std::uint32_t empty_;
    float* parts_;
    int row_bytes_;  // of weights
    int tiles_;
    Share share_;
    Turns at_;
};

#endif

template <class Weights, int Groups, int Rows, int Lines, class Work>
__global__ __launch_bounds__(128 * (1 + Groups), 1) void panel_product_kernel(Work work) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ std::uint8_t shared[];
    PanelProduct<Weights, PanelShape<Weights, Groups, Rows, Lines>, Work> product(work, shared);
    const auto group = static_cast<int>(threadIdx.x) / 128;
    if (group == 0) {
        fewer_registers<Groups == 2 ? 96 : 64>();
        product.copy();
    } else {
        more_registers<Groups == 2 ? 200 : 104>();
        product.multiply(group - 1);
    }
#endif
}

/// Split: blocks of a cluster that share a tile.
template <class Weights, int Groups, int Rows, int Lines, int Split = 1, class Work = Product>
Variant<Work> panel_variant(const char* name) {
    using Shape = PanelShape<Weights, Groups, Rows, Lines>;
    static_assert((Groups == 2 || Groups == 4) && Split <= most_split);
    return {.name = name,
            .most_rows = Rows,
            .threads = Shape::threads,
            .block_rows = Shape::weights,
            .kernel = &panel_product_kernel<Weights, Groups, Rows, Lines, Work>,
            .shared_bytes = Shape::bytes,
            .resident = 1,
            .takes = [](const Work& work) { return Shape::template takes<Split>(work); },
            .in_panels = true,
            .hopper_alone = true,
            .cluster = Split,
            .narrow_activations = Weights::x_bytes == 1};
}

}  // namespace roofline::cuda::kernels
