#include "roofline/cli/sweep/ordered_chunks.hpp"

#include <algorithm>
#include <chrono>
#if defined(__linux__)
#include <sched.h>
#endif

namespace roofline::cli {

OrderedChunks::OrderedChunks(std::size_t first, std::size_t stride, std::size_t count, std::size_t threads,
                             std::function<ChunkMaker()> new_maker)
    : stride_(stride), count_(count), to_begin_(first), to_take_(first), ahead_(8 * threads) {
    const std::size_t chunks = count > first ? (count - first + stride - 1) / stride : 0;
    for (std::size_t i = 0; i < std::min(threads, chunks); ++i)
        threads_.emplace_back([this, new_maker] { work(new_maker); });
}

OrderedChunks::~OrderedChunks() {
    stop();
    threads_.clear();  // joins them while everything they use is still there
}

void OrderedChunks::stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    taken_.notify_all();
}

void OrderedChunks::work(const std::function<ChunkMaker()>& new_maker) {
    std::size_t chunk = 0;
    try {
        const ChunkMaker make = new_maker();
        while (true) {
            {
                std::unique_lock lock(mutex_);
                taken_.wait(lock,
                            [&] { return stopped_ || to_begin_ >= count_ || to_begin_ < to_take_ + ahead_ * stride_; });
                if (stopped_ || to_begin_ >= count_) return;
                chunk = to_begin_;
                to_begin_ += stride_;
            }
            std::string text = make(chunk);
            const std::lock_guard lock(mutex_);
            ready_.emplace(chunk, std::move(text));
            made_.notify_one();
        }
    } catch (...) {
        const std::lock_guard lock(mutex_);
        fault_ = std::current_exception();
        stopped_ = true;
        taken_.notify_all();
        made_.notify_one();
    }
}

std::optional<std::string> OrderedChunks::next(bool& waiting) {
    waiting = false;
    std::unique_lock lock(mutex_);
    const auto settled = [&] {
        const bool over = to_take_ >= count_ || (stopped_ && to_take_ >= to_begin_);
        return fault_ != nullptr || over || ready_.contains(to_take_);
    };
    if (!made_.wait_for(lock, std::chrono::milliseconds(200), settled)) {
        waiting = true;
        return std::nullopt;
    }
    if (fault_) std::rethrow_exception(fault_);
    const auto found = ready_.find(to_take_);
    if (found == ready_.end()) return std::nullopt;
    std::string text = std::move(found->second);
    ready_.erase(found);
    to_take_ += stride_;
    taken_.notify_all();
    return text;
}

std::size_t usable_cores() {
#if defined(__linux__)
    cpu_set_t cores;
    if (::sched_getaffinity(0, sizeof cores, &cores) == 0)
        return static_cast<std::size_t>(std::max(1, CPU_COUNT(&cores)));
#endif
    return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace roofline::cli
