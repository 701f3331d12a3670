// What every probe is made of: checked calls of the CUDA runtime, memory that frees itself, timing by events, the
// spread of repeated times, and the list of figures that a run ends in. No kernels of probes live here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace roofline::probe {

using Json = nlohmann::json;
using Progress = std::function<void(std::string)>;

/// Why a probe has no figure. Thrown inside the plugin only; nothing leaves it but text.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // so that the next probe does not inherit it, where it can be forgotten at all
    throw Refused(std::string(what) + ": " + cudaGetErrorString(status));
}

/// Launches report what was wrong with them here, not where they are written.
inline void check_launch(const char* what) {
    check(cudaGetLastError(), what);
}

/// Device memory by plain cudaMalloc.
class Buffer {
  public:
    explicit Buffer(std::size_t bytes) : bytes_(bytes) { check(cudaMalloc(&data_, bytes), "cudaMalloc"); }
    ~Buffer() { cudaFree(data_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    template <class T>
    T* as() const {
        return static_cast<T*>(data_);
    }
    void* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

  private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

class Stream {
  public:
    Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
    ~Stream() { cudaStreamDestroy(stream_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    operator cudaStream_t() const { return stream_; }
    void wait() const { check(cudaStreamSynchronize(stream_), "kernel"); }

  private:
    cudaStream_t stream_ = nullptr;
};

class Event {
  public:
    Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
    ~Event() { cudaEventDestroy(event_); }
    Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    void wait() const { check(cudaEventSynchronize(event_), "kernel"); }
    void record(cudaStream_t stream) const { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
    double seconds_since(const Event& begin) const {
        float milliseconds = 0.0F;
        check(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "cudaEventElapsedTime");
        return static_cast<double>(milliseconds) * 1e-3;
    }

  private:
    cudaEvent_t event_ = nullptr;
};

/// The middle of repeated times and the tenths at both ends.
struct Spread {
    double median = 0.0;
    double low = 0.0;
    double high = 0.0;
    int samples = 0;
};

inline Spread spread_of(std::vector<double> values) {
    if (values.empty()) throw Refused("no repetition was timed");
    std::sort(values.begin(), values.end());
    const auto at = [&](double part) {
        return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
    };
    return {at(0.5), at(0.1), at(0.9), static_cast<int>(values.size())};
}

/// Times of single repetitions, queued in one go so that the device never waits for the host between them.
template <class Launch>
std::vector<double> time_each(cudaStream_t stream, int warm_ups, int repetitions, const Launch& launch) {
    for (int i = 0; i < warm_ups; ++i) launch();
    std::vector<Event> events(static_cast<std::size_t>(repetitions) + 1);
    events.front().record(stream);
    for (int i = 0; i < repetitions; ++i) {
        launch();
        events[static_cast<std::size_t>(i) + 1].record(stream);
    }
    check(cudaStreamSynchronize(stream), "kernel");
    std::vector<double> times;
    for (std::size_t i = 1; i < events.size(); ++i) times.push_back(events[i].seconds_since(events[i - 1]));
    return times;
}

/// One figure as abi.h spells it. `per_repetition` over the time of one repetition is the rate.
Json rate_figure(const std::string& name, const char* unit, double per_repetition, const Spread& seconds,
                 const std::string& how);

/// What a run has found so far.
struct Found {
    Json figures = Json::array();
    Json refused = Json::array();
    Json notes = Json::array();

    void refuse(const std::string& name, const std::string& why) { refused.push_back({{"name", name}, {"why", why}}); }
    const Json* find(const std::string& name) const {
        for (const Json& figure : figures)
            if (figure.value("name", "") == name) return &figure;
        return nullptr;
    }
};

/// The device under test and how long a probe may take over it.
struct Chip {
    int index = 0;
    int multiprocessors = 0;
    int capability = 0;  // 90 for 9.0
    std::size_t l2_bytes = 0;
    std::size_t free_bytes = 0;
    std::size_t shared_per_block = 0;  // at most, when asked for
    double clock_hz = 0.0;
    bool quick = false;
    std::vector<std::string> only;  // "memory", "matrix.bf16"; empty: all
    const Progress* progress = nullptr;

    /// Whether a figure was asked for, by its own name or by one of what it is part of.
    bool wants(const std::string& figure) const {
        for (const std::string& name : only)
            if (figure == name || figure.compare(0, name.size() + 1, name + ".") == 0) return true;
        return only.empty();
    }

    void say(const std::string& line) const {
        if (progress != nullptr && *progress) (*progress)(line);
    }
};

/// A probe adds figures and refusals; what it throws becomes a refusal under its name. One file each, which registers
/// it: `const Registered registered({10, "memory", probe_memory});`; the names of its figures begin with its own. They
/// run in the order of their numbers: first what is short and cool, last what heats the chip.
struct Probe {
    int order = 0;
    const char* name = "";
    void (*run)(const Chip&, Found&) = nullptr;
};

struct Registered {
    explicit Registered(const Probe& probe);
};

}  // namespace roofline::probe
