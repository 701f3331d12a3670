// How sums over different keys of a head become one: those of warps, and those of the blocks (splits) that divide a
// head between them. A grid of decode attention has a cluster's blocks in x, a head's clusters in y, and in z the kv
// heads of all sequences.
#pragma once

#include <cuda_bf16.h>

#include "roofline/bench/cuda/attention.cuh"
#include "roofline/bench/cuda/attention_division.hpp"
#include "roofline/bench/cuda/cluster.cuh"

namespace roofline::cuda::kernels {

constexpr float log2_e = 1.4426950408889634f;
constexpr float nothing = -1e30f;  // a score that is no key's: finite, so that differences of two are numbers
/// Where the highest score begins if the first tile may have no key that counts: under any key's, and so far over
/// `nothing` that the weights of such a tile are zero. (Relative to `nothing` itself they would be one, or, where the
/// scaled difference is rounded, anything up to infinity, which no later factor of zero wipes out.)
constexpr float unseen = 1e-3f * nothing;

/// 2^exponent to two units in the last place, by one instruction; 0 where that is tiny.
__device__ inline float power(float exponent) {
    float value;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(exponent));
    return value;
}

/// The score of a query head's sink as an exponent; where there is none, one whose weight is zero. A sink so high that
/// its weight is infinite is well too: what is divided by it becomes zero.
__device__ inline float sink_of(const Attention& a, int head) {
    return a.sinks != nullptr ? log2_e * a.sinks[head] : __int_as_float(0xFF800000);
}

/// Which of a head's splits this block is.
__device__ inline int split_index() {
    return static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
}

/// Four dimensions of a head's values, summed up over some keys relative to the highest score of these.
struct Sum {
    float4 sum;
    float peak;
    float weight;
};

/// Puts the sums of `count` sets of keys together, `together` of them on their way at a time: `known_of` gives peak and
/// weight of a set, `part_of` its sums.
template <int together, class Known, class Part>
__device__ inline Sum joined(int count, const Known& known_of, const Part& part_of) {
    Sum all{make_float4(0.0f, 0.0f, 0.0f, 0.0f), nothing, 0.0f};
    for (int first = 0; first < count; first += together) {
        float2 known[together];
        float4 part[together];
#pragma unroll
        for (int j = 0; j < together; ++j) {
            const int at = min(first + j, count - 1);
            known[j] = known_of(at);
            part[j] = part_of(at);
            if (first + j >= count) known[j].x = nothing, known[j].y = 0.0f;
        }
        float raised = all.peak;
#pragma unroll
        for (int j = 0; j < together; ++j) raised = fmaxf(raised, known[j].x);
        const float before = power(all.peak - raised);
        all.sum = make_float4(all.sum.x * before, all.sum.y * before, all.sum.z * before, all.sum.w * before);
        all.weight *= before;
        all.peak = raised;
#pragma unroll
        for (int j = 0; j < together; ++j) {
            const float factor = first + j < count ? power(known[j].x - raised) : 0.0f;
            all.sum.x += factor * part[j].x;
            all.sum.y += factor * part[j].y;
            all.sum.z += factor * part[j].z;
            all.sum.w += factor * part[j].w;
            all.weight += factor * known[j].y;
        }
    }
    return all;
}

/// Where the splits of a head meet. Those of a cluster write to each other's shared memory, where each puts a share of
/// the dimensions together. Clusters meet by way of the L2, which takes longer, share by share: whichever block of a
/// share comes last puts it together. Where there are no clusters, each split counts as one.
template <int Threads, int Dimension, bool Cluster>
class Meeting {
  public:
    /// Shared memory for what the blocks of a cluster write to each other; it is for nothing else, because one may be
    /// done before another.
    static constexpr int bytes_for(int heads) {
        if (!Cluster) return 0;
        return (heads * Dimension / 4 + most_in_cluster) * static_cast<int>(sizeof(float4)) +
               most_in_cluster * heads * static_cast<int>(sizeof(float2));
    }

    /// `shared`: of so many bytes, for as many heads as the group has, or more.
    __device__ Meeting(const Attention& a, void* shared)
        : a_(a),
          group_(a.query_heads / a.kv_heads),
          received_(static_cast<float4*>(shared)),
          known_(reinterpret_cast<float2*>(received_ + gridDim.x * a.share)) {
        output_ = static_cast<__nv_bfloat16*>(a.output) + static_cast<std::size_t>(blockIdx.z) * group_ * Dimension;
        if constexpr (Cluster) cluster_wait();  // all have begun, so there is memory to write to
    }

    /// This block's sums for four dimensions, counted over all heads of the group.
    __device__ void bring(int four, const Sum& one) const {
        if constexpr (Cluster) {
            const int to = four / a_.share;
            const int rank = static_cast<int>(blockIdx.x);
            cluster_write(received_ + rank * a_.share + four % a_.share, to, one.sum);
            if (is_first(four, to)) {
                cluster_write(known_ + rank * group_ + four / fours, to, make_float2(one.peak, one.weight));
            }
        } else {
            hand_on(four, one);
        }
    }

    /// To be called by all threads when they have brought what they have.
    __device__ void end() const {
        const int first = Cluster ? static_cast<int>(blockIdx.x) * a_.share : 0;
        const int past = Cluster ? min(first + a_.share, group_ * fours) : group_ * fours;
        if constexpr (Cluster) {
            cluster_arrive();
            cluster_wait();
            for (int four = first + static_cast<int>(threadIdx.x); four < past; four += Threads) {
                hand_on(four, joined<most_in_cluster>(
                                  static_cast<int>(gridDim.x),
                                  [&](int block) { return known_[block * group_ + four / fours]; },
                                  [&](int block) { return received_[block * a_.share + four - first]; }));
            }
        }
        if (gridDim.y == 1) return;

        __shared__ bool last;
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned* tickets = &a_.tickets[blockIdx.z * gridDim.x + blockIdx.x];
            last = take_ticket(tickets) + 1 == gridDim.y;
            if (last) *tickets = 0;
        }
        __syncthreads();
        if (!last) return;
        for (int four = first + static_cast<int>(threadIdx.x); four < past; four += Threads) {
            write(four,
                  joined<16>(
                      static_cast<int>(gridDim.y), [&](int cluster) { return __ldcg(known_place(cluster, four)); },
                      [&](int cluster) { return __ldcg(part_place(cluster, four)); }));
        }
    }

  private:
    static constexpr int fours = Dimension / 4;  // of a head

    /// Whether a four is the first of its head in a block's share: with it goes what is known of the head.
    __device__ bool is_first(int four, int rank) const {
        return four % fours == 0 || (Cluster && four == rank * a_.share);
    }

    __device__ void write(int four, const Sum& all) const {
        // The one place that each four comes to once, however the keys are divided.
        const int head = static_cast<int>(blockIdx.z) % a_.kv_heads * group_ + four / fours;
        const float factor = a_.value_scale / (all.weight + power(sink_of(a_, head) - all.peak));
        __nv_bfloat162 pairs[2] = {__floats2bfloat162_rn(all.sum.x * factor, all.sum.y * factor),
                                   __floats2bfloat162_rn(all.sum.z * factor, all.sum.w * factor)};
        *reinterpret_cast<uint2*>(output_ + 4 * four) = reinterpret_cast<const uint2&>(pairs);
    }

    /// What a cluster knows of a four: all that there is to know, or a part of it.
    __device__ void hand_on(int four, const Sum& one) const {
        if (gridDim.y == 1) return write(four, one);
        const int cluster = static_cast<int>(blockIdx.y);
        *part_place(cluster, four) = one.sum;
        if (is_first(four, static_cast<int>(blockIdx.x))) {
            *known_place(cluster, four) = make_float2(one.peak, one.weight);
        }
    }

    // In memory: [kv head of a sequence][cluster][four], and behind them all what is known of each head by each block.
    __device__ float4* part_place(int cluster, int four) const {
        return reinterpret_cast<float4*>(a_.parts) +
               static_cast<std::size_t>(blockIdx.z * gridDim.y + static_cast<unsigned>(cluster)) * (group_ * fours) +
               four;
    }
    __device__ float2* known_place(int cluster, int four) const {
        auto* behind = reinterpret_cast<float2*>(reinterpret_cast<float4*>(a_.parts) +
                                                 static_cast<std::size_t>(gridDim.z * gridDim.y) *
                                                     static_cast<unsigned>(group_ * fours));
        const unsigned block = (blockIdx.z * gridDim.y + static_cast<unsigned>(cluster)) * gridDim.x + blockIdx.x;
        return behind + block * static_cast<unsigned>(group_) + four / fours;
    }

    /// How many had a ticket before. What the block wrote is seen by those who come later, and the other way round.
    __device__ static unsigned take_ticket(unsigned* tickets) {
        unsigned before;
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(tickets) : "memory");
        return before;
    }

    const Attention& a_;
    int group_;
    float4* received_;
    float2* known_;
    __nv_bfloat16* output_;
};

}  // namespace roofline::cuda::kernels
