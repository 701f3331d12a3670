// What it costs to start a kernel: one after another from the host, as nodes of a graph, and alone with the host
// waiting. The kernel counts itself, so that none can be lost; its work is one atomic add.
#include <chrono>

#include "roofline/measure/cuda/frame.cuh"

namespace roofline::probe {
namespace {

__global__ void count_me(unsigned* counter) {
    atomicAdd(counter, 1U);
}

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void add(Found& found, const char* name, const Spread& time, const char* how) {
    found.figures.push_back({{"name", name},
                             {"value", time.median},
                             {"unit", "s"},
                             {"low", time.low},
                             {"high", time.high},
                             {"samples", time.samples},
                             {"how", how}});
}

void probe_launch(const Chip& chip, Found& found) {
    chip.say("launches");
    const int rounds = chip.quick ? 20 : 50;
    constexpr int kernels = 500;
    Stream stream;
    Buffer counter(sizeof(unsigned));
    unsigned wanted = 0;
    check(cudaMemset(counter.data(), 0, sizeof(unsigned)), "cudaMemset");
    const auto launch = [&] { count_me<<<1, 1, 0, stream>>>(counter.as<unsigned>()); };
    for (int i = 0; i < kernels; ++i) launch();
    check_launch("an empty kernel");
    stream.wait();
    wanted += kernels;

    std::vector<double> eager;
    for (int round = 0; round < rounds; ++round) {
        const double begin = now();
        for (int i = 0; i < kernels; ++i) launch();
        stream.wait();
        eager.push_back((now() - begin) / kernels);
        wanted += kernels;
    }
    std::vector<double> alone;
    for (int i = 0; i < rounds * 10; ++i) {
        const double begin = now();
        launch();
        stream.wait();
        alone.push_back(now() - begin);
        ++wanted;
    }

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing a graph");
    for (int i = 0; i < kernels; ++i) launch();
    check(cudaStreamEndCapture(stream, &graph), "capturing a graph");
    check(cudaGraphInstantiate(&ready, graph, 0), "building a graph");
    const auto replay = [&] { check(cudaGraphLaunch(ready, stream), "launching a graph"); };
    std::vector<double> nodes = time_each(stream, 2, rounds, replay);
    for (double& time : nodes) time /= kernels;
    wanted += static_cast<unsigned>((rounds + 2) * kernels);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);

    unsigned counted = 0;
    check(cudaMemcpy(&counted, counter.data(), sizeof(counted), cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (counted != wanted) throw Refused("some launches did not run");
    add(found, "launch.eager", spread_of(eager), "one kernel of 500 launched one after another");
    add(found, "launch.graph", spread_of(nodes), "one kernel of a graph of 500, each after the one before");
    add(found, "launch.alone", spread_of(alone), "one kernel launched and waited for");
}

const Registered registered({50, "launch", probe_launch});

}  // namespace
}  // namespace roofline::probe
