// The link to the host: copies both ways, from memory the driver has pinned and from plain pages, and both ways at
// once. Bytes: what crosses, in one direction; no flops.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "roofline/measure/cuda/ramp.cuh"

namespace roofline::probe {
namespace {

struct Pinned {
    explicit Pinned(std::size_t bytes) { check(cudaMallocHost(&data, bytes), "cudaMallocHost"); }
    ~Pinned() { cudaFreeHost(data); }
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;
    void* data = nullptr;
};

bool is_ramp(const void* data, std::size_t words) {
    const auto* value = static_cast<const std::uint32_t*>(data);
    for (std::size_t i = 0; i < words; ++i)
        if (value[i] != static_cast<std::uint32_t>(i) * ramp_step) return false;
    return true;
}

void add(Found& found, const char* name, double bytes, const Spread& time, const char* how) {
    Json figure = rate_figure(name, "B/s", bytes, time, how);
    figure["bytes"] = bytes;
    found.figures.push_back(std::move(figure));
}

void probe_host(const Chip& chip, Found& found) {
    chip.say("link to the host");
    const std::size_t bytes = std::size_t{chip.quick ? 128U : 256U} << 20;
    const double size = static_cast<double>(bytes);
    Stream stream;
    Stream other;
    Buffer device(bytes);
    Buffer second(bytes);
    Pinned pinned(bytes);
    Pinned pinned_second(bytes);
    // Written once, so that every page is there.
    const std::unique_ptr<void, decltype(&std::free)> plain(std::malloc(bytes), &std::free);
    if (plain == nullptr) throw Refused("too little memory on the host");
    std::memset(plain.get(), 0x11, bytes);
    auto* words = static_cast<std::uint32_t*>(pinned.data);
    for (std::size_t i = 0; i < bytes / 4; ++i) words[i] = static_cast<std::uint32_t>(i) * ramp_step;
    std::memset(pinned_second.data, 0x22, bytes);

    const auto copy = [](void* to, const void* from, std::size_t count, cudaMemcpyKind kind, cudaStream_t on) {
        check(cudaMemcpyAsync(to, from, count, kind, on), "cudaMemcpy");
    };
    const int repetitions = chip.quick ? 5 : 12;
    const auto timed = [&](void* to, const void* from, cudaMemcpyKind kind) {
        return spread_of(time_each(stream, 1, repetitions, [&] { copy(to, from, bytes, kind, stream); }));
    };
    // There and back again, through both kinds of memory, must leave the ramp as it was.
    const Spread in = timed(device.data(), pinned.data, cudaMemcpyHostToDevice);
    const Spread out_plain = timed(plain.get(), device.data(), cudaMemcpyDeviceToHost);
    if (!is_ramp(plain.get(), bytes / 4)) throw Refused("what came back over the link is not what was sent");
    const Spread in_plain = timed(second.data(), plain.get(), cudaMemcpyHostToDevice);
    const Spread out = timed(pinned_second.data, second.data(), cudaMemcpyDeviceToHost);
    if (!is_ramp(pinned_second.data, bytes / 4)) throw Refused("what came back over the link is not what was sent");

    add(found, "host.to_device", size, in, "cudaMemcpy from pinned memory");
    add(found, "host.from_device", size, out, "cudaMemcpy to pinned memory");
    add(found, "host.to_device.pageable", size, in_plain, "cudaMemcpy from plain pages");
    add(found, "host.from_device.pageable", size, out_plain, "cudaMemcpy to plain pages");

    // Both at once: the second stream waits for the first event, the first stream for the second copy.
    cudaEvent_t begun = nullptr;
    cudaEvent_t done = nullptr;
    check(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming), "cudaEventCreate");
    check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "cudaEventCreate");
    const Spread both = spread_of(time_each(stream, 1, repetitions, [&] {
        check(cudaEventRecord(begun, stream), "cudaEventRecord");
        check(cudaStreamWaitEvent(other, begun), "cudaStreamWaitEvent");
        copy(device.data(), pinned.data, bytes, cudaMemcpyHostToDevice, stream);
        copy(pinned_second.data, second.data(), bytes, cudaMemcpyDeviceToHost, other);
        check(cudaEventRecord(done, other), "cudaEventRecord");
        check(cudaStreamWaitEvent(stream, done), "cudaStreamWaitEvent");
    }));
    cudaEventDestroy(begun);
    cudaEventDestroy(done);
    add(found, "host.both_ways", 2.0 * size, both, "both directions at once, pinned; bytes of both added up");
}

const Registered registered({60, "host", probe_host});

}  // namespace
}  // namespace roofline::probe
