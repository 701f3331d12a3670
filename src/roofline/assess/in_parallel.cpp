#include "roofline/assess/in_parallel.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace roofline::assess {

void in_parallel(std::size_t count, const std::function<void(std::size_t)>& each) {
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t i = next++; i < count; i = next++) each(i);
    };
    const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min(count, processors); ++i) others.emplace_back(work);
    work();
}

}  // namespace roofline::assess
