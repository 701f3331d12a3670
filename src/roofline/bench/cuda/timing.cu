// Graphs, events and the rotation of buffers behind timing.cuh.
#include <algorithm>

#include "roofline/bench/cuda/timing.cuh"

namespace roofline::cuda::kernels {

namespace {

/// A captured graph, ready to be replayed.
class Graph {
  public:
    Graph(cudaStream_t stream, const std::function<void()>& work) {
        must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "graph capture");
        try {
            work();
        } catch (...) {
            cudaGraph_t broken = nullptr;
            cudaStreamEndCapture(stream, &broken);
            if (broken != nullptr) cudaGraphDestroy(broken);
            cudaGetLastError();
            throw;
        }
        must(cudaStreamEndCapture(stream, &graph_), "graph capture");
        if (const auto status = cudaGraphInstantiate(&executable_, graph_, 0); status != cudaSuccess) {
            cudaGraphDestroy(graph_);
            must(status, "graph instantiation");
        }
    }
    ~Graph() {
        cudaGraphExecDestroy(executable_);
        cudaGraphDestroy(graph_);
    }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    void replay(cudaStream_t stream) const { must(cudaGraphLaunch(executable_, stream), "graph launch"); }
    int nodes() const {
        std::size_t count = 0;
        must(cudaGraphGetNodes(graph_, nullptr, &count), "graph nodes");
        return static_cast<int>(count);
    }

  private:
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t executable_ = nullptr;
};

Timing summary(std::vector<double> times, int launches) {
    std::sort(times.begin(), times.end());
    return {times[times.size() / 2], times.front(), times.back(), launches};
}

}  // namespace

Clock::Clock() {
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    must(cudaEventCreate(&begin_), "event");
    must(cudaEventCreate(&end_), "event");
}

Clock::~Clock() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
}

double Clock::span(const std::function<void()>& work) const {
    must(cudaEventRecord(begin_, stream_), "event");
    work();
    must(cudaEventRecord(end_, stream_), "event");
    must(cudaEventSynchronize(end_), "running the kernels");
    float milliseconds = 0.0f;
    must(cudaEventElapsedTime(&milliseconds, begin_, end_), "event");
    return static_cast<double>(milliseconds) * 1e-3;
}

Timing Clock::captured(const Run& run, int buffers, double seconds) const {
    run(0);
    finish();
    const double once = span([&] { run(buffers > 1 ? 1 : 0); });
    // One replay lasts 200 us or more, so that its start and the events do not count, and visits every buffer.
    const int wanted = std::clamp(static_cast<int>(200e-6 / std::max(once, 1e-6)), 1, 128);
    const int launches = (wanted + buffers - 1) / buffers * buffers;
    const Graph graph(stream_, [&] {
        for (int i = 0; i < launches; ++i) run(i % buffers);
    });
    const double first = span([&] { graph.replay(stream_); });
    const int replays = std::clamp(static_cast<int>(seconds / first), 5, 400);
    std::vector<double> times;
    for (int i = 0; i < replays; ++i) times.push_back(span([&] { graph.replay(stream_); }) / launches);
    return summary(std::move(times), replays * launches);
}

Timing Clock::eager(const Run& run, int buffers, double seconds) const {
    run(0);
    finish();
    const double first = span([&] { run(0); });
    const int repeats = std::clamp(static_cast<int>(seconds / first), 5, 400);
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) times.push_back(span([&] { run(i % buffers); }));
    return summary(std::move(times), repeats);
}

int Clock::kernels(const Run& run) const {
    return Graph(stream_, [&] { run(0); }).nodes();
}

int fastest(const Clock& clock, const std::vector<Run>& ways, int buffers, double seconds, std::vector<double>* times) {
    // Two rounds, so that a slow moment of the chip does not decide against one of them.
    std::vector<double> least(ways.size(), 0.0);
    for (int round = 0; round < 2; ++round) {
        for (std::size_t i = 0; i < ways.size(); ++i) {
            try {
                const double time = clock.captured(ways[i], buffers, seconds).median;
                if (least[i] == 0.0 || time < least[i]) least[i] = time;
            } catch (const Failure&) {
                cudaGetLastError();
            }
        }
    }
    int best = -1;
    for (std::size_t i = 0; i < ways.size(); ++i) {
        if (least[i] > 0.0 && (best < 0 || least[i] < least[static_cast<std::size_t>(best)]))
            best = static_cast<int>(i);
    }
    if (times != nullptr) *times = std::move(least);
    return best;
}

int rotation(std::size_t bytes) {
    int device = 0;
    int cache = 0;
    must(cudaGetDevice(&device), "device");
    must(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device), "device attribute");
    const std::size_t between = 3 * static_cast<std::size_t>(cache);
    return static_cast<int>(std::min<std::size_t>((between + bytes - 1) / bytes + 1, 512));
}

}  // namespace roofline::cuda::kernels
