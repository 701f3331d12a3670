// Device memory: read, copy, triad and write, each by several kernels of which the fastest counts. Buffers are far
// larger than any cache; every kernel's answer is checked in full before it is timed.
#include <string>
#include <vector>

#include "roofline/measure/cuda/memory_kernels.cuh"
#include "roofline/measure/cuda/sustained.cuh"

namespace roofline::probe {
namespace {

struct Variant {
    std::string name;
    std::function<void()> launch;
    std::function<bool()> answers_right;  // after a launch over poisoned memory
};

struct Run {
    const Chip& chip;
    Found& found;
    Stream stream;
    Buffer a, b, c;
    Buffer partial;
    Buffer wrong;
    std::size_t bytes;
    int grid_of_fills;
    bool has_bulk = false;

    Run(const Chip& its_chip, Found& its_found, std::size_t size)
        : chip(its_chip),
          found(its_found),
          a(size),
          b(size),
          c(size),
          partial(size / 256),
          wrong(sizeof(unsigned long long)),
          bytes(size),
          grid_of_fills(its_chip.multiprocessors * 8) {
        // A chip may have the engine and run code that was compiled for an older one all the same.
        cudaFuncAttributes attributes{};
        check(cudaFuncGetAttributes(&attributes, read_bulk<8, 16384>), "cudaFuncGetAttributes");
        has_bulk = its_chip.capability >= 90 && attributes.ptxVersion >= 90;
    }

    template <class Right>
    bool right_everywhere(const void* words, Right right) {
        check(cudaMemsetAsync(wrong.data(), 0, wrong.bytes(), stream), "cudaMemset");
        count_wrong<<<grid_of_fills, 256, 0, stream>>>(static_cast<const std::uint32_t*>(words), bytes / 4, right,
                                                       wrong.as<unsigned long long>());
        unsigned long long count = 1;
        check(cudaMemcpyAsync(&count, wrong.data(), sizeof(count), cudaMemcpyDeviceToHost, stream), "cudaMemcpy");
        stream.wait();
        return count == 0;
    }

    /// Blocks that stay (so many a multiprocessor), or one for each chunk.
    std::size_t blocks(int per_multiprocessor, std::size_t chunks) const {
        if (per_multiprocessor == 0) return chunks;
        return std::min(chunks, static_cast<std::size_t>(per_multiprocessor * chip.multiprocessors));
    }

    /// Takes the fastest variant that answers right. `bytes_each` and `flops_each` are those of one launch.
    void best_of(const std::string& name, const std::vector<Variant>& variants, double bytes_each, double flops_each) {
        if (!chip.wants(name)) return;
        const Variant* best = nullptr;
        double best_time = 0.0;
        Json rates = Json::object();
        std::string last_wrong;
        for (const Variant& variant : variants) {
            try {
                check(cudaMemsetAsync(a.data(), 0xff, bytes, stream), "cudaMemset");
                check(cudaMemsetAsync(partial.data(), 0xff, partial.bytes(), stream), "cudaMemset");
                variant.launch();
                check_launch(variant.name.c_str());
                stream.wait();
                if (!variant.answers_right()) {
                    last_wrong = variant.name + " gave a wrong answer";
                    found.notes.push_back(name + ": " + last_wrong + " and was left out");
                    continue;
                }
                const double time = spread_of(time_each(stream, 1, 5, variant.launch)).median;
                rates[variant.name] = bytes_each / time;
                if (best == nullptr || time < best_time) {
                    best = &variant;
                    best_time = time;
                }
            } catch (const Refused& why) {
                last_wrong = variant.name + ": " + why.what();
            }
        }
        if (best == nullptr) {
            found.refuse(name, last_wrong.empty() ? "no kernel ran" : last_wrong);
            return;
        }
        const Spread time = spread_of(time_each(stream, 3, chip.quick ? 20 : 60, best->launch));
        Json figure = rate_figure(name, "B/s", bytes_each, time, best->name);
        figure["flops"] = flops_each;
        figure["bytes"] = bytes_each;
        figure["variants"] = rates;
        found.figures.push_back(std::move(figure));
    }
};

std::string blocks_text(int per_multiprocessor) {
    if (per_multiprocessor == 0) return "a block each chunk";
    return std::to_string(per_multiprocessor) + (per_multiprocessor == 1 ? " block an SM" : " blocks an SM");
}

std::string shape(int threads, int unroll, int per_multiprocessor) {
    return std::to_string(threads) + " threads, " +
           (unroll == 1 ? std::string("not unrolled") : "unrolled " + std::to_string(unroll) + " times") + ", " +
           blocks_text(per_multiprocessor);
}

template <int Unroll>
void add_read(Run& run, std::vector<Variant>& list, int threads, int per_sm) {
    const std::size_t chunks = run.bytes / 16 / static_cast<std::size_t>(threads * Unroll);
    const std::size_t grid = run.blocks(per_sm, chunks);
    const std::size_t warps = grid * static_cast<std::size_t>(threads) / 32;
    list.push_back({"loads of 16 bytes, " + shape(threads, Unroll, per_sm),
                    [=, &run] {
                        read_chunks<Unroll><<<static_cast<unsigned>(grid), threads, 0, run.stream>>>(
                            run.b.as<uint4>(), chunks, run.partial.as<std::uint32_t>());
                    },
                    [=, &run] { return total_of(run.partial.as<std::uint32_t>(), warps) == ramp_sum(run.bytes / 4); }});
}

template <int Stages, int StageBytes>
void add_read_bulk(Run& run, std::vector<Variant>& list, int threads, int per_sm) {
    constexpr std::size_t shared = static_cast<std::size_t>(Stages) * StageBytes;
    if (!run.has_bulk || shared > run.chip.shared_per_block) return;
    check(cudaFuncSetAttribute(read_bulk<Stages, StageBytes>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared)),
          "shared memory");
    const std::size_t tiles = run.bytes / StageBytes;
    const std::size_t grid = run.blocks(per_sm, tiles);
    const std::size_t warps = grid * static_cast<std::size_t>(threads) / 32;
    list.push_back({"bulk copies of " + std::to_string(StageBytes / 1024) + " KiB, " + std::to_string(Stages) +
                        " in flight, " + blocks_text(per_sm),
                    [=, &run] {
                        read_bulk<Stages, StageBytes><<<static_cast<unsigned>(grid), threads, shared, run.stream>>>(
                            run.b.as<uint4>(), tiles, run.partial.as<std::uint32_t>());
                    },
                    [=, &run] { return total_of(run.partial.as<std::uint32_t>(), warps) == ramp_sum(run.bytes / 4); }});
}

template <int Unroll, bool Streaming>
void add_copy(Run& run, std::vector<Variant>& list, int threads, int per_sm) {
    const std::size_t chunks = run.bytes / 16 / static_cast<std::size_t>(threads * Unroll);
    const auto grid = static_cast<unsigned>(run.blocks(per_sm, chunks));
    list.push_back({std::string(Streaming ? "streaming stores, " : "plain stores, ") + shape(threads, Unroll, per_sm),
                    [=, &run] {
                        copy_chunks<Unroll, Streaming>
                            <<<grid, threads, 0, run.stream>>>(run.b.as<uint4>(), run.a.as<uint4>(), chunks);
                    },
                    [&run] { return run.right_everywhere(run.a.data(), Ramp{}); }});
}

template <int Stages, int StageBytes>
void add_copy_bulk(Run& run, std::vector<Variant>& list, int per_sm) {
    constexpr std::size_t shared = static_cast<std::size_t>(Stages) * StageBytes;
    if (!run.has_bulk || shared > run.chip.shared_per_block) return;
    check(cudaFuncSetAttribute(copy_bulk<Stages, StageBytes>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared)),
          "shared memory");
    const std::size_t tiles = run.bytes / StageBytes;
    const auto grid = static_cast<unsigned>(run.blocks(per_sm, tiles));
    list.push_back({"bulk copies of " + std::to_string(StageBytes / 1024) + " KiB, " + std::to_string(Stages) +
                        " in flight, " + blocks_text(per_sm),
                    [=, &run] {
                        copy_bulk<Stages, StageBytes>
                            <<<grid, 32, shared, run.stream>>>(run.b.as<uint4>(), run.a.as<uint4>(), tiles);
                    },
                    [&run] { return run.right_everywhere(run.a.data(), Ramp{}); }});
}

template <int Unroll, bool Streaming>
void add_triad(Run& run, std::vector<Variant>& list, int threads, int per_sm) {
    const std::size_t chunks = run.bytes / 16 / static_cast<std::size_t>(threads * Unroll);
    const auto grid = static_cast<unsigned>(run.blocks(per_sm, chunks));
    list.push_back({std::string(Streaming ? "streaming stores, " : "plain stores, ") + shape(threads, Unroll, per_sm),
                    [=, &run] {
                        triad_chunks<Unroll, Streaming><<<grid, threads, 0, run.stream>>>(
                            run.b.as<uint4>(), run.c.as<uint4>(), run.a.as<float4>(), chunks);
                    },
                    [&run] { return run.right_everywhere(run.a.data(), Triad{}); }});
}

template <int Unroll, bool Streaming>
void add_write(Run& run, std::vector<Variant>& list, int threads, int per_sm) {
    const std::size_t chunks = run.bytes / 16 / static_cast<std::size_t>(threads * Unroll);
    const auto grid = static_cast<unsigned>(run.blocks(per_sm, chunks));
    constexpr std::uint32_t seed = 0x1234567;
    list.push_back({std::string(Streaming ? "streaming stores, " : "plain stores, ") + shape(threads, Unroll, per_sm),
                    [=, &run] {
                        write_chunks<Unroll, Streaming>
                            <<<grid, threads, 0, run.stream>>>(run.a.as<uint4>(), chunks, seed);
                    },
                    [&run] { return run.right_everywhere(run.a.data(), Pattern{pattern_mask, seed}); }});
}

template <int StageBytes>
void add_write_bulk(Run& run, std::vector<Variant>& list, int per_sm) {
    if (!run.has_bulk) return;
    const std::size_t tiles = run.bytes / StageBytes;
    const auto grid = static_cast<unsigned>(run.blocks(per_sm, tiles));
    constexpr std::uint32_t seed = 0x7654321;
    list.push_back(
        {"bulk copies of " + std::to_string(StageBytes / 1024) + " KiB, " + blocks_text(per_sm),
         [=, &run] { write_bulk<StageBytes><<<grid, 128, StageBytes, run.stream>>>(run.a.as<uint4>(), tiles, seed); },
         [&run] { return run.right_everywhere(run.a.data(), Pattern{pattern_mask, seed}); }});
}

std::vector<Variant> all_reads(Run& run) {
    std::vector<Variant> reads;
    add_read<4>(run, reads, 256, 8);
    add_read<8>(run, reads, 256, 4);
    add_read<8>(run, reads, 256, 8);
    add_read<8>(run, reads, 512, 4);
    add_read<16>(run, reads, 256, 4);
    add_read<4>(run, reads, 256, 0);
    add_read<8>(run, reads, 256, 0);
    add_read<16>(run, reads, 256, 0);
    add_read<4>(run, reads, 512, 0);
    add_read<8>(run, reads, 1024, 0);
    add_read_bulk<4, 16384>(run, reads, 256, 2);
    add_read_bulk<8, 16384>(run, reads, 256, 1);
    add_read_bulk<6, 32768>(run, reads, 512, 1);
    add_read_bulk<3, 32768>(run, reads, 256, 2);
    add_read_bulk<3, 65536>(run, reads, 512, 1);
    add_read_bulk<4, 32768>(run, reads, 512, 1);
    add_read_bulk<2, 32768>(run, reads, 256, 2);
    add_read_bulk<3, 16384>(run, reads, 256, 4);
    add_read_bulk<8, 8192>(run, reads, 128, 3);
    add_read_bulk<8, 4096>(run, reads, 128, 4);
    return reads;
}

/// A power of two, so that every chunk and tile divides it; past all caches, and three fit beside each other.
std::size_t buffer_bytes(const Chip& chip) {
    std::size_t bytes = std::size_t{4} << 30;
    while (bytes > chip.free_bytes / 5) bytes /= 2;
    if (bytes < 4 * chip.l2_bytes) throw Refused("too little free memory for buffers past the L2");
    return bytes;
}

void probe_memory(const Chip& chip, Found& found) {
    const std::size_t bytes = buffer_bytes(chip);
    Run run(chip, found, bytes);
    const double size = static_cast<double>(bytes);
    fill_ramp<<<run.grid_of_fills, 256, 0, run.stream>>>(run.b.as<std::uint32_t>(), bytes / 4);
    check_launch("filling");
    run.stream.wait();

    chip.say("memory: read");
    run.best_of("memory.read", all_reads(run), size, 0.0);

    chip.say("memory: copy");
    std::vector<Variant> copies;
    add_copy<4, true>(run, copies, 256, 8);
    add_copy<4, false>(run, copies, 256, 8);
    add_copy<8, true>(run, copies, 256, 4);
    add_copy<4, true>(run, copies, 256, 0);
    add_copy<4, false>(run, copies, 256, 0);
    add_copy<8, true>(run, copies, 512, 0);
    add_copy<1, true>(run, copies, 1024, 0);
    add_copy_bulk<4, 16384>(run, copies, 2);
    add_copy_bulk<8, 8192>(run, copies, 3);
    add_copy_bulk<6, 32768>(run, copies, 1);
    copies.push_back(
        {"cudaMemcpy on the device",
         [&run] {
             check(cudaMemcpyAsync(run.a.data(), run.b.data(), run.bytes, cudaMemcpyDeviceToDevice, run.stream),
                   "cudaMemcpy");
         },
         [&run] { return run.right_everywhere(run.a.data(), Ramp{}); }});
    run.best_of("memory.copy", copies, 2.0 * size, 0.0);

    chip.say("memory: write");
    std::vector<Variant> writes;
    add_write<4, true>(run, writes, 256, 8);
    add_write<4, false>(run, writes, 256, 8);
    add_write<4, true>(run, writes, 256, 0);
    add_write<4, false>(run, writes, 256, 0);
    add_write<1, false>(run, writes, 1024, 0);
    add_write_bulk<16384>(run, writes, 1);
    add_write_bulk<16384>(run, writes, 4);
    add_write_bulk<32768>(run, writes, 2);
    writes.push_back({"cudaMemset",
                      [&run] { check(cudaMemsetAsync(run.a.data(), 0x5a, run.bytes, run.stream), "cudaMemset"); },
                      [&run] { return run.right_everywhere(run.a.data(), Pattern{0, 0x5a5a5a5a}); }});
    run.best_of("memory.write", writes, size, 0.0);

    chip.say("memory: triad");
    fill_operands<<<run.grid_of_fills, 256, 0, run.stream>>>(run.b.as<float>(), run.c.as<float>(), bytes / 4);
    check_launch("filling");
    std::vector<Variant> triads;
    add_triad<2, true>(run, triads, 256, 8);
    add_triad<4, true>(run, triads, 256, 8);
    add_triad<4, false>(run, triads, 256, 4);
    add_triad<2, true>(run, triads, 256, 0);
    add_triad<4, true>(run, triads, 256, 0);
    add_triad<4, false>(run, triads, 256, 0);
    add_triad<1, true>(run, triads, 1024, 0);
    add_triad<2, false>(run, triads, 512, 0);
    run.best_of("memory.triad", triads, 3.0 * size, size / 2.0);  // 2 flops for each of size / 4 numbers
}

/// The fastest read once more, for seconds on end: last of all, since it heats the chip.
void probe_sustained_read(const Chip& chip, Found& found) {
    const std::string name = "memory.read.sustained";
    const Json* burst = found.find("memory.read");
    if (chip.quick || !chip.wants(name)) return;
    if (burst == nullptr) throw Refused("it repeats the fastest kernel of memory.read, which has no figure");
    chip.say("memory: read for seconds on end");
    Run run(chip, found, buffer_bytes(chip));
    fill_ramp<<<run.grid_of_fills, 256, 0, run.stream>>>(run.b.as<std::uint32_t>(), run.bytes / 4);
    check_launch("filling");
    run.stream.wait();
    const double size = static_cast<double>(run.bytes);
    for (const Variant& variant : all_reads(run)) {
        if (variant.name != burst->value("how", "")) continue;
        Json figure = sustained_figure(chip, run.stream, name, "B/s", size, size / burst->value("value", 1e12), 2.2,
                                       "reads", variant.launch);
        if (!variant.answers_right()) throw Refused(variant.name + " gave a wrong answer");
        figure["flops"] = 0.0;
        figure["bytes"] = size;
        found.figures.push_back(std::move(figure));
        return;
    }
}

const Registered registered({10, "memory", probe_memory});
const Registered registered_sustained({90, "memory.read.sustained", probe_sustained_read});

}  // namespace
}  // namespace roofline::probe
