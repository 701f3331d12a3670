// roofline_cuda.so: what the program loads where there is a GPU of NVIDIA (abi.h). Takes a request apart, chooses the
// device, runs what is asked for and never lets an exception out. The probes are in files of their own; requests that
// run a model's operators are answered by src/roofline/bench/cuda, where that was compiled in.
#include <algorithm>
#include <chrono>
#include <string>

#include "roofline/measure/cuda/abi.h"
#include "roofline/measure/cuda/frame.cuh"
#include "roofline/measure/cuda/nvml.cuh"

namespace roofline::cuda {

// Weak: null where the other folder was not compiled in.
__attribute__((weak)) std::string bench(const nlohmann::json& request, const probe::Progress& progress);
__attribute__((weak)) std::string step(const nlohmann::json& request, const probe::Progress& progress);

}  // namespace roofline::cuda

namespace roofline::probe {

Json rate_figure(const std::string& name, const char* unit, double per_repetition, const Spread& seconds,
                 const std::string& how) {
    if (!(seconds.low > 0.0)) throw Refused("a repetition took no time at all");
    return {{"name", name},
            {"value", per_repetition / seconds.median},
            {"unit", unit},
            {"low", per_repetition / seconds.high},
            {"high", per_repetition / seconds.low},
            {"samples", seconds.samples},
            {"how", how}};
}

std::vector<Probe>& registered_probes() {
    static std::vector<Probe> probes;  // made by whoever registers first
    return probes;
}

Registered::Registered(const Probe& probe) {
    registered_probes().push_back(probe);
}

namespace {

/// Nothing is wrong with the request; what it needs is not here.
struct Unavailable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::string version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Json describe_device(int index) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
    check(cudaSetDevice(index), "cudaSetDevice");
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    int clock_khz = 0;
    int memory_khz = 0;
    int runtime = 0;
    int driver = 0;
    cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, index);
    cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, index);
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    char pci[32] = {};
    cudaDeviceGetPCIBusId(pci, sizeof(pci), index);
    const Limits limits = limits_of(index);
    const auto busy = state_of(index).busy_percent;
    Json device = {{"index", index},
                   {"name", properties.name},
                   {"capability", std::to_string(properties.major) + "." + std::to_string(properties.minor)},
                   {"multiprocessors", properties.multiProcessorCount},
                   {"memory_bytes", total_bytes},
                   {"free_bytes", free_bytes},
                   {"l2_bytes", properties.l2CacheSize},
                   {"shared_bytes", properties.sharedMemPerBlockOptin},
                   {"clock_hz", static_cast<double>(clock_khz) * 1e3},
                   {"memory_clock_hz", static_cast<double>(memory_khz) * 1e3},
                   {"driver", limits.driver.empty() ? "CUDA " + version_text(driver) : limits.driver},
                   {"runtime", version_text(runtime)},
                   {"pci", pci}};
    if (busy) device["busy"] = *busy > 5.0;
    if (limits.power_w) device["power_limit_w"] = *limits.power_w;
    if (limits.pcie_generation > 0)
        device["pcie"] = {{"generation", limits.pcie_generation}, {"width", limits.pcie_width}};
    return device;
}

int device_count() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaErrorNoDevice) return 0;
    if (status == cudaErrorInsufficientDriver) {
        int runtime = 0;
        cudaRuntimeGetVersion(&runtime);
        throw Unavailable("the NVIDIA driver here is missing or older than CUDA " + version_text(runtime) + " needs");
    }
    check(status, "looking for GPUs");
    return count;
}

Json problem(const std::string& text, bool unavailable) {
    Json answer = {{"problem", text}};
    if (unavailable) answer["unavailable"] = true;
    return answer;
}

/// "memory" and "memory.read" both need the probe of memory.
bool asked_for(const Probe& probe, const std::vector<std::string>& only) {
    const std::string part_of = probe.name;
    for (const std::string& name : only)
        if (name.substr(0, name.find('.')) == part_of.substr(0, part_of.find('.'))) return true;
    return only.empty();
}

Json measure(const Json& request, int index, const Progress& progress) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<Probe>& probes = registered_probes();
    std::sort(probes.begin(), probes.end(), [](const Probe& a, const Probe& b) { return a.order < b.order; });
    const Json device = describe_device(index);  // before our own work shows in it
    Chip chip;
    chip.index = index;
    chip.multiprocessors = device["multiprocessors"];
    const std::string capability = device["capability"];
    chip.capability = std::stoi(capability) * 10 + std::stoi(capability.substr(capability.find('.') + 1));
    chip.l2_bytes = device["l2_bytes"];
    chip.free_bytes = device["free_bytes"];
    chip.shared_per_block = device["shared_bytes"];
    chip.clock_hz = device["clock_hz"];
    chip.quick = request.value("quick", false);
    chip.progress = &progress;
    chip.only = request.value("only", std::vector<std::string>());

    for (const std::string& name : chip.only) {
        if (std::any_of(probes.begin(), probes.end(), [&](const Probe& probe) { return asked_for(probe, {name}); }))
            continue;
        std::string known;
        for (const Probe& probe : probes) known += (known.empty() ? "" : ", ") + std::string(probe.name);
        return problem("nothing to measure is called \"" + name + "\"; there are " + known, false);
    }

    Found found;
    if (!nvml_is_there()) found.notes.push_back("libnvidia-ml.so.1 is not here: no clocks and watts");
    for (const Probe& probe : probes) {
        if (!asked_for(probe, chip.only)) continue;
        try {
            probe.run(chip, found);
        } catch (const std::exception& why) {
            found.refuse(probe.name, why.what());
        }
        // Some errors stay with the process: everything after them would fail with the same words.
        if (cudaDeviceSynchronize() != cudaSuccess) {
            found.notes.push_back(std::string("stopped after ") + probe.name + ": the GPU no longer answers");
            break;
        }
    }
    const State after = state_of(index);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    Json answer = {{"device", device},
                   {"figures", found.figures},
                   {"refused", found.refused},
                   {"notes", found.notes},
                   {"busy", device.value("busy", false)},
                   {"seconds", seconds}};
    if (after.celsius) answer["celsius"] = *after.celsius;
    return answer;
}

std::string answer_to(const std::string& text, const Progress& progress) {
    const Json request = Json::parse(text);
    const std::string what = request.value("do", "");
    const int count = device_count();
    if (what == "describe") {
        Json devices = Json::array();
        for (int index = 0; index < count; ++index) devices.push_back(describe_device(index));
        int runtime = 0;
        cudaRuntimeGetVersion(&runtime);
        return Json{{"devices", devices}, {"runtime", version_text(runtime)}}.dump();
    }
    if (what != "measure" && what != "bench" && what != "step")
        return problem("the CUDA plugin does not know the request \"" + what + "\"", false).dump();
    const int index = request.value("device", 0);
    if (count == 0) return problem("there is no GPU here that CUDA can use", true).dump();
    if (index < 0 || index >= count)
        return problem("cuda:" + std::to_string(index) + " is not here: this machine has " + std::to_string(count) +
                           (count == 1 ? " GPU, cuda:0" : " GPUs"),
                       true)
            .dump();
    check(cudaSetDevice(index), "cudaSetDevice");
    if (what == "measure") return measure(request, index, progress).dump();
    auto* const answer = what == "bench" ? &cuda::bench : &cuda::step;
    if (answer == nullptr) return problem("this CUDA plugin was built without kernels for `bench`", true).dump();
    return answer(request, progress);
}

const char* call(const char* request, void (*progress)(void*, const char*), void* context) {
    static std::string answer;
    try {
        answer = answer_to(request, [=](const std::string& line) {
            if (progress != nullptr) progress(context, line.c_str());
        });
    } catch (const Unavailable& why) {
        answer = problem(why.what(), true).dump();
    } catch (const std::exception& why) {
        answer = problem(why.what(), false).dump();
    } catch (...) {
        answer = R"({"problem": "the CUDA plugin failed without a reason"})";
    }
    return answer.c_str();
}

constexpr roofline_cuda_backend backend = {roofline_cuda_version, call};

}  // namespace
}  // namespace roofline::probe

extern "C" __attribute__((visibility("default"))) const roofline_cuda_backend* roofline_cuda(void) {
    return &roofline::probe::backend;
}
