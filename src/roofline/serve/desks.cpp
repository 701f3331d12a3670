#include "roofline/serve/desks.hpp"

#include <utility>

namespace roofline::serve {

Desks::Desks(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) free_.push_back(std::make_unique<ask::Memory>());
}

Desks::Held::Held(Desks& desks) : desks_(desks) {
    std::unique_lock lock(desks.mutex_);
    if (!desks.free_.empty()) {
        memory_ = std::move(desks.free_.back());
        desks.free_.pop_back();
        return;
    }
    Waiting mine;
    desks.waiting_.push_back(&mine);
    mine.bell.wait(lock, [&] { return mine.memory != nullptr; });
    memory_ = std::move(mine.memory);
}

Desks::Held::~Held() {
    const std::lock_guard lock(desks_.mutex_);
    if (desks_.waiting_.empty()) {
        desks_.free_.push_back(std::move(memory_));
        return;
    }
    // Handed over, not put back: nobody who comes just now can take it from who has waited longest.
    Waiting* next = desks_.waiting_.front();
    desks_.waiting_.pop_front();
    next->memory = std::move(memory_);
    next->bell.notify_one();
}

}  // namespace roofline::serve
