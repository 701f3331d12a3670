#include "roofline/measure/cpu_trials.hpp"

#include <algorithm>
#include <atomic>
#include <memory>

namespace roofline::measure {
namespace {

constexpr std::size_t large_page = std::size_t{2} << 20U;

/// Half a megabyte, in odd numbers of pages for each stream.
std::size_t piece_of(const MemoryKernel& kernel) {
    const auto streams = static_cast<std::size_t>(kernel.streams);
    return (128 / streams | 1U) * page_bytes * streams;
}

/// Where a thread is on its walk.
struct alignas(128) Walk {
    std::size_t next = 0;  // piece
    std::uint64_t sum = 0;
    std::uint64_t done = 0;  // pieces of this window
};

}  // namespace

Result<Field> Field::make(Team& team, std::size_t threads, std::size_t bytes_each) {
    // Parts that begin at the same place of a page's page fight for the same sets of a cache, as do arrays: an odd
    // number of pages to a part, and a few between arrays.
    const std::size_t each = ((std::max(page_bytes, bytes_each) / page_bytes - 1) | 1U) * page_bytes;
    const std::size_t stride = (threads * each + large_page - 1) / large_page * large_page + 5 * page_bytes;
    auto arena = Arena::take(3 * stride + large_page);
    if (!arena) return std::unexpected(arena.error());
    std::vector<Arrays> arrays(threads);
    for (std::size_t i = 0; i < threads; ++i) {
        std::byte* start = arena->data() + i * each;
        arrays[i] = {start, start + stride, start + 2 * stride, each};
    }
    team.run(threads, [&](std::size_t i) {
        fill_pages(arrays[i].a, each);
        fill_pages(arrays[i].b, each);
        fill_pages(arrays[i].c, each);
    });
    return Field(std::move(*arena), std::move(arrays));
}

Arrays Field::joined(std::size_t threads) const {
    Arrays all = arrays_.front();
    all.bytes *= std::min(threads, arrays_.size());
    return all;
}

std::size_t span_of(const MemoryKernel& kernel, double working_set) {
    const std::size_t unit = page_bytes * static_cast<std::size_t>(kernel.streams);
    const auto bytes = static_cast<std::size_t>(working_set / arrays(kernel.motion));
    std::size_t units = std::max<std::size_t>(1, bytes / unit);
    if (kernel.one_pass != nullptr && units % 2 == 0) --units;  // an even number of pages would cancel out
    return units * unit;
}

Trial flop_trial(std::string name, Team& team, std::size_t threads, const FlopKernel& kernel) {
    Trial trial;
    trial.name = std::move(name);
    trial.window_s = 0.002;
    trial.work = kernel.flops * static_cast<double>(threads);
    trial.run = [&team, threads, kernel, most = std::uint64_t{0}](std::uint64_t units) mutable {
        std::atomic<bool> right{true};
        // Wide units are slow to wake: many processors run them at a fraction of their speed for the first while. Half
        // a window of full length does, however short windows have become on a busy machine.
        most = std::max(most, units);
        team.run(threads, [&](std::size_t) {
            for (std::uint64_t left = most / 2; left > 0;) {
                const std::uint64_t trips = std::min(left, kernel.longest);
                if (!kernel.run(trips)) right = false;
                left -= trips;
            }
        });
        const Ran ran = team.run(threads, [&](std::size_t) {
            for (std::uint64_t left = units; left > 0;) {
                const std::uint64_t trips = std::min(left, kernel.longest);
                if (!kernel.run(trips)) right = false;
                left -= trips;
            }
        });
        return Window{ran.seconds, right, ran.disturbed};
    };
    return trial;
}

Trial resident_trial(std::string name, Team& team, std::span<const Arrays> arrays_of, const MemoryKernel& kernel,
                     double working_set, double window_s) {
    const std::size_t span = std::min(span_of(kernel, working_set), arrays_of.front().bytes);
    Trial trial;
    trial.name = std::move(name);
    trial.window_s = window_s;
    trial.work = static_cast<double>(span) * arrays(kernel.motion) * static_cast<double>(arrays_of.size());
    trial.run = [&team, memory = std::vector<Arrays>(arrays_of.begin(), arrays_of.end()), kernel,
                 span](std::uint64_t units) {
        const bool writes = kernel.motion != Motion::read;
        if (writes) {
            for (const Arrays& own : memory) spoil(own.a, span);
        }
        std::vector<Walk> walks(memory.size());
        const Ran ran = team.run(memory.size(), [&](std::size_t i) {
            walks[i].sum = kernel.run(memory[i].a, memory[i].b, memory[i].c, span, units);
        });
        bool right = true;
        for (std::size_t i = 0; i < memory.size(); ++i) {
            right = right && (writes ? written_right(kernel.motion, memory[i].a, span)
                                     : walks[i].sum == expected_sum(kernel, span, units));
        }
        return Window{ran.seconds, right, ran.disturbed};
    };
    return trial;
}

Trial walking_trial(std::string name, Team& team, std::span<const Arrays> arrays_of, const MemoryKernel& kernel,
                    double window_s, std::size_t together_bytes, std::size_t threads_together) {
    std::vector<Arrays> memory(arrays_of.begin(), arrays_of.end());
    if (together_bytes > 0) {
        memory.assign(threads_together, memory.front());
        for (Arrays& own : memory) own.bytes = std::min(own.bytes, together_bytes);
    }
    const auto streams = static_cast<std::size_t>(kernel.streams);
    const std::size_t unit = page_bytes * streams;
    const std::size_t piece = std::clamp(piece_of(kernel), unit, std::max(unit, memory.front().bytes / unit * unit));
    const std::size_t pieces = std::max<std::size_t>(1, memory.front().bytes / piece);
    // Each stream has a part of the array to itself and goes on where it was.
    const bool apart = kernel.apart != nullptr;
    const std::size_t distance = pieces * (piece / streams);
    auto walks = std::make_shared<std::vector<Walk>>(memory.size());
    if (together_bytes > 0) {
        for (std::size_t i = 0; i < memory.size(); ++i) (*walks)[i].next = i * pieces / memory.size();
    }
    Trial trial;
    trial.name = std::move(name);
    trial.window_s = window_s;
    trial.work = static_cast<double>(piece) * arrays(kernel.motion) * static_cast<double>(memory.size());
    trial.run = [&team, memory = std::move(memory), kernel, piece, pieces, distance, apart, streams,
                 walks](std::uint64_t units) {
        const bool writes = kernel.motion != Motion::read;
        std::vector<std::size_t> first(memory.size());
        for (std::size_t i = 0; i < memory.size(); ++i) {
            first[i] = (*walks)[i].next * piece;
            if (writes) spoil(memory[i].a + first[i], piece);
        }
        // Whoever is ahead walks on until all pieces are done: the time is that of the memory, not that of the thread
        // that was held up most.
        std::atomic<std::int64_t> left{static_cast<std::int64_t>(units * memory.size())};
        const Ran ran = team.run(memory.size(), [&](std::size_t i) {
            Walk walk{(*walks)[i].next, 0, 0};
            const Arrays& own = memory[i];
            while (left.fetch_sub(1, std::memory_order_relaxed) > 0) {
                const std::size_t at = walk.next * piece;
                walk.sum += apart ? kernel.apart(own.b + at / streams, distance, piece, 1)
                                  : kernel.run(own.a + at, own.b + at, own.c + at, piece, 1);
                walk.next = walk.next + 1 == pieces ? 0 : walk.next + 1;
                ++walk.done;
            }
            (*walks)[i] = walk;
        });
        bool right = true;
        for (std::size_t i = 0; i < memory.size(); ++i) {
            const Walk& walk = (*walks)[i];
            if (walk.done == 0) continue;
            right = right && (writes ? written_right(kernel.motion, memory[i].a + first[i], piece)
                                     : walk.sum == expected_sum(kernel, piece, walk.done));
        }
        return Window{ran.seconds, right, ran.disturbed};
    };
    return trial;
}

Trial clock_trial(std::string name, Team& team, std::size_t threads) {
    Trial trial;
    trial.name = std::move(name);
    trial.window_s = 0.002;
    trial.work = 16.0;  // dependent additions, a cycle each
    trial.run = [&team, threads](std::uint64_t units) {
        std::atomic<bool> right{true};
        const Ran ran = team.run(threads, [&](std::size_t) {
            std::uint64_t value = 0;
            std::uint64_t one = 1;
            for (std::uint64_t i = 0; i < units; ++i) {
                // From a register: newer processors add small constants without spending a cycle.
#if defined(__x86_64__)
                asm volatile(
                    "add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n"
                    "add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n"
                    "add %1, %0\n add %1, %0\n"
                    : "+r"(value)
                    : "r"(one)
                    : "cc");
#elif defined(__aarch64__)
                asm volatile(
                    "add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n"
                    "add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n"
                    "add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n"
                    "add %0, %0, %1\n"
                    : "+r"(value)
                    : "r"(one));
#else
                for (int j = 0; j < 16; ++j) {
                    value += one;
                    asm volatile("" : "+r"(value));
                }
#endif
            }
            if (value != 16 * units) right = false;
        });
        return Window{ran.seconds, right, ran.disturbed};
    };
    return trial;
}

}  // namespace roofline::measure
