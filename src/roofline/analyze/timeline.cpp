#include "roofline/analyze/timeline.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "roofline/analyze/json_scan.hpp"

namespace roofline::analyze {

namespace {

constexpr std::size_t most_streams = 0xFFFF;

}  // namespace

std::uint32_t Texts::number_of(std::string_view raw) {
    if (const auto found = numbers_.find(raw); found != numbers_.end()) return found->second;
    const auto number = static_cast<std::uint32_t>(texts_.size());
    const auto [place, fresh] = numbers_.emplace(std::string(raw), number);
    texts_.push_back(&place->first);
    return number;
}

std::uint16_t Timeline::stream_of(std::int64_t device, std::int64_t number) {
    const Stream wanted{device, number};
    if (!streams.empty() && streams[last_stream_] == wanted) return last_stream_;
    const auto known = stream_numbers_.find({device, number});
    if (known != stream_numbers_.end()) return last_stream_ = known->second;
    // No machine has as many; a hostile file shares the last.
    if (streams.size() < most_streams) {
        stream_numbers_.emplace(std::pair{device, number}, static_cast<std::uint16_t>(streams.size()));
        streams.push_back(wanted);
    }
    return last_stream_ = static_cast<std::uint16_t>(streams.size() - 1);
}

std::uint32_t Timeline::caller_of(std::uint32_t name, std::uint32_t thread) {
    const std::uint64_t key = (std::uint64_t{name} << 32U) | thread;
    const auto [place, fresh] = caller_numbers_.try_emplace(key, static_cast<std::uint32_t>(callers.size()));
    if (fresh) callers.push_back({name, thread});
    return place->second;
}

std::uint32_t Timeline::size_of(double bytes) {
    if (bytes == 0.0) return 0;
    const auto [place, fresh] = size_numbers_.try_emplace(bytes, static_cast<std::uint32_t>(sizes.size()));
    if (fresh) sizes.push_back(bytes);
    return place->second;
}

std::uint32_t Timeline::id_of(std::int64_t written) {
    constexpr std::int64_t first_large = 0xC0000000;
    if (written < 0) return none;
    if (written < first_large) return static_cast<std::uint32_t>(written);
    const auto number = static_cast<std::uint32_t>(first_large + static_cast<std::int64_t>(large_ids_.size()));
    return large_ids_.try_emplace(written, number).first->second;
}

namespace {

/// Operators of one thread nest: sorted by begin, the open ones are a stack.
void find_parents(Spool<Operation>& operations) {
    put_in_order(operations, [](const Operation& a, const Operation& b) {
        if (a.thread != b.thread) return a.thread < b.thread;
        if (a.begin != b.begin) return a.begin < b.begin;
        if (a.end != b.end) return a.end > b.end;
        // Numbers are given when an operator begins: the outer one has the smaller.
        return a.external != b.external ? a.external < b.external : a.signature < b.signature;
    });
    std::vector<std::uint32_t> open;
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
        spool_room::breathe(i);
        Operation& op = operations[i];
        while (!open.empty() &&
               (operations[open.back()].thread != op.thread || operations[open.back()].end <= op.begin))
            open.pop_back();
        op.parent = open.empty() ? none : open.back();
        open.push_back(i);
    }
}

/// The innermost operator of a thread that was open at a time.
std::uint32_t innermost(const Spool<Operation>& operations, std::uint32_t thread, std::int64_t time) {
    const auto after = std::partition_point(operations.begin(), operations.end(), [&](const Operation& op) {
        return op.thread != thread ? op.thread < thread : op.begin <= time;
    });
    if (after == operations.begin()) return none;
    auto found = static_cast<std::uint32_t>(after - operations.begin() - 1);
    while (found != none && (operations[found].thread != thread || operations[found].end < time))
        found = operations[found].thread != thread ? none : operations[found].parent;
    return found;
}

struct Numbered {
    std::uint32_t external;
    std::uint32_t place;
};

bool starts_graph(const std::string& call) {
    return call.find("GraphLaunch") != std::string::npos;
}

}  // namespace

void connect(Timeline& timeline) {
    find_parents(timeline.operations);
    put_in_order(timeline.ran, [](const DeviceEvent& a, const DeviceEvent& b) {
        if (a.begin != b.begin) return a.begin < b.begin;
        if (a.correlation != b.correlation) return a.correlation < b.correlation;
        if (a.stream != b.stream) return a.stream < b.stream;
        return a.duration != b.duration ? a.duration < b.duration : a.name < b.name;
    });
    put_in_order(timeline.calls, [](const HostCall& a, const HostCall& b) {
        return a.correlation != b.correlation ? a.correlation < b.correlation : a.begin < b.begin;
    });

    std::set<std::uint32_t> threads;  // whose operators are in the file
    Spool<Numbered> by_external;
    for (std::uint32_t i = 0; i < timeline.operations.size(); ++i) {
        spool_room::breathe(i);
        threads.insert(timeline.operations[i].thread);
        if (timeline.operations[i].external != none) by_external.push_back({timeline.operations[i].external, i});
    }
    put_in_order(by_external, [](const Numbered& a, const Numbered& b) {
        return a.external != b.external ? a.external < b.external : a.place < b.place;
    });

    std::vector<bool> graph_call;
    for (const Caller& caller : timeline.callers) graph_call.push_back(starts_graph(timeline.texts[caller.name]));

    std::int64_t time = 0;
    std::int64_t unseen = 0;  // asked for by other threads
    for (DeviceEvent& event : timeline.ran) {
        if (event.correlation != none) {
            const auto call =
                std::partition_point(timeline.calls.begin(), timeline.calls.end(),
                                     [&](const HostCall& other) { return other.correlation < event.correlation; });
            if (call != timeline.calls.end() && call->correlation == event.correlation) {
                event.call = static_cast<std::uint32_t>(call - timeline.calls.begin());
                event.in_graph = event.in_graph || graph_call[call->caller];
            }
        }
        if (const std::uint32_t external = std::exchange(event.operation, none); external != none) {
            const auto op = std::partition_point(by_external.begin(), by_external.end(),
                                                 [&](const Numbered& other) { return other.external < external; });
            if (op != by_external.end() && op->external == external) event.operation = op->place;
        }
        if (event.operation == none && event.call != none) {
            const HostCall& call = timeline.calls[event.call];
            const std::uint32_t thread = timeline.callers[call.caller].thread;
            event.operation = innermost(timeline.operations, thread, call.begin);
            if (!event.in_graph && !threads.empty() && !threads.contains(thread)) unseen += event.duration;
        }
        time += event.duration;
    }
    if (10 * unseen > time)
        timeline.notes.push_back(fmt::format(
            "{:.0f}% of the time on the device was asked for by threads whose operators are not in the file: PyTorch "
            "records those of the thread that starts the profiler (docs/tracing.md)",
            100.0 * static_cast<double>(unseen) / static_cast<double>(time)));
}

}  // namespace roofline::analyze
