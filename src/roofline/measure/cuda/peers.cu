// Links between GPUs of one machine: copies from the measured device to each other one, one way and both ways, and an
// all-reduce through NCCL over all of them where it is there. Bytes per direction. Silent where there is one GPU.

#include "roofline/measure/cuda/library.cuh"
#include "roofline/measure/cuda/ramp.cuh"

namespace roofline::probe {
namespace {

/// The device that was chosen is the current one again at the end, whatever happens.
struct OnDevice {
    int before = 0;
    explicit OnDevice(int device) {
        check(cudaGetDevice(&before), "cudaGetDevice");
        check(cudaSetDevice(device), "cudaSetDevice");
    }
    ~OnDevice() { cudaSetDevice(before); }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;
};

void copy_to_peers(const Chip& chip, Found& found, int devices) {
    const std::size_t bytes = std::size_t{256} << 20;
    const double size = static_cast<double>(bytes);
    Buffer here(bytes);
    Buffer back(bytes);
    Stream stream;
    fill_ramp<<<chip.multiprocessors * 8, 256, 0, stream>>>(here.as<std::uint32_t>(), bytes / 4);
    check_launch("filling");
    stream.wait();
    for (int peer = 0; peer < devices; ++peer) {
        if (peer == chip.index) continue;
        const std::string name = "peer.copy." + std::to_string(peer);
        try {
            int direct = 0;
            check(cudaDeviceCanAccessPeer(&direct, chip.index, peer), "cudaDeviceCanAccessPeer");
            if (direct != 0) {
                const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
                if (status == cudaErrorPeerAccessAlreadyEnabled)
                    cudaGetLastError();
                else
                    check(status, "cudaDeviceEnablePeerAccess");
            }
            void* there = nullptr;
            {
                const OnDevice other(peer);
                check(cudaMalloc(&there, bytes), "cudaMalloc");
            }
            const auto free_there = [&] {
                const OnDevice other(peer);
                cudaFree(there);
            };
            try {
                const auto send = [&] {
                    check(cudaMemcpyPeerAsync(there, peer, here.data(), chip.index, bytes, stream), "cudaMemcpyPeer");
                };
                const Spread time = spread_of(time_each(stream, 2, 10, send));
                check(cudaMemcpyPeerAsync(back.data(), chip.index, there, peer, bytes, stream), "cudaMemcpyPeer");
                std::vector<std::uint32_t> words(bytes / 4);
                check(cudaMemcpyAsync(words.data(), back.data(), bytes, cudaMemcpyDeviceToHost, stream), "cudaMemcpy");
                stream.wait();
                for (std::size_t i = 0; i < words.size(); ++i)
                    if (words[i] != static_cast<std::uint32_t>(i) * ramp_step)
                        throw Refused("what came back from the peer is not what was sent");
                Json figure = rate_figure(name, "B/s", size, time,
                                          direct != 0 ? "cudaMemcpyPeer, direct" : "cudaMemcpyPeer, through the host");
                figure["bytes"] = size;
                found.figures.push_back(std::move(figure));
            } catch (...) {
                free_there();
                throw;
            }
            free_there();
        } catch (const Refused& why) {
            found.refuse(name, why.what());
        }
    }
}

// The part of NCCL that an all-reduce needs, by its stable C interface.
constexpr int nccl_float = 7;
constexpr int nccl_sum = 0;

void all_reduce(const Chip& chip, Found& found, int devices) {
    const Library library{"libnccl.so.2", "libnccl.so"};
    const auto init_all = library.find<int (*)(void**, int, const int*)>("ncclCommInitAll");
    const auto reduce =
        library.find<int (*)(const void*, void*, std::size_t, int, int, void*, cudaStream_t)>("ncclAllReduce");
    const auto group_start = library.find<int (*)()>("ncclGroupStart");
    const auto group_end = library.find<int (*)()>("ncclGroupEnd");
    const auto destroy = library.find<int (*)(void*)>("ncclCommDestroy");
    if (init_all == nullptr || reduce == nullptr || group_start == nullptr || group_end == nullptr ||
        destroy == nullptr) {
        found.refuse("peer.all_reduce", "libnccl.so.2 is not here");
        return;
    }
    const std::size_t count = std::size_t{64} << 20;  // 256 MiB of fp32 a device
    std::vector<void*> rings(static_cast<std::size_t>(devices), nullptr);
    if (init_all(rings.data(), devices, nullptr) != 0) throw Refused("NCCL cannot join the GPUs of this machine");
    std::vector<float*> data(rings.size(), nullptr);
    std::vector<cudaStream_t> streams(rings.size(), nullptr);
    const std::vector<float> ones(count, 1.0F);
    for (int device = 0; device < devices; ++device) {
        const OnDevice on(device);
        const auto i = static_cast<std::size_t>(device);
        check(cudaMalloc(&data[i], count * sizeof(float)), "cudaMalloc");
        check(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "cudaStreamCreate");
        check(cudaMemcpy(data[i], ones.data(), count * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    const auto once = [&] {
        group_start();
        for (std::size_t i = 0; i < rings.size(); ++i)
            if (reduce(data[i], data[i], count, nccl_float, nccl_sum, rings[i], streams[i]) != 0)
                throw Refused("ncclAllReduce failed");
        if (group_end() != 0) throw Refused("ncclAllReduce failed");
    };
    // The first one is checked: each of `devices` ones has been added up. The others only grow, to devices^17 at most.
    once();
    std::vector<float> sums(1024);
    const auto here = static_cast<std::size_t>(chip.index);
    check(cudaMemcpyAsync(sums.data(), data[here], sums.size() * sizeof(float), cudaMemcpyDeviceToHost, streams[here]),
          "cudaMemcpy");
    check(cudaStreamSynchronize(streams[here]), "NCCL");
    for (const float sum : sums)
        if (sum != static_cast<float>(devices)) throw Refused("the sum of an all-reduce is wrong");
    const Spread time = spread_of(time_each(streams[here], 3, 10, once));
    // A ring moves 2 (n-1) / n of the bytes over each link, whatever n: the rate that compares with the link's.
    const double bytes = static_cast<double>(count) * 4.0 * 2.0 * (devices - 1) / devices;
    Json figure = rate_figure("peer.all_reduce", "B/s", bytes, time,
                              "NCCL over " + std::to_string(devices) + " GPUs, 256 MiB each; 2 (n-1) / n of the bytes");
    figure["bytes"] = bytes;
    found.figures.push_back(std::move(figure));
    for (int device = 0; device < devices; ++device) {
        const OnDevice on(device);
        cudaStreamSynchronize(streams[static_cast<std::size_t>(device)]);
        cudaFree(data[static_cast<std::size_t>(device)]);
        cudaStreamDestroy(streams[static_cast<std::size_t>(device)]);
        destroy(rings[static_cast<std::size_t>(device)]);
    }
}

void probe_peers(const Chip& chip, Found& found) {
    int devices = 0;
    check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    if (devices < 2) return;
    chip.say("links between GPUs");
    copy_to_peers(chip, found, devices);
    try {
        all_reduce(chip, found, devices);
    } catch (const Refused& why) {
        found.refuse("peer.all_reduce", why.what());
    }
}

const Registered registered({70, "peer", probe_peers});

}  // namespace
}  // namespace roofline::probe
