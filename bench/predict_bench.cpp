// How many whole-model evaluations a second the prepared path makes: prefill and decode, every operator, all bounds and
// intensities. Ends with one JSON line per result, for scripts.
#include <atomic>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <unistd.h>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "roofline/decide/plan.hpp"
#include "roofline/io/calibration_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/predict/prepared.hpp"

namespace {
std::atomic<long> allocations{0};
}

// Counts every allocation of the program, so that "no allocation per evaluation" is a figure and not a belief.
void* operator new(std::size_t size) {
    ++allocations;
    if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace {

using namespace roofline;

void predict_full_model(benchmark::State& state, const std::string& name) {
    const auto model = io::builtin_model(name);
    const auto device = io::builtin_device("h100-sxm");
    if (!model || !device) {
        state.SkipWithError("model or device not found");
        return;
    }
    const model::Lowered lowered = model::lower(model->architecture, model->types);
    const predict::Prepared prepared(lowered, *device);
    std::vector<predict::OperatorTime> times(prepared.size());
    std::array<model::Sequences, 1> prefill = {{{model::Phase::prefill, 1.0, 512.0, 0.0, 1.0}}};
    std::array<model::Sequences, 1> decode = {{{model::Phase::decode, 1.0, 1.0, 511.0, 1.0}}};
    double batch = 1.0;
    for (auto _ : state) {
        // A new point each time, as in a sweep: nothing can be carried over from the last evaluation.
        batch = batch < 256.0 ? batch + 1.0 : 1.0;
        prefill[0].count = batch;
        decode[0].count = batch;
        decode[0].past = 511.0 + batch;
        predict::StageTime stage = prepared.evaluate(prefill, times);
        benchmark::DoNotOptimize(times.data());
        benchmark::DoNotOptimize(stage);
        stage = prepared.evaluate(decode, times);
        benchmark::DoNotOptimize(times.data());
        benchmark::DoNotOptimize(stage);
    }
    state.counters["evaluations/s"] =
        benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
    // Counted apart from the timed loop, in which the benchmark library allocates once itself.
    constexpr int counted = 1000;
    const long before = allocations;
    for (int i = 0; i < counted; ++i) benchmark::DoNotOptimize(prepared.evaluate(decode, times));
    state.counters["allocations"] = static_cast<double>(allocations - before) / counted;
    state.counters["operators"] = static_cast<double>(2 * prepared.size());
}

void load_and_lower(benchmark::State& state, const std::string& name) {
    for (auto _ : state) {
        const auto model = io::builtin_model(name);
        benchmark::DoNotOptimize(model::lower(model->architecture, model->types));
    }
    state.counters["loads/s"] =
        benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

/// A whole search, finalists asked again: two kinds of device, two types of weights, two of the KV cache.
void plan_a_fleet(benchmark::State& state, const std::string& name, double count) {
    const auto file = io::builtin_model(name);
    decide::PlanQuestion question;
    question.model.architecture = std::make_shared<const model::Architecture>(file->architecture);
    question.model.checkpoint = std::make_shared<const model::TypePlan>(file->types);
    question.model.workload.prompt = 1000;
    question.model.workload.generate = 500;
    for (const char* device : {"h100-sxm", "h200-sxm"}) {
        decide::Offer offer;
        offer.device = *io::builtin_device(device);
        offer.count = count;
        offer.execution.profile = *io::builtin_profile("engine", offer.device);
        offer.execution.calibration =
            std::make_shared<const predict::Calibration>(*io::builtin_calibration(offer.device));
        question.choices.offers.push_back(offer);
    }
    const Format* fp8 = find_format("fp8");
    question.choices.types = {{}, {fp8, fp8, nullptr}, {nullptr, nullptr, fp8}, {fp8, fp8, fp8}};
    question.targets = {.ttft = 0.5, .tpot = 0.05, .requests = 10.0};
    double candidates = 0.0;
    double priced = 0.0;
    for (auto _ : state) {
        const auto plan = decide::plan(question);
        candidates += plan->counts.candidates;
        priced += plan->counts.priced;
    }
    state.counters["candidates/s"] = benchmark::Counter(candidates, benchmark::Counter::kIsRate);
    state.counters["priced/s"] = benchmark::Counter(priced, benchmark::Counter::kIsRate);
    state.counters["candidates"] = candidates / static_cast<double>(state.iterations());
}

/// The console as usual, and every counter remembered for the JSON lines.
class Reporter : public benchmark::ConsoleReporter {
  public:
    void ReportRuns(const std::vector<Run>& runs) override {
        ConsoleReporter::ReportRuns(runs);
        for (const Run& run : runs) {
            for (const auto& [unit, counter] : run.counters)
                lines.push_back({run.benchmark_name(), unit, counter.value});
        }
    }
    struct Line {
        std::string name;
        std::string unit;
        double value;
    };
    std::vector<Line> lines;
};

}  // namespace

int main(int argc, char** argv) {
    for (const char* name : {"llama-3.1-8b", "deepseek-v3", "gpt-oss-120b", "qwen3.5-397b-a17b"}) {
        benchmark::RegisterBenchmark(("predict_full_model/" + std::string(name)).c_str(), predict_full_model,
                                     std::string(name));
    }
    for (const char* name : {"llama-3.1-8b", "deepseek-v3"}) {
        benchmark::RegisterBenchmark(("load_and_lower/" + std::string(name)).c_str(), load_and_lower,
                                     std::string(name));
    }
    for (const char* name : {"llama-3.1-8b", "deepseek-v3"}) {
        benchmark::RegisterBenchmark(("plan/" + std::string(name)).c_str(), plan_a_fleet, std::string(name),
                                     name == std::string("deepseek-v3") ? 32.0 : 8.0)
            ->Unit(benchmark::kMillisecond);
    }
    benchmark::Initialize(&argc, argv);
    Reporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    for (const auto& line : reporter.lines) {
        fmt::print("{{\"name\": \"{}\", \"value\": {}, \"unit\": \"{}\"}}\n", line.name, line.value, line.unit);
    }
    return 0;
}
