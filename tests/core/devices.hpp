// Small devices for tests, with figures that make the arithmetic exact.
#pragma once

#include "roofline/core/device.hpp"

namespace roofline::testing {

inline void set_rate(Device& device, Engine engine, DType type, double flops_per_second) {
    device.rates[index(engine)][index(type)] = Figure{flops_per_second, "test", ""};
}

inline void set_bandwidth(Device& device, Level level, double bytes_per_second) {
    auto& place = device.levels[index(level)];
    if (!place) place.emplace();
    place->bandwidth = Figure{bytes_per_second, "test", ""};
}

inline void set_capacity(Device& device, Level level, double bytes) {
    auto& place = device.levels[index(level)];
    if (!place) place.emplace();
    place->capacity = Figure{bytes, "test", ""};
}

/// 1024 flop/s in bf16, 256 flop/s on the vector engine, 4 byte/s: powers of two, so that reciprocals are exact and the
/// ridge is exactly 256 flop/byte.
inline Device exact_device() {
    Device device;
    device.name = "exact";
    set_rate(device, Engine::matrix, DType::bf16, 1024.0);
    set_rate(device, Engine::vector, DType::fp32, 256.0);
    set_bandwidth(device, Level::memory, 4.0);
    return device;
}

/// The dense figures of NVIDIA's H100 SXM datasheet: 989.4 TFLOP/s bf16 and fp16, 1978.9 fp8, 67 fp32, 3.35 TB/s, 80
/// GB.
inline Device h100() {
    Device device;
    device.name = "h100";
    set_rate(device, Engine::matrix, DType::bf16, 989.4e12);
    set_rate(device, Engine::matrix, DType::fp16, 989.4e12);
    set_rate(device, Engine::matrix, DType::fp8, 1978.9e12);
    set_rate(device, Engine::vector, DType::fp32, 67e12);
    set_bandwidth(device, Level::memory, 3.35e12);
    set_capacity(device, Level::memory, 80e9);
    return device;
}

}  // namespace roofline::testing
