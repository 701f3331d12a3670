// Timing by events around replays of a graph that holds many launches, each on the next of several buffers so that the
// L2 never holds what is read. Median, low and high are over replays.
#pragma once

#include <cuda_runtime.h>
#include <functional>
#include <string>
#include <vector>

#include "roofline/bench/cuda/memory.cuh"

namespace roofline::cuda::kernels {

struct Timing {
    double median = 0.0;  // seconds of one launch
    double low = 0.0;
    double high = 0.0;
    int repetitions = 0;
};

/// Launches a kernel on the stream, on the buffer of this number.
using Run = std::function<void(int)>;

/// A stream and what is timed on it.
class Clock {
  public:
    Clock();
    ~Clock();
    Clock(const Clock&) = delete;
    Clock& operator=(const Clock&) = delete;

    cudaStream_t stream() const { return stream_; }
    void finish() const { must(cudaStreamSynchronize(stream_), "running the kernels"); }

    /// Launches over all buffers in turn, captured in a graph and replayed for about `seconds`.
    Timing captured(const Run& run, int buffers, double seconds) const;
    /// The same without a graph, one run at a time: what an eager program waits.
    Timing eager(const Run& run, int buffers, double seconds) const;
    /// The number of kernels that a run launches.
    int kernels(const Run& run) const;

  private:
    double span(const std::function<void()>& work) const;

    cudaStream_t stream_ = nullptr;
    cudaEvent_t begin_ = nullptr;
    cudaEvent_t end_ = nullptr;
};

/// The fastest of several ways to do the same, by short timings; ways that fail are left out. -1 where all do.
int fastest(const Clock& clock, const std::vector<Run>& ways, int buffers, double seconds,
            std::vector<double>* times = nullptr);

/// Buffers of so many bytes that are needed so that none is in the L2 when its turn comes again: three times its size
/// lies between two uses.
int rotation(std::size_t bytes);

}  // namespace roofline::cuda::kernels
