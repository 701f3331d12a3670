// Time as an argument, so that tests can hold the hands of the clock.
#pragma once

#include <chrono>

namespace roofline::measure {

class Clock {
  public:
    Clock() = default;
    Clock(const Clock&) = delete;
    Clock& operator=(const Clock&) = delete;
    virtual ~Clock() = default;
    virtual double seconds() = 0;  // since some fixed moment; never goes back
};

class SteadyClock final : public Clock {
  public:
    double seconds() override {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
};

}  // namespace roofline::measure
