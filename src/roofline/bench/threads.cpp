#include "roofline/bench/threads.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sched.h>
#include <string>
#include <system_error>

#include <fmt/format.h>

namespace roofline::bench {
namespace {

constexpr int spins = 20'000;  // some tens of microseconds

inline void relax() {
#if defined(__aarch64__)
    asm volatile("yield");
#elif defined(__x86_64__)
    asm volatile("pause");
#endif
}

}  // namespace

Result<std::unique_ptr<Threads>> Threads::start(int count) {
    std::unique_ptr<Threads> threads(new Threads());
    for (int thread = 1; thread < count; ++thread) {
        try {
            threads->workers_.emplace_back([raw = threads.get(), thread] { raw->serve(thread); });
        } catch (const std::system_error& error) {
            return std::unexpected(
                Problem{fmt::format("only {} of {} threads could be started ({}): --threads {} asks for fewer", thread,
                                    count, error.code().message(), thread),
                        true});
        }
    }
    return threads;
}

Threads::~Threads() {
    ending_ = true;
    round_.fetch_add(1);
    round_.notify_all();
    for (std::thread& worker : workers_) worker.join();
}

void Threads::take(int thread) {
    while (true) {
        const std::uint64_t ticket = next_.fetch_add(1, std::memory_order_acq_rel);
        const std::uint64_t chunk = ticket & 0xFFFF'FFFFU;
        if (chunk >= ticket >> 32U) return;
        (*work_)(static_cast<std::int64_t>(chunk), thread);
        done_.fetch_add(1, std::memory_order_release);
    }
}

void Threads::serve(int thread) {
    std::uint32_t seen = 0;
    while (true) {
        std::uint32_t now = round_.load(std::memory_order_acquire);
        for (int spin = 0; now == seen && spin < spins; ++spin) {
            relax();
            now = round_.load(std::memory_order_acquire);
        }
        while (now == seen) {
            round_.wait(seen);
            now = round_.load(std::memory_order_acquire);
        }
        seen = now;
        if (ending_) return;
        take(thread);
    }
}

void Threads::run(std::int64_t chunks, const std::function<void(std::int64_t, int)>& work) {
    if (workers_.empty() || chunks <= 1) {
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) work(chunk, 0);
        return;
    }
    work_ = &work;
    done_.store(0, std::memory_order_relaxed);
    next_.store(static_cast<std::uint64_t>(chunks) << 32U, std::memory_order_release);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    take(0);
    // Where others want the processors too, one that only waits would keep its own thread from being run there.
    for (int spin = 0; done_.load(std::memory_order_acquire) < chunks; ++spin) {
        if (spin < spins)
            relax();
        else
            ::sched_yield();
    }
}

void Threads::ranges(std::int64_t total, std::int64_t grain,
                     const std::function<void(std::int64_t, std::int64_t)>& work, std::int64_t least,
                     Multiple multiple) {
    const std::int64_t pieces = (total + grain - 1) / grain;
    if (count() == 1 || pieces == 1) {
        if (total > 0) work(0, total);
        return;
    }
    const Parts parts(pieces, count(), std::max<std::int64_t>(1, (least + grain - 1) / grain));
    const auto begin = [&](std::int64_t part) {
        return grain * (multiple == Multiple::odd ? parts.odd_begin(part) : parts.begin(part));
    };
    run(parts.count(), [&](std::int64_t part, int) {
        const std::int64_t first = begin(part);
        const std::int64_t last = std::min(total, begin(part + 1));
        if (first < last) work(first, last);
    });
}

int usable_processors() {
    int processors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    cpu_set_t allowed;
    if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) processors = std::max(1, CPU_COUNT(&allowed));
    std::ifstream quota("/sys/fs/cgroup/cpu.max");  // "200000 100000": 2 processors' worth; "max 100000": no limit
    std::string share;
    double period = 0.0;
    if (quota >> share >> period && share != "max" && period > 0.0) {
        const double paid = std::atof(share.c_str()) / period;
        if (paid >= 1.0) processors = std::min(processors, static_cast<int>(paid));
    }
    return processors;
}

}  // namespace roofline::bench
