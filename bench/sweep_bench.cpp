// How long a sweep of a million points takes, from starting the program to its last row of CSV, on all cores: the grid
// that documents quote. The rows go to /dev/null; a disk would be another benchmark.
#include <cstdlib>
#include <string>

#include <benchmark/benchmark.h>

namespace {

void sweep_a_million_points(benchmark::State& state, const std::string& arguments) {
    const std::string command = std::string("\"" ROOFLINE_BINARY "\" sweep ") + arguments + " -o /dev/null";
    for (auto _ : state) {
        if (std::system(command.c_str()) != 0) {
            state.SkipWithError("the sweep failed");
            return;
        }
    }
    state.counters["rows/s"] =
        benchmark::Counter(1e6 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

const bool registered = [] {
    const auto add = [](const char* name, const char* arguments) {
        benchmark::RegisterBenchmark(name, sweep_a_million_points, std::string(arguments))
            ->UseRealTime()
            ->Iterations(3)
            ->Unit(benchmark::kSecond);
    };
    add("sweep/batch_prompt_context",
        "llama-3.1-8b h100-sxm --batch 1-100 --prompt 128-12800+128 --context 1024-102400+1024");
    // Every row has a decode step of its own.
    add("sweep/batch_context", "llama-3.1-8b h100-sxm --batch 1-1000 --context 128-128000+128");
    return true;
}();

}  // namespace
