// Shared memory: every warp reads 16 bytes a thread, without bank conflicts, all over the block's memory.
#include "roofline/measure/cuda/ramp.cuh"

namespace roofline::probe {
namespace {

constexpr int threads = 1024;
constexpr int tile_bytes = 32768;  // two reads of 16 bytes for each thread

/// No flops; `passes` * 32 KiB a block.
__global__ void read_shared(int passes, std::uint32_t* partial) {
    __shared__ __align__(16) std::uint32_t words[tile_bytes / 4];
    for (int i = threadIdx.x; i < tile_bytes / 4; i += threads) words[i] = static_cast<std::uint32_t>(i) * ramp_step;
    __syncthreads();
    const auto first = static_cast<std::uint32_t>(__cvta_generic_to_shared(words)) + threadIdx.x * 16;
    std::uint32_t sum = 0;
    for (int pass = 0; pass < passes; pass += 4) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            uint4 value;
            // Volatile for the assembler too, which makes one load of several from one address otherwise.
            asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                         : "r"(first + (i % 2) * (tile_bytes / 2)));
            sum += sum_of(value);
        }
    }
    leave_sum(sum, partial);
}

void probe_shared(const Chip& chip, Found& found) {
    chip.say("shared memory");
    constexpr int passes = 4096;
    const int grid = 2 * chip.multiprocessors;
    Stream stream;
    Buffer partial(static_cast<std::size_t>(grid) * threads / 32 * sizeof(std::uint32_t));
    const auto launch = [&] { read_shared<<<grid, threads, 0, stream>>>(passes, partial.as<std::uint32_t>()); };
    launch();
    check_launch("shared memory");
    stream.wait();
    const std::uint32_t right = static_cast<std::uint32_t>(grid) * passes * ramp_sum(tile_bytes / 4);
    if (total_of(partial.as<std::uint32_t>(), static_cast<std::size_t>(grid) * threads / 32) != right)
        throw Refused("the sum read is wrong");
    const double bytes = static_cast<double>(grid) * passes * tile_bytes;
    Json figure =
        rate_figure("shared.read", "B/s", bytes, spread_of(time_each(stream, 2, chip.quick ? 10 : 30, launch)),
                    "16 bytes a thread without bank conflicts, all multiprocessors together");
    figure["bytes"] = bytes;
    // Banks give 128 bytes a clock to each multiprocessor and no more: above that, loads were left out.
    const double most = 128.0 * chip.multiprocessors * chip.clock_hz;
    if (chip.clock_hz > 0.0 && figure["value"].get<double>() > 1.02 * most)
        throw Refused("read faster than the banks can deliver");
    found.figures.push_back(std::move(figure));
}

const Registered registered({30, "shared", probe_shared});

}  // namespace
}  // namespace roofline::probe
