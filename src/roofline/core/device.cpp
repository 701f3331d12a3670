#include "roofline/core/device.hpp"

#include <span>

namespace roofline {
namespace {

// What stands in for a type a device lacks, nearest first. Wider types come first because they can hold the values;
// a narrower or slower stand-in comes last and only so that the limit stays a limit.
std::span<const DType> stand_ins(DType type) {
    using enum DType;
    static constexpr std::array for_fp64 = {fp32};
    static constexpr std::array for_fp32 = {tf32, bf16, fp16};
    static constexpr std::array for_tf32 = {fp32, bf16, fp16};
    static constexpr std::array for_bf16 = {fp16, tf32, fp32};
    static constexpr std::array for_fp16 = {bf16, tf32, fp32};
    static constexpr std::array for_fp8 = {bf16, fp16, tf32, fp32};
    static constexpr std::array for_fp4 = {fp8, bf16, fp16, tf32, fp32};
    static constexpr std::array for_int8 = {bf16, fp16, tf32, fp32};
    static constexpr std::array for_int4 = {int8, bf16, fp16, tf32, fp32};
    switch (type) {
        case fp64:
            return for_fp64;
        case fp32:
            return for_fp32;
        case tf32:
            return for_tf32;
        case bf16:
            return for_bf16;
        case fp16:
            return for_fp16;
        case fp8:
            return for_fp8;
        case fp4:
            return for_fp4;
        case int8:
            return for_int8;
        case int4:
            return for_int4;
    }
    return for_bf16;
}

std::optional<Engine> engine_of(const Device& device, DType type) {
    if (device.rate(Engine::matrix, type)) return Engine::matrix;
    if (device.rate(Engine::vector, type)) return Engine::vector;
    return std::nullopt;
}

/// Products of other types add up in fp32. A processor's instructions for fp16 add up in fp16, which serves none but
/// those who asked for it; matrix engines do as they should.
bool may_stand_in(const Device& device, Engine engine, DType type) {
    return !(device.kind == "cpu" && engine == Engine::vector && type == DType::fp16);
}

}  // namespace

std::string_view name(SourceKind kind) {
    static constexpr std::array<std::string_view, 4> names = {"vendor", "measured", "derived", "assumed"};
    return names[static_cast<std::size_t>(kind)];
}

std::string_view name(Engine engine) {
    return engine == Engine::matrix ? "matrix" : "vector";
}

std::string_view name(Level level) {
    static constexpr std::array<std::string_view, level_count> names = {"memory", "cache", "host", "peer", "network"};
    return names[index(level)];
}

const Figure* Device::bandwidth(Level which) const {
    const auto& found = level(which);
    return found && found->bandwidth ? &*found->bandwidth : nullptr;
}

const Figure* Device::capacity(Level which) const {
    const auto& found = level(which);
    return found && found->capacity ? &*found->capacity : nullptr;
}

const Figure* Device::usable(Level which) const {
    const auto& found = level(which);
    return found && found->reported ? &*found->reported : capacity(which);
}

std::optional<EngineChoice> choose_engine(const Device& device, DType type) {
    if (const auto engine = engine_of(device, type)) return EngineChoice{*engine, type, true};
    for (const DType other : stand_ins(type)) {
        const auto engine = engine_of(device, other);
        if (engine && may_stand_in(device, *engine, other)) return EngineChoice{*engine, other, false};
    }
    return std::nullopt;
}

std::optional<FlopsPerByte> ridge(const Device& device, DType type) {
    const auto choice = choose_engine(device, type);
    const Figure* bandwidth = device.bandwidth(Level::memory);
    if (!choice || bandwidth == nullptr) return std::nullopt;
    const auto& rate = device.rate(choice->engine, choice->type);
    if (!rate) return std::nullopt;
    return FlopsPerSecond(rate->value) / BytesPerSecond(bandwidth->value);
}

}  // namespace roofline
