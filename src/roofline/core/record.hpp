// The waist of the program: what was predicted, measured or traced about one operator, under one name. The verdict
// (intensity, ridge, bound, fraction of roof) is derived from it and never stored.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/roof.hpp"

namespace roofline {

/// What people ask for.
enum class Group { attention, ffn, moe, embedding, head, norm, communication, other };
inline constexpr std::size_t group_count = 8;
constexpr std::size_t index(Group group) {
    return static_cast<std::size_t>(group);
}
std::string_view name(Group group);

/// What kind of kernel does it. The last two are what a trace has besides operators: time
/// that none explains, and waiting.
enum class Kind {
    gemm,
    attention,
    norm,
    elementwise,
    gather,
    scan,
    select,
    copy,
    collective,
    other,
    unattributed,
    idle
};
inline constexpr std::size_t kind_count = 12;
std::string_view name(Kind kind);

enum class Origin { predicted, measured, traced };
std::string_view name(Origin origin);

/// By the name that reports write; empty for a name that is none.
std::optional<Group> find_group(std::string_view name);
std::optional<Kind> find_kind(std::string_view name);
std::optional<Origin> find_origin(std::string_view name);

/// The three times, never mixed: speed of light, measured ceilings, what an engine will show.
struct Times {
    Seconds limit{};
    Seconds attainable{};
    Seconds expected{};
    Seconds expected_low{};  // eight of ten measurements should fall between these two
    Seconds expected_high{};
    std::optional<Seconds> measured;
};

struct Record {
    std::string name;                 // layers.attention.qkv
    std::vector<std::string> covers;  // operators that one kernel fuses; joins go through it
    Kind kind = Kind::other;
    Group group = Group::other;
    double count = 1.0;
    Work work;      // totals over `count`
    Bytes weights;  // part of the bytes of memory, where that is known
    Bytes kv;       // likewise
    Times times;    // totals over `count`
    Origin origin = Origin::predicted;
};

/// What follows from a record and the roofs it is held against.
struct Verdict {
    FlopsPerByte intensity{};
    FlopsPerByte ridge{};  // of the engine and type it ran on; zero where unknown
    Bound bound = Bound::memory;
    double fraction_of_peak = 0.0;       // of the engine's flop rate, at `limit`
    double fraction_of_bandwidth = 0.0;  // of memory, at `limit`
};

Verdict judge(const Work& work, const Roofs& roofs);

/// What held back something that ran, under the ceilings that were measured. Short kernels far from any of them are
/// held by their own start, and so is a device that waits.
Bound held_by(const Record& record, const Roofs& attainable);

}  // namespace roofline
