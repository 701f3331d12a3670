#include "roofline/analyze/busy.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "roofline/analyze/structure.hpp"

namespace roofline::analyze {
namespace {

Seconds seconds(std::int64_t nanoseconds) {
    return Seconds(static_cast<double>(nanoseconds) * 1e-9);
}

/// Takes what ran in the order it began and gives every stretch of time with how many of each sort ran in it. Holds
/// only what has not ended yet.
template <std::size_t Sorts, class Visit>
class Sweep {
  public:
    Sweep(Span whole, Visit visit) : whole_(whole), visit_(std::move(visit)), now_(whole.begin) {}

    void add(std::int64_t begin, std::int64_t end, std::size_t sort) {
        until(begin);
        ends_.emplace(end, sort);
        ++running_[sort];
    }
    void finish() {
        until(whole_.end);
        ends_ = {};
    }

  private:
    using End = std::pair<std::int64_t, std::size_t>;

    void until(std::int64_t time) {
        while (!ends_.empty() && ends_.top().first <= time) {
            pass(ends_.top().first);
            --running_[ends_.top().second];
            ends_.pop();
        }
        pass(time);
    }
    void pass(std::int64_t time) {
        time = std::clamp(time, whole_.begin, whole_.end);
        if (time <= now_) return;
        visit_(now_, time, running_);
        now_ = time;
    }

    Span whole_;
    Visit visit_;
    std::int64_t now_;
    std::array<int, Sorts> running_{};
    std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

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
    struct Parts {
        std::int64_t attributed = 0;
        std::int64_t unattributed = 0;
        std::int64_t idle = 0;
        double kernels = 0.0;
    };
    const std::size_t streams = timeline.host_runs_operators ? 1 : timeline.streams.size();
    std::vector<Parts> parts(streams);
    const auto counting = [&](std::size_t stream) {
        return [&part = parts[stream]](std::int64_t begin, std::int64_t end, const std::array<int, 2>& running) {
            (running[0] > 0 ? part.attributed : running[1] > 0 ? part.unattributed : part.idle) += end - begin;
        };
    };
    std::deque<Sweep<2, decltype(counting(0))>> sweeps;
    for (std::size_t i = 0; i < streams; ++i) sweeps.emplace_back(whole, counting(i));
    if (timeline.host_runs_operators) {
        for (const Item& item : items.all) sweeps[0].add(item.begin, item.end, item.effort != none ? 0 : 1);
        parts[0].kernels = static_cast<double>(items.all.size());
    } else {
        for (std::size_t i = 0; i < timeline.ran.size(); ++i) {
            spool_room::breathe(i);
            const DeviceEvent& event = timeline.ran[i];
            const Item& item = items.all[items.item_of[i]];
            const std::size_t sort = item.effort != none || event.ran != Ran::kernel ? 0 : 1;
            sweeps[event.stream].add(event.begin, event.end(), sort);
            parts[event.stream].kernels += event.ran == Ran::kernel ? 1.0 : 0.0;
        }
    }
    std::vector<StreamTime> result;
    for (std::size_t i = 0; i < streams; ++i) {
        sweeps[i].finish();
        result.push_back({timeline.host_runs_operators ? "host" : stream_name(timeline, static_cast<std::uint32_t>(i)),
                          seconds(whole.end - whole.begin), seconds(parts[i].attributed),
                          seconds(parts[i].unattributed), seconds(parts[i].idle), parts[i].kernels});
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
    for (const Part& part : parts) result[part.group].wall += seconds(part.span.end - part.span.begin);

    std::size_t first = 0;
    const DeviceEvent* next = nullptr;  // what begins when the stretch ends
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
                if (next != nullptr) explain_gap(timeline, *next, from, to, went);
            }
        }
    };
    Sweep<3, decltype(count)> sweep(span_of(timeline, items), count);
    std::vector<signed char> is_collective(timeline.texts.size(), -1);
    for (std::size_t i = 0; i < timeline.ran.size(); ++i) {
        spool_room::breathe(i);
        const DeviceEvent& event = timeline.ran[i];
        const Effort* effort = items.effort(items.all[items.item_of[i]]);
        signed char& by_name = is_collective[event.name];
        if (by_name < 0) by_name = sort_of_kernel(timeline.texts[event.name]) == Piece::Sort::collective ? 1 : 0;
        std::size_t sort = event.ran == Ran::kernel ? computing : copying;
        if (by_name == 1 || (effort != nullptr && effort->kind == Kind::collective)) sort = communicating;
        next = &event;
        sweep.add(event.begin, event.end(), sort);
    }
    next = nullptr;
    if (timeline.host_runs_operators) {
        for (const Item& item : items.all) {
            const Effort* effort = items.effort(item);
            const bool talks = effort != nullptr && effort->kind == Kind::collective;
            sweep.add(item.begin, item.end, talks ? communicating : computing);
        }
    }
    sweep.finish();
    return result;
}

}  // namespace roofline::analyze
