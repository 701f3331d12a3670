// The L2: every block walks the same working set from a place of its own, over and over, with loads that go by the L1.
// Working sets from 2 MB to four times the L2 are swept; the figure is the best of them, the knee the largest that
// still reads faster than half-way between that and the largest set, which comes from memory.
#include <string>
#include <vector>

#include "roofline/measure/cuda/ramp.cuh"

namespace roofline::probe {
namespace {

/// No flops; `passes` * `chunks` * blockDim * Unroll * 16 bytes over the whole grid.
template <int Unroll>
__global__ void read_again(const uint4* data, std::size_t chunks, int passes, int turn, std::uint32_t* partial) {
    std::uint32_t sum = 0;
    for (int pass = 0; pass < passes; ++pass) {
        // Each pass hands the chunks round, so that no block reads what it has read before.
        const std::size_t offset = (blockIdx.x + static_cast<std::size_t>(pass) * turn) % gridDim.x;
        for (std::size_t chunk = offset; chunk < chunks; chunk += gridDim.x) {
            const uint4* from = data + chunk * blockDim.x * Unroll + threadIdx.x;
            uint4 loaded[Unroll];
#pragma unroll
            for (int i = 0; i < Unroll; ++i) loaded[i] = load_from_l2(from + i * blockDim.x);
#pragma unroll
            for (int i = 0; i < Unroll; ++i) sum += sum_of(loaded[i]);
        }
    }
    leave_sum(sum, partial);
}

struct Shape {
    const char* name;
    int threads;
    int per_multiprocessor;
    int turn;
    void (*kernel)(const uint4*, std::size_t, int, int, std::uint32_t*);
    int unroll;
};

void probe_cache(const Chip& chip, Found& found) {
    chip.say("L2");
    const std::size_t l2 = chip.l2_bytes > 0 ? chip.l2_bytes : std::size_t{32} << 20;
    const std::size_t largest = l2 * 4;
    Stream stream;
    Buffer data(largest + (std::size_t{1} << 20));
    Buffer partial(static_cast<std::size_t>(chip.multiprocessors) * 64 * 32 * sizeof(std::uint32_t));
    fill_ramp<<<chip.multiprocessors * 8, 256, 0, stream>>>(data.as<std::uint32_t>(), data.bytes() / 4);
    check_launch("filling");

    const Shape shapes[] = {
        {"256 threads, 8 loads, 4 blocks an SM, chunks handed round", 256, 4, 37, read_again<8>, 8},
        {"256 threads, 4 loads, 8 blocks an SM, chunks handed round", 256, 8, 37, read_again<4>, 4},
        {"512 threads, 4 loads, 4 blocks an SM, chunks handed round", 512, 4, 37, read_again<4>, 4},
        {"1024 threads, 4 loads, 2 blocks an SM, chunks handed round", 1024, 2, 37, read_again<4>, 4},
        {"1024 threads, 2 loads, 2 blocks an SM, chunks handed round", 1024, 2, 37, read_again<2>, 2},
        {"512 threads, 4 loads, 4 blocks an SM, chunks kept", 512, 4, 0, read_again<4>, 4},
        {"256 threads, 8 loads, 4 blocks an SM, chunks kept", 256, 4, 0, read_again<8>, 8},
    };

    struct Point {
        double bytes = 0.0;
        Spread time;
    };
    // The time of one launch that reads a set of `wanted` bytes (whole chunks of it) so often that 2 GiB are read.
    const auto measure = [&](const Shape& shape, std::size_t wanted, int repetitions, double& bytes_each,
                             double& set_bytes) {
        const std::size_t chunk_bytes = static_cast<std::size_t>(shape.threads * shape.unroll) * 16;
        const std::size_t grid = static_cast<std::size_t>(shape.per_multiprocessor * chip.multiprocessors);
        const std::size_t chunks = std::max<std::size_t>(1, wanted / chunk_bytes);
        const std::size_t set = chunks * chunk_bytes;
        const int passes = static_cast<int>(std::max<std::size_t>(4, (std::size_t{2} << 30) / set));
        const auto launch = [&] {
            shape.kernel<<<static_cast<unsigned>(grid), shape.threads, 0, stream>>>(
                data.as<uint4>(), chunks, passes, shape.turn, partial.as<std::uint32_t>());
        };
        check(cudaMemsetAsync(partial.data(), 0xff, partial.bytes(), stream), "cudaMemset");
        launch();
        check_launch("L2 read");
        stream.wait();
        const std::uint32_t total = total_of(partial.as<std::uint32_t>(), grid * shape.threads / 32);
        if (total != static_cast<std::uint32_t>(passes) * ramp_sum(set / 4))
            throw Refused(std::string(shape.name) + " gave a wrong answer");
        bytes_each = static_cast<double>(set) * passes;
        set_bytes = static_cast<double>(set);
        return spread_of(time_each(stream, 1, repetitions, launch));
    };

    // The best shape, at a set well inside the cache.
    const Shape* best = nullptr;
    double best_rate = 0.0;
    Json rates = Json::object();
    for (const Shape& shape : shapes) {
        for (const std::size_t part : {4, 3}) {
            double bytes = 0.0;
            double set = 0.0;
            const double time = measure(shape, l2 / part, 5, bytes, set).median;
            const double rate = bytes / time;  // `bytes` is known only after the call
            rates[shape.name] = std::max(rates.value(shape.name, 0.0), rate);
            if (rate > best_rate) {
                best_rate = rate;
                best = &shape;
            }
        }
    }

    Json points = Json::array();
    Point top;
    double top_rate = 0.0;
    double top_bytes = 0.0;
    double last_rate = 0.0;
    for (double part : {0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5,
                        0.6,  0.7,  0.8, 0.9,  1.0, 1.25, 1.5, 2.0,  3.0, 4.0}) {
        double bytes = 0.0;
        double set = 0.0;
        const Spread time =
            measure(*best, static_cast<std::size_t>(part * static_cast<double>(l2)), chip.quick ? 5 : 15, bytes, set);
        last_rate = bytes / time.median;
        points.push_back({set, last_rate});
        if (last_rate > top_rate) {
            top_rate = last_rate;
            top_bytes = bytes;
            top = {set, time};
        }
    }
    Json figure = rate_figure("cache.read", "B/s", top_bytes, top.time,
                              std::string(best->name) + ", working set of " +
                                  std::to_string(static_cast<int>(top.bytes / 1e6 + 0.5)) + " MB");
    figure["bytes"] = top_bytes;
    figure["variants"] = rates;
    figure["points"] = points;
    found.figures.push_back(std::move(figure));

    double knee = 0.0;
    for (const Json& point : points)
        if (point[1].get<double>() >= 0.5 * (top_rate + last_rate)) knee = point[0].get<double>();
    found.figures.push_back(
        {{"name", "cache.knee"},
         {"value", knee},
         {"unit", "B"},
         {"how", "largest working set read faster than half-way between the L2's best and memory"}});
}

const Registered registered({20, "cache", probe_cache});

}  // namespace
}  // namespace roofline::probe
