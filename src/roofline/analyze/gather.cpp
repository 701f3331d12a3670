#include "roofline/analyze/gather.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "roofline/analyze/json_scan.hpp"

namespace roofline::analyze {

Work work_of(const Effort& effort, const Device& device, bool device_known) {
    Work work;
    work.engine = effort.engine;
    work.type = effort.type;
    work.flops = Flops(effort.flops);
    if (device_known && effort.engine == Engine::matrix) {
        if (const auto choice = choose_engine(device, effort.type)) {
            work.engine = choice->engine;
            work.type = choice->type;
        }
    }
    // F34: activations that fit on the chip may never leave it, so a limit must not charge memory for them.
    const Figure* capacity = device.capacity(Level::cache);
    const double room = !device_known         ? 0.0
                        : capacity == nullptr ? std::numeric_limits<double>::infinity()
                                              : capacity->value;
    const bool on_chip = effort.activations <= room;
    work.at(Level::memory) = Bytes(effort.weights + effort.kv + (on_chip ? 0.0 : effort.activations));
    work.at(Level::cache) = Bytes(on_chip ? effort.activations : 0.0);
    work.at(Level::peer) = Bytes(effort.link);
    return work;
}

std::string short_kernel_name(std::string_view name) {
    std::string text;
    int depth = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
        const char c = name[i];
        if (c == '<') ++depth;
        if (depth == 0) {
            if (c == '(' && !name.substr(i).starts_with("(anonymous")) break;
            text += c;
        }
        if (c == '>' && depth > 0) --depth;
    }
    for (const std::string_view noise :
         {"void ", "at::native::", "(anonymous namespace)::", "cutlass::", "cublasLt::"}) {
        for (std::size_t at = text.find(noise); at != std::string::npos; at = text.find(noise))
            text.erase(at, noise.size());
    }
    while (text.starts_with("::")) text.erase(0, 2);  // Nsight Systems writes <unnamed>:: before them
    return text.empty() ? std::string(name.substr(0, 60)) : text;
}

std::string record_name(const Timeline& timeline, const Items& items, const Steps& steps, const Item& item) {
    if (item.ran == Ran::copy || item.ran == Ran::fill) {
        const std::string name =
            item.last == none ? "copy" : readable(timeline.texts[timeline.ran[items.first_event(item)].name]);
        return (item.ran == Ran::fill ? "fill: " : "copy: ") + name;
    }
    if (item.role != none) return steps.roles[item.role];
    if (item.signature != none && !item.in_graph) return item_name(timeline, items, item, true);
    return short_kernel_name(item_name(timeline, items, item, false));
}

namespace {

struct Sum {
    Record record;
    double largest_flops = -1.0;
    std::int64_t time = 0;
    double unexplained = 0.0;  // items in it without an effort
    double explained = 0.0;
};

/// One stage while it is summed. Items by the million share a few hundred names: a number leads to the name, and is
/// looked up in its place.
class StageSums {
  public:
    template <class Name>
    Sum& at(std::uint64_t key, const Name& name) {
        if (const auto known = by_key_.find(key); known != by_key_.end()) return sums_[known->second];
        const auto [place, fresh] = places_.try_emplace(name(), sums_.size());
        if (fresh) {
            sums_.emplace_back();
            sums_.back().record.name = place->first;
        }
        by_key_.emplace(key, place->second);
        return sums_[place->second];
    }
    std::vector<Sum>& all() { return sums_; }

  private:
    std::unordered_map<std::uint64_t, std::size_t> by_key_;
    std::unordered_map<std::string, std::size_t> places_;
    std::vector<Sum> sums_;
};

class Gathering {
  public:
    Gathering(const Timeline& timeline, const Items& items, const Steps& steps, const Device& device, bool known, By by)
        : timeline_(timeline), items_(items), steps_(steps), device_(device), known_(known), by_(by) {}

    std::vector<AccountStage> run() {
        std::vector<StageSums> sums(steps_.stages.size() + 1);
        for (const Item& item : items_.all) {
            const std::size_t stage = item.step == none ? steps_.stages.size() : steps_.all[item.step].stage;
            add(sums[stage], item);
        }
        std::vector<AccountStage> result;
        for (std::size_t i = 0; i < sums.size(); ++i) {
            const bool outside = i == steps_.stages.size();
            if (outside && sums[i].all().empty()) continue;
            AccountStage stage;
            if (outside) {
                stage.name = steps_.stages.empty() ? "all" : "outside steps";
            } else {
                const Stage& from = steps_.stages[i];
                stage.name = from.name;
                stage.batch = from.batch;
                stage.tokens = from.tokens;
                stage.context = from.context;
                stage.produced = from.kind == "decode" ? from.batch : from.tokens;
                stage.repetitions = static_cast<double>(from.steps.size());
            }
            for (Sum& sum : sums[i].all()) stage.records.push_back(finish(sum, stage.repetitions));
            sort_by_time(stage.records);
            result.push_back(std::move(stage));
        }
        return result;
    }

  private:
    /// Shapes and times are those of one call; roles and kernels may hold several signatures.
    void add(StageSums& sums, const Item& item) {
        if (by_ == By::kernel && item.ran == Ran::kernel && item.last != none) {
            // Work follows time where one operator took several kernels.
            for (const std::uint32_t number : items_.events(item)) {
                const DeviceEvent& event = timeline_.ran[number];
                const double share = item.time > 0
                                         ? static_cast<double>(event.duration) / static_cast<double>(item.time)
                                         : 1.0 / static_cast<double>(item.count);
                const auto name = [&] { return short_kernel_name(readable(timeline_.texts[event.name])); };
                count(sums.at(event.name, name), item, event.duration, share, 1.0);
            }
            return;
        }
        const auto name = [&] {
            return by_ == By::operation ? operator_name(item) : record_name(timeline_, items_, steps_, item);
        };
        count(sums.at(key_of(item), name), item, item.time, 1.0, 1.0);
    }

    /// Of what gives an item its name: the same key, the same name.
    std::uint64_t key_of(const Item& item) const {
        const auto key = [](std::uint64_t sort, std::uint32_t number) { return (sort << 32U) | number; };
        const std::uint32_t text = item.last == none ? none : timeline_.ran[items_.first_event(item)].name;
        if (item.ran != Ran::kernel) return key(item.ran == Ran::fill ? 1 : 2, text);
        const bool called = item.signature != none && !item.in_graph;
        if (by_ == By::operation && called) return key(3, item.signature);
        if (item.role != none) return key(4, item.role);
        return called ? key(3, item.signature) : key(5, text);
    }

    std::string operator_name(const Item& item) const {
        if (item.ran != Ran::kernel || item.signature == none || item.in_graph)
            return record_name(timeline_, items_, steps_, item);
        return item_name(timeline_, items_, item, true);
    }

    void count(Sum& sum, const Item& item, std::int64_t time, double share, double times) {
        Record& record = sum.record;
        if (sum.record.count == 1.0 && sum.time == 0 && sum.explained == 0.0 && sum.unexplained == 0.0)
            record.count = 0.0;
        record.count += times;
        record.origin = Origin::traced;
        sum.time += time;
        if (item.role != none) record.group = group_of(steps_.roles[item.role]);
        const Effort* effort = items_.effort(item);
        if (item.ran != Ran::kernel) {
            record.kind = Kind::copy;
            sum.explained += 1.0;
            count_copy(record, item);
            return;
        }
        if (effort == nullptr) {
            sum.unexplained += share;
            return;
        }
        sum.explained += share;
        if (effort->kind == Kind::collective) record.group = Group::communication;
        const Record& one = priced(item.effort);
        const Work& work = one.work;
        if (effort->flops > sum.largest_flops) {
            sum.largest_flops = effort->flops;
            record.kind = effort->kind;
            record.work.engine = work.engine;
            record.work.type = work.type;
        }
        record.work.flops += work.flops * share;
        for (const Level level : all_levels) record.work.at(level) += work.at(level) * share;
        record.weights += Bytes(effort->weights * share);
        record.kv += Bytes(effort->kv * share);
        // Held against the roof call by call: a sum would hide small calls behind large ones.
        record.times.limit += one.times.limit * share;
        record.times.attainable += one.times.attainable * share;
    }

    /// The work of one call and its times under the roofs: calls by the million share a few hundred of them.
    const Record& priced(std::uint32_t effort) {
        if (priced_.size() < items_.efforts.size()) priced_.resize(items_.efforts.size());
        auto& one = priced_[effort];
        if (!one) {
            one.emplace();
            one->work = work_of(items_.efforts[effort], device_, known_);
            hold_against(device_, *one);
        }
        return *one;
    }

    void count_copy(Record& record, const Item& item) const {
        for (const std::uint32_t event : items_.events(item)) {
            const DeviceEvent& ran = timeline_.ran[event];
            const double bytes = timeline_.bytes(ran);
            const std::string& name = timeline_.texts[ran.name];
            Work work;
            const bool host = name.find("HtoD") != std::string::npos || name.find("DtoH") != std::string::npos;
            if (host) {
                work.at(Level::host) = Bytes(bytes);
            } else {
                work.at(Level::memory) = Bytes(ran.ran == Ran::fill ? bytes : 2.0 * bytes);
            }
            Record one;
            one.work = work;
            hold_against(device_, one);
            for (const Level level : all_levels) record.work.at(level) += work.at(level);
            record.times.limit += one.times.limit;
            record.times.attainable += one.times.attainable;
        }
    }

    static Record finish(Sum& sum, double repetitions) {
        Record record = std::move(sum.record);
        if (sum.explained == 0.0) record.kind = Kind::unattributed;
        if (record.name == "layers.attention.core" && sum.explained > 0.0) record.kind = Kind::attention;
        record.count /= repetitions;
        record.work.flops = record.work.flops / repetitions;
        for (const Level level : all_levels) record.work.at(level) = record.work.at(level) / repetitions;
        record.weights = record.weights / repetitions;
        record.kv = record.kv / repetitions;
        record.times.limit = record.times.limit / repetitions;
        record.times.attainable = record.times.attainable / repetitions;
        record.times.expected = record.times.expected_low = record.times.expected_high = record.times.attainable;
        record.times.measured = Seconds(static_cast<double>(sum.time) * 1e-9 / repetitions);
        return record;
    }

    static void sort_by_time(std::vector<Record>& records) {
        std::stable_sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
            const double first = a.times.measured->value;
            const double second = b.times.measured->value;
            return first != second ? first > second : a.name < b.name;
        });
    }

    const Timeline& timeline_;
    const Items& items_;
    const Steps& steps_;
    const Device& device_;
    bool known_;
    By by_;
    std::vector<std::optional<Record>> priced_;  // by effort
};

}  // namespace

std::vector<AccountStage> gather(const Timeline& timeline, const Items& items, const Steps& steps, const Device& device,
                                 bool device_known, By by) {
    return Gathering(timeline, items, steps, device, device_known, by).run();
}

}  // namespace roofline::analyze
