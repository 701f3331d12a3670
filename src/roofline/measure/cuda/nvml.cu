#include <map>

#include "roofline/measure/cuda/library.cuh"
#include "roofline/measure/cuda/nvml.cuh"

namespace roofline::probe {
namespace {

using Handle = void*;
struct Utilization {
    unsigned gpu;
    unsigned memory;
};
constexpr int clock_of_multiprocessors = 1;
constexpr int clock_of_memory = 2;

struct Nvml {
    Library library{"libnvidia-ml.so.1", "libnvidia-ml.so"};
    int (*init)() = library.find<int (*)()>("nvmlInit_v2");
    int (*by_pci)(const char*,
                  Handle*) = library.find<int (*)(const char*, Handle*)>("nvmlDeviceGetHandleByPciBusId_v2");
    int (*clock)(Handle, int, unsigned*) = library.find<int (*)(Handle, int, unsigned*)>("nvmlDeviceGetClockInfo");
    int (*highest)(Handle, int, unsigned*) = library.find<int (*)(Handle, int, unsigned*)>("nvmlDeviceGetMaxClockInfo");
    int (*power)(Handle, unsigned*) = library.find<int (*)(Handle, unsigned*)>("nvmlDeviceGetPowerUsage");
    int (*power_limit)(Handle, unsigned*) = library.find<int (*)(Handle, unsigned*)>("nvmlDeviceGetEnforcedPowerLimit");
    int (*temperature)(Handle, int,
                       unsigned*) = library.find<int (*)(Handle, int, unsigned*)>("nvmlDeviceGetTemperature");
    int (*utilization)(Handle,
                       Utilization*) = library.find<int (*)(Handle, Utilization*)>("nvmlDeviceGetUtilizationRates");
    int (*pcie_generation)(Handle,
                           unsigned*) = library.find<int (*)(Handle, unsigned*)>("nvmlDeviceGetMaxPcieLinkGeneration");
    int (*pcie_width)(Handle, unsigned*) = library.find<int (*)(Handle, unsigned*)>("nvmlDeviceGetMaxPcieLinkWidth");
    int (*driver)(char*, unsigned) = library.find<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
    bool ready = init != nullptr && by_pci != nullptr && init() == 0;
};

const Nvml& nvml() {
    static const Nvml calls;
    return calls;
}

Handle handle_of(int device) {
    static std::map<int, Handle> known;  // asked between timed windows: must be quick
    if (const auto at = known.find(device); at != known.end()) return at->second;
    char pci[32] = {};
    Handle& handle = known[device];
    if (!nvml().ready || cudaDeviceGetPCIBusId(pci, sizeof(pci), device) != cudaSuccess) return nullptr;
    if (nvml().by_pci(pci, &handle) != 0) handle = nullptr;
    return handle;
}

template <class Function, class... Arguments>
std::optional<double> ask(Handle handle, Function function, double unit, Arguments... arguments) {
    unsigned value = 0;
    if (handle == nullptr || function == nullptr || function(handle, arguments..., &value) != 0) return std::nullopt;
    return static_cast<double>(value) * unit;
}

}  // namespace

bool nvml_is_there() {
    return nvml().ready;
}

State state_of(int device) {
    const Handle handle = handle_of(device);
    State state;
    state.clock_hz = ask(handle, nvml().clock, 1e6, clock_of_multiprocessors);
    state.watts = ask(handle, nvml().power, 1e-3);
    state.celsius = ask(handle, nvml().temperature, 1.0, 0);
    Utilization busy = {};
    if (handle != nullptr && nvml().utilization != nullptr && nvml().utilization(handle, &busy) == 0)
        state.busy_percent = busy.gpu;
    return state;
}

Limits limits_of(int device) {
    const Handle handle = handle_of(device);
    Limits limits;
    limits.power_w = ask(handle, nvml().power_limit, 1e-3);
    limits.highest_clock_hz = ask(handle, nvml().highest, 1e6, clock_of_multiprocessors);
    limits.memory_clock_hz = ask(handle, nvml().highest, 1e6, clock_of_memory);
    limits.pcie_generation = static_cast<int>(ask(handle, nvml().pcie_generation, 1.0).value_or(0.0));
    limits.pcie_width = static_cast<int>(ask(handle, nvml().pcie_width, 1.0).value_or(0.0));
    char text[96] = {};
    if (nvml().ready && nvml().driver != nullptr && nvml().driver(text, sizeof(text)) == 0) limits.driver = text;
    return limits;
}

}  // namespace roofline::probe
