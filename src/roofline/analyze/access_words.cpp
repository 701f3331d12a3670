#include "roofline/analyze/access_words.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/render/numbers.hpp"

namespace roofline::analyze {
namespace {

std::string gigahertz(double hertz) {
    return fmt::format("{:.2f} GHz", hertz / 1e9);
}

/// Nsight Compute holds the clock near the device's base unless it is told not to: then no two launches differ, or,
/// where short and heavy ones do, none comes near what the device allows. A clock left alone gets there sooner or
/// later.
std::string clock_words(const std::vector<Counters>& launches) {
    constexpr double steady = 0.015;       // a held clock varies by less
    constexpr double near_highest = 0.97;  // of what the device allows: nothing was held down
    constexpr double far_below = 0.9;      // of it, by every launch: held down, however it varies
    double least = 0.0;
    double most = 0.0;
    double limit = 0.0;
    double cycles = 0.0;
    double seconds = 0.0;
    std::size_t counted = 0;
    for (const Counters& launch : launches) {
        if (!launch.clock || *launch.clock <= 0.0) continue;
        least = counted == 0 ? *launch.clock : std::min(least, *launch.clock);
        most = std::max(most, *launch.clock);
        limit = std::max(limit, launch.clock_limit.value_or(0.0));
        cycles += *launch.clock * launch.duration.value;
        seconds += launch.duration.value;
        ++counted;
    }
    if (counted == 0 || seconds <= 0.0) return "";
    const double mean = cycles / seconds;
    const std::string allowed = limit > 0.0 ? fmt::format(" (the device allows {})", gigahertz(limit)) : "";
    const bool held = counted >= 3 && most - least < steady * most;
    if (held && limit > 0.0 && mean < near_highest * limit) {
        return fmt::format(
            "clocks were locked: {} in all {} launches{}. Kernels bound by compute or cache take up to {:.2f} times as "
            "long as in a run at the highest clock, and their percentages read low by as much; --clock-control none "
            "leaves the clock alone",
            gigahertz(mean), counted, allowed, limit / mean);
    }
    if (!held && most < far_below * limit) {
        return fmt::format(
            "clocks were held down, as Nsight Compute does unless told otherwise: {} to {}, {} on average over the "
            "time{}. Kernels bound by compute or cache take up to {:.2f} times as long as in a run at the highest "
            "clock, "
            "and their percentages read low by as much; --clock-control none leaves the clock alone",
            gigahertz(least), gigahertz(most), gigahertz(mean), allowed, limit / mean);
    }
    if (held && limit == 0.0) {
        return fmt::format(
            "the clock was {} in all {} launches: locked, if the device allows more; then kernels bound by compute "
            "read "
            "low by as much",
            gigahertz(mean), counted);
    }
    if (held) return fmt::format("clocks were not held down: {} throughout{}", gigahertz(mean), allowed);
    if (limit == 0.0) {
        return fmt::format(
            "clocks were {} to {}, {} on average over the time; what the device allows is not on this page: if it is "
            "more, they were held down, as Nsight Compute does unless told --clock-control none, and percentages of "
            "kernels bound by compute or cache read low by as much",
            gigahertz(least), gigahertz(most), gigahertz(mean));
    }
    return fmt::format(
        "clocks were not locked: {} to {}, {} on average over the time{}; percentages are against the datasheet, "
        "whatever "
        "the clock was",
        gigahertz(least), gigahertz(most), gigahertz(mean), allowed);
}

/// With caches flushed before every launch, whatever a kernel reads comes from memory, also what the one before it has
/// just written. Kernels whose data would fit in the cache several times over tell which it was.
std::string cache_words(const std::vector<Counters>& launches) {
    constexpr double least_bytes = 2e6;  // below, instructions and constants are most of what moves
    constexpr std::size_t least_launches = 5;
    double cold = 0.0;
    double warm = 0.0;
    for (const Counters& launch : launches) {
        if (!launch.l2 || !launch.dram || !launch.l2_size) continue;
        if (*launch.l2 < least_bytes || *launch.l2 > *launch.l2_size / 3.0) continue;
        (*launch.dram < 0.2 * *launch.l2 ? warm : cold) += 1.0;
    }
    const double all = cold + warm;
    if (all < static_cast<double>(least_launches)) return "";
    if (warm <= 0.05 * all) {
        return fmt::format(
            "caches look flushed before every launch: of {:.0f} launches whose data would fit in L2, {:.0f} read it "
            "from "
            "memory. In a real run some of it is still in the cache: bytes of memory and times are upper bounds there; "
            "--cache-control none leaves the caches alone",
            all, cold);
    }
    return fmt::format(
        "caches were not flushed: {:.0f} of {:.0f} launches whose data fit in L2 found it there (replays of a launch "
        "warm "
        "the cache too: its own data may come from an earlier pass)",
        warm, all);
}

}  // namespace

std::vector<std::string> clock_and_cache_words(const std::vector<Counters>& launches) {
    std::vector<std::string> lines;
    for (std::string line : {clock_words(launches), cache_words(launches)}) {
        if (!line.empty()) lines.push_back(std::move(line));
    }
    double passes = 0.0;
    for (const Counters& launch : launches) passes = std::max(passes, launch.passes.value_or(0.0));
    if (passes > 1.0)
        lines.push_back(fmt::format(
            "each launch was run up to {:.0f} times to count everything; its time is of one of them", passes));
    return lines;
}

std::vector<std::string> access_words(const Record& record, const Counters& counters) {
    std::vector<std::string> parts;
    if (counters.dram && counters.l2 && *counters.l2 > 0.0) {
        const double dram = *counters.dram;
        const double l2 = *counters.l2;
        const std::string hits =
            counters.l2_hit_rate ? fmt::format(", L2 hit rate {}", render::percent(*counters.l2_hit_rate)) : "";
        constexpr double least_bytes = 1e6;  // a launch; below, instructions and constants are most of what moves
        if (l2 < least_bytes * record.count) {
            parts.push_back(fmt::format("small: {} of memory a launch, too little to be what takes the time",
                                        render::bytes(Bytes(dram / record.count))));
        } else if (dram < 0.1 * l2) {
            parts.push_back(fmt::format("cache-resident: {} from L2, only {} from memory{}", render::bytes(Bytes(l2)),
                                        render::bytes(Bytes(dram)), hits));
        } else if (l2 >= 2.0 * dram) {
            parts.push_back(fmt::format("re-read: every byte of memory is fetched {:.1f} times from L2 ({} of {}){}",
                                        l2 / dram, render::bytes(Bytes(l2)), render::bytes(Bytes(dram)), hits));
        } else {
            parts.push_back(
                fmt::format("streaming: {} of memory, each byte used about once{}", render::bytes(Bytes(dram)), hits));
        }
    } else if (counters.dram) {
        parts.push_back(fmt::format(
            "{} of memory{}", render::bytes(Bytes(*counters.dram)),
            counters.l2_hit_rate ? fmt::format(", L2 hit rate {}", render::percent(*counters.l2_hit_rate)) : ""));
    }
    if (counters.dram_read && counters.dram_write && *counters.dram_read + *counters.dram_write > 0.0) {
        parts.push_back(fmt::format(
            "{} of it written", render::percent(*counters.dram_write / (*counters.dram_read + *counters.dram_write))));
    }
    if (counters.bytes_per_sector && *counters.bytes_per_sector > 0.0 && *counters.bytes_per_sector < 16.0) {
        parts.push_back(
            fmt::format("uncoalesced: {:.1f} of the 32 bytes of a sector are used", *counters.bytes_per_sector));
    } else if (counters.sectors_per_request && *counters.sectors_per_request >= 24.0) {
        parts.push_back(
            fmt::format("uncoalesced: {:.1f} sectors a request, nearly one a thread", *counters.sectors_per_request));
    } else if (counters.sectors_per_request && *counters.sectors_per_request > 0.0) {
        parts.push_back(fmt::format("{:.1f} sectors a request", *counters.sectors_per_request));
    }
    if (counters.spills.value_or(0.0) > 0.0)
        parts.push_back(fmt::format("registers spill: {} requests to local memory", render::plain(*counters.spills)));
    if (counters.occupancy) {
        std::string words = fmt::format("occupancy {}", render::percent(*counters.occupancy));
        if (counters.occupancy_limit && *counters.occupancy_limit < 1.0)
            words += fmt::format(" of at most {}", render::percent(*counters.occupancy_limit));
        parts.push_back(words);
    }
    if (counters.waves && *counters.waves > 0.0 && *counters.waves < 0.5)
        parts.push_back(fmt::format("fills {} of the machine's blocks", render::percent(*counters.waves)));
    if (parts.empty()) return {};
    return {fmt::format("{}: {}", record.name, fmt::join(parts, "; "))};
}

void add_diagnoses(Analysis& analysis, const std::string& stage, Seconds stage_time, const Record& record,
                   const Counters& counters) {
    const double share = stage_time.value > 0.0 ? counters.duration.value / stage_time.value : 0.0;
    if (share < 0.01) return;
    const auto add = [&](std::string words, std::string evidence, std::string advice, double saved) {
        Diagnosis& diagnosis = analysis.diagnoses.emplace_back();
        diagnosis.stage = stage == "all" ? "" : stage;
        diagnosis.words = std::move(words);
        diagnosis.evidence = std::move(evidence);
        diagnosis.advice = std::move(advice);
        diagnosis.saved = Seconds(saved);
        if (saved > 0.0 && saved < stage_time.value) diagnosis.gain = stage_time.value / (stage_time.value - saved);
    };
    // What fewer sectors could save is bounded by what the limit of the smaller traffic leaves.
    if (counters.bytes_per_sector && *counters.bytes_per_sector > 0.0 && *counters.bytes_per_sector < 16.0) {
        const double useful = *counters.bytes_per_sector / 32.0;
        add(fmt::format("{} reads memory uncoalesced", record.name),
            fmt::format("{:.1f} of the 32 bytes of a sector are used, {} of the time", *counters.bytes_per_sector,
                        render::percent(share)),
            "let neighbouring threads read neighbouring addresses", counters.duration.value * (1.0 - useful));
    }
    if (counters.spills.value_or(0.0) > 0.0) {
        add(fmt::format("{} spills registers", record.name),
            fmt::format("{} requests to local memory, {} of the time", render::plain(*counters.spills),
                        render::percent(share)),
            "smaller tiles or fewer live values a thread", 0.0);
    }
    if (counters.waves && *counters.waves > 0.0 && *counters.waves < 0.5 && share >= 0.05) {
        add(fmt::format("{} leaves most of the machine idle", record.name),
            fmt::format("its grid fills {} of the blocks that run at a time, {} of the time",
                        render::percent(*counters.waves), render::percent(share)),
            "split the work into more blocks, or fuse it with its neighbours", 0.0);
    }
}

}  // namespace roofline::analyze
