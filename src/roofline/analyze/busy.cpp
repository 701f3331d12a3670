#include "roofline/analyze/busy.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "roofline/analyze/structure.hpp"

namespace roofline::analyze {
namespace {

Seconds seconds(std::int64_t nanoseconds) {
    return Seconds(static_cast<double>(nanoseconds) * 1e-9);
}

struct Edge {
    std::int64_t time;
    std::size_t sort;
    int change;
};

/// Walks over the edges and gives every stretch of time with how many of each sort run in it.
template <std::size_t Sorts, class Visit>
void sweep(std::vector<Edge>& edges, Span whole, const Visit& visit) {
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.time < b.time; });
    std::array<int, Sorts> running{};
    std::int64_t now = whole.begin;
    for (const Edge& edge : edges) {
        const std::int64_t time = std::clamp(edge.time, whole.begin, whole.end);
        if (time > now) {
            visit(now, time, running);
            now = time;
        }
        running[edge.sort] += edge.change;
    }
    if (whole.end > now) visit(now, whole.end, running);
}

}  // namespace

Span span_of(const Timeline& timeline, const Items& items) {
    Span span;
    bool first = true;
    const auto add = [&](std::int64_t begin, std::int64_t end) {
        span.begin = first ? begin : std::min(span.begin, begin);
        span.end = first ? end : std::max(span.end, end);
        first = false;
    };
    for (const DeviceEvent& event : timeline.ran) add(event.begin, event.end());
    if (timeline.host_runs_operators) {
        for (const Item& item : items.all) add(item.begin, item.end);
    }
    return span;
}

std::string stream_name(const Timeline& timeline, std::uint32_t stream) {
    // Processors have no streams.
    if (stream >= timeline.streams.size()) return "host";
    return fmt::format("device {} stream {}", timeline.streams[stream].device, timeline.streams[stream].number);
}

std::vector<StreamTime> stream_times(const Timeline& timeline, const Items& items, Span whole) {
    std::vector<StreamTime> result;
    const auto measure = [&](std::vector<Edge>& edges, std::string name, double kernels) {
        std::int64_t attributed = 0;
        std::int64_t unattributed = 0;
        std::int64_t idle = 0;
        sweep<2>(edges, whole, [&](std::int64_t begin, std::int64_t end, const std::array<int, 2>& running) {
            (running[0] > 0 ? attributed : running[1] > 0 ? unattributed : idle) += end - begin;
        });
        result.push_back({std::move(name), seconds(whole.end - whole.begin), seconds(attributed), seconds(unattributed),
                          seconds(idle), kernels});
    };
    if (timeline.host_runs_operators) {
        std::vector<Edge> edges;
        for (const Item& item : items.all) {
            const std::size_t sort = item.effort != none ? 0 : 1;
            edges.push_back({item.begin, sort, 1});
            edges.push_back({item.end, sort, -1});
        }
        measure(edges, "host", static_cast<double>(items.all.size()));
        return result;
    }
    std::vector<std::vector<Edge>> edges(timeline.streams.size());
    std::vector<double> kernels(timeline.streams.size());
    for (std::size_t i = 0; i < timeline.ran.size(); ++i) {
        const DeviceEvent& event = timeline.ran[i];
        const Item& item = items.all[items.item_of[i]];
        const std::size_t sort = item.effort != none || event.ran != Ran::kernel ? 0 : 1;
        edges[event.stream].push_back({event.begin, sort, 1});
        edges[event.stream].push_back({event.end(), sort, -1});
        kernels[event.stream] += event.ran == Ran::kernel ? 1.0 : 0.0;
    }
    for (std::size_t i = 0; i < timeline.streams.size(); ++i) {
        measure(edges[i], stream_name(timeline, static_cast<std::uint32_t>(i)), kernels[i]);
    }
    return result;
}

namespace {

/// Longest wait for a launch that still counts as the host being busy with launching; longer ones are pauses.
constexpr std::int64_t longest_launch = 1'000'000;

/// Why nothing ran before an event: the host had not asked for it yet, and had just been busy asking for the one before
/// (launch) or did something else for long (host). Neither: it was asked for in time.
void explain_gap(const Timeline& timeline, const DeviceEvent& next, std::int64_t begin, std::int64_t end,
                 WhereTimeWent& went) {
    if (next.call == none) return;
    if (timeline.calls[next.call].end <= begin) return;
    (end - begin <= longest_launch ? went.idle_launch : went.idle_host) += seconds(end - begin);
}

}  // namespace

std::vector<WhereTimeWent> where_time_went(const Timeline& timeline, const Items& items, const std::vector<Part>& parts,
                                           std::size_t groups) {
    enum : std::size_t { computing, communicating, copying };
    std::vector<WhereTimeWent> result(groups);
    std::vector<signed char> is_collective(timeline.texts.size(), -1);
    std::vector<Edge> edges;
    edges.reserve(2 * timeline.ran.size());
    for (std::size_t i = 0; i < timeline.ran.size(); ++i) {
        const DeviceEvent& event = timeline.ran[i];
        const Effort* effort = items.effort(items.all[items.item_of[i]]);
        signed char& by_name = is_collective[event.name];
        if (by_name < 0) by_name = sort_of_kernel(timeline.texts[event.name]) == Piece::Sort::collective ? 1 : 0;
        std::size_t sort = event.ran == Ran::kernel ? computing : copying;
        if (by_name == 1 || (effort != nullptr && effort->kind == Kind::collective)) sort = communicating;
        edges.push_back({event.begin, sort, 1});
        edges.push_back({event.end(), sort, -1});
    }
    if (timeline.host_runs_operators) {
        for (const Item& item : items.all) {
            edges.push_back({item.begin, computing, 1});
            edges.push_back({item.end, computing, -1});
        }
    }
    for (const Part& part : parts) result[part.group].wall += seconds(part.span.end - part.span.begin);

    std::size_t first = 0;
    const auto count = [&](std::int64_t begin, std::int64_t end, const std::array<int, 3>& running) {
        while (first < parts.size() && parts[first].span.end <= begin) ++first;
        for (std::size_t i = first; i < parts.size() && parts[i].span.begin < end; ++i) {
            const std::int64_t from = std::max(begin, parts[i].span.begin);
            const std::int64_t to = std::min(end, parts[i].span.end);
            if (to <= from) continue;
            WhereTimeWent& went = result[parts[i].group];
            const Seconds time = seconds(to - from);
            if (running[computing] > 0) {
                went.computing += time;
                if (running[communicating] > 0) went.hidden_communication += time;
            } else if (running[communicating] > 0) {
                went.communicating += time;
            } else if (running[copying] > 0) {
                went.copying += time;
            } else {
                went.idle += time;
                const auto next = std::partition_point(timeline.ran.begin(), timeline.ran.end(),
                                                       [&](const DeviceEvent& event) { return event.begin < end; });
                if (next != timeline.ran.end()) explain_gap(timeline, *next, from, to, went);
            }
        }
    };
    sweep<3>(edges, span_of(timeline, items), count);
    return result;
}

}  // namespace roofline::analyze
