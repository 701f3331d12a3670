#include "roofline/analyze/timeline.hpp"

#include <algorithm>
#include <numeric>

#include "roofline/analyze/json_scan.hpp"

namespace roofline::analyze {

std::uint32_t Texts::number_of(std::string_view raw) {
    if (const auto found = numbers_.find(raw); found != numbers_.end()) return found->second;
    const auto number = static_cast<std::uint32_t>(texts_.size());
    const auto [place, fresh] = numbers_.emplace(std::string(raw), number);
    texts_.push_back(&place->first);
    return number;
}

std::uint32_t Timeline::stream_of(std::int64_t device, std::int64_t number) {
    const Stream wanted{device, number};
    for (std::size_t i = streams.size(); i-- > 0;) {
        if (streams[i] == wanted) return static_cast<std::uint32_t>(i);
    }
    streams.push_back(wanted);
    return static_cast<std::uint32_t>(streams.size() - 1);
}

namespace {

/// Operators of one thread nest: sorted by begin, the open ones are a stack.
void find_parents(std::vector<Operation>& operations) {
    std::stable_sort(operations.begin(), operations.end(), [](const Operation& a, const Operation& b) {
        if (a.thread != b.thread) return a.thread < b.thread;
        if (a.begin != b.begin) return a.begin < b.begin;
        return a.end > b.end;
    });
    std::vector<std::uint32_t> open;
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
        Operation& op = operations[i];
        while (!open.empty() &&
               (operations[open.back()].thread != op.thread || operations[open.back()].end <= op.begin))
            open.pop_back();
        op.parent = open.empty() ? none : open.back();
        open.push_back(i);
    }
}

/// The innermost operator of a thread that was open at a time.
std::uint32_t innermost(const std::vector<Operation>& operations, std::uint32_t thread, std::int64_t time) {
    const auto after = std::partition_point(operations.begin(), operations.end(), [&](const Operation& op) {
        return op.thread != thread ? op.thread < thread : op.begin <= time;
    });
    if (after == operations.begin()) return none;
    auto found = static_cast<std::uint32_t>(after - operations.begin() - 1);
    while (found != none && (operations[found].thread != thread || operations[found].end < time))
        found = operations[found].thread != thread ? none : operations[found].parent;
    return found;
}

bool starts_graph(const std::string& call) {
    return call.find("GraphLaunch") != std::string::npos;
}

}  // namespace

void connect(Timeline& timeline) {
    find_parents(timeline.operations);
    std::stable_sort(timeline.ran.begin(), timeline.ran.end(),
                     [](const DeviceEvent& a, const DeviceEvent& b) { return a.begin < b.begin; });
    std::stable_sort(timeline.calls.begin(), timeline.calls.end(),
                     [](const HostCall& a, const HostCall& b) { return a.correlation < b.correlation; });

    std::vector<std::pair<std::int64_t, std::uint32_t>> by_external;
    for (std::uint32_t i = 0; i < timeline.operations.size(); ++i) {
        if (timeline.operations[i].external >= 0) by_external.emplace_back(timeline.operations[i].external, i);
    }
    std::sort(by_external.begin(), by_external.end());

    std::vector<bool> graph_call(timeline.texts.size());
    for (std::uint32_t i = 0; i < timeline.texts.size(); ++i) graph_call[i] = starts_graph(timeline.texts[i]);

    for (DeviceEvent& event : timeline.ran) {
        if (event.correlation >= 0) {
            const auto call =
                std::partition_point(timeline.calls.begin(), timeline.calls.end(),
                                     [&](const HostCall& other) { return other.correlation < event.correlation; });
            if (call != timeline.calls.end() && call->correlation == event.correlation) {
                event.call = static_cast<std::uint32_t>(call - timeline.calls.begin());
                event.in_graph = event.in_graph || graph_call[call->name];
            }
        }
        if (event.external >= 0) {
            const auto op = std::lower_bound(by_external.begin(), by_external.end(),
                                             std::pair<std::int64_t, std::uint32_t>(event.external, 0));
            if (op != by_external.end() && op->first == event.external) event.operation = op->second;
        }
        if (event.operation == none && event.call != none) {
            const HostCall& call = timeline.calls[event.call];
            event.operation = innermost(timeline.operations, call.thread, call.begin);
        }
    }
}

}  // namespace roofline::analyze
