#include "roofline/measure/team.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <system_error>
#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace roofline::measure {
namespace {

void wait_a_little(int turn) {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
    if (turn > 2000) ::sched_yield();  // more threads than processors: let the others get there
}

/// Where the system has no way to say so, a thread stays where it likes.
bool hold_on([[maybe_unused]] int processor) {
#if defined(__linux__)
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(processor), &set);
    return ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set) == 0;
#else
    return false;
#endif
}

/// How often this thread was taken off its processor so far, of its own will or not.
long switches() {
#if defined(RUSAGE_THREAD)
    rusage usage{};
    if (::getrusage(RUSAGE_THREAD, &usage) == 0) return usage.ru_nvcsw + usage.ru_nivcsw;
#endif
    return 0;
}

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

unsigned long flush_denormals() {
#if defined(__x86_64__)
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040U);  // FTZ and DAZ
    return before;
#elif defined(__aarch64__)
    unsigned long before = 0;
    asm volatile("mrs %0, fpcr" : "=r"(before));
    restore_denormals(before | (1UL << 24U) | (1UL << 19U));  // FZ and FZ16
    return before;
#else
    return 0;
#endif
}

void restore_denormals([[maybe_unused]] unsigned long before) {
#if defined(__x86_64__)
    _mm_setcsr(static_cast<unsigned>(before));
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" : : "r"(before));
#endif
}

struct Team::Shared {
    struct alignas(128) Times {
        double start = 0.0;
        double end = 0.0;
        bool disturbed = false;
    };

    std::vector<std::thread> threads;
    std::vector<Times> times;
#if defined(__linux__)
    cpu_set_t before{};
#endif
    unsigned long denormals_before = 0;
    std::atomic<bool> pinned{true};

    std::mutex mutex;
    std::condition_variable wake;
    std::uint64_t turn = 0;  // guarded by the mutex
    bool ending = false;
    std::size_t active = 0;
    const std::function<void(std::size_t)>* body = nullptr;
    std::atomic<std::size_t> ready{0};
    std::atomic<std::size_t> finished{0};

    void take_part(std::size_t index, std::size_t count, const std::function<void(std::size_t)>& work) {
        ready.fetch_add(1);
        for (int spins = 0; ready.load(std::memory_order_acquire) < count; ++spins) wait_a_little(spins);
        const long switched = switches();
        times[index].start = now();
        work(index);
        times[index].end = now();
        times[index].disturbed = switches() != switched;
        finished.fetch_add(1, std::memory_order_release);
    }

    void live(std::size_t index, int processor) {
        if (!hold_on(processor)) pinned = false;
        flush_denormals();
        std::uint64_t seen = 0;
        while (true) {
            std::size_t count = 0;
            const std::function<void(std::size_t)>* work = nullptr;
            {
                std::unique_lock lock(mutex);
                wake.wait(lock, [&] { return ending || turn != seen; });
                if (ending) return;
                seen = turn;
                count = active;
                work = body;
            }
            if (index < count) take_part(index, count, *work);
        }
    }
};

Team::Team(std::vector<int> processors) : shared_(std::make_unique<Shared>()) {
    if (processors.empty()) processors.push_back(0);
    Shared& shared = *shared_;
#if defined(__linux__)
    CPU_ZERO(&shared.before);
    ::pthread_getaffinity_np(::pthread_self(), sizeof shared.before, &shared.before);
#endif
    shared.times.resize(processors.size());
    for (std::size_t i = 1; i < processors.size(); ++i) {
        try {
            shared.threads.emplace_back([&shared, i, processor = processors[i]] { shared.live(i, processor); });
        } catch (const std::system_error&) {
            break;  // a limit on threads: go on with those we have
        }
    }
    if (!hold_on(processors.front())) shared.pinned = false;
    shared.denormals_before = flush_denormals();
}

Team::~Team() {
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->ending = true;
    }
    shared_->wake.notify_all();
    for (std::thread& thread : shared_->threads) thread.join();
#if defined(__linux__)
    ::pthread_setaffinity_np(::pthread_self(), sizeof shared_->before, &shared_->before);
#endif
    restore_denormals(shared_->denormals_before);
}

std::size_t Team::size() const {
    return shared_->threads.size() + 1;
}

bool Team::pinned() const {
    return shared_->pinned;
}

Ran Team::run(std::size_t threads, const std::function<void(std::size_t)>& body) {
    Shared& shared = *shared_;
    const std::size_t count = std::clamp<std::size_t>(threads, 1, size());
    shared.ready = 0;
    shared.finished = 0;
    if (count > 1) {
        {
            const std::lock_guard lock(shared.mutex);
            shared.active = count;
            shared.body = &body;
            ++shared.turn;
        }
        shared.wake.notify_all();
    }
    shared.take_part(0, count, body);
    for (int spins = 0; shared.finished.load(std::memory_order_acquire) < count; ++spins) wait_a_little(spins);
    double start = shared.times[0].start;
    double end = shared.times[0].end;
    bool disturbed = shared.times[0].disturbed;
    for (std::size_t i = 1; i < count; ++i) {
        start = std::min(start, shared.times[i].start);
        end = std::max(end, shared.times[i].end);
        disturbed = disturbed || shared.times[i].disturbed;
    }
    return {end - start, disturbed};
}

}  // namespace roofline::measure
