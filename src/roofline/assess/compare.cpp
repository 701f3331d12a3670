#include "roofline/assess/compare.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "roofline/assess/joined_stages.hpp"
#include "roofline/core/sources.hpp"

namespace roofline::assess {
namespace {

constexpr std::array<std::string_view, 3> by_names = {"record", "group", "stage"};
constexpr std::array<std::string_view, 5> time_names = {"best-known", "measured", "expected", "attainable", "limit"};
constexpr std::array<std::string_view, 5> change_names = {"same", "better", "worse", "appeared", "vanished"};

template <class Enum, std::size_t Count>
std::optional<Enum> find_in(const std::array<std::string_view, Count>& names, std::string_view name) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) return std::nullopt;
    return static_cast<Enum>(found - names.begin());
}

std::optional<Seconds> time_of(const Times& times, TimeKind kind) {
    switch (kind) {
        case TimeKind::best_known:
            return times.measured ? times.measured : std::optional(times.expected);
        case TimeKind::measured:
            return times.measured;
        case TimeKind::expected:
            return times.expected;
        case TimeKind::attainable:
            return times.attainable;
        case TimeKind::limit:
            return times.limit;
    }
    return std::nullopt;
}

/// Sets ratio and change of every side from the values.
void judge_row(Row& row) {
    const std::optional<double> first = row.sides.front().value;
    for (std::size_t i = 1; i < row.sides.size(); ++i) {
        Side& side = row.sides[i];
        if (!first && !side.value) continue;
        if (!first) {
            side.change = Change::appeared;
        } else if (!side.value) {
            side.change = Change::vanished;
        } else {
            if (*first > 0.0) side.ratio = *side.value / *first;
            // Nothing against nothing is the same; something against nothing has no ratio and is no news either way.
            const double ratio = side.ratio.value_or(*side.value > 0.0 ? 1.0 + 2.0 * same_within : 1.0);
            const bool same = std::fabs(ratio - 1.0) <= same_within;
            const bool up = ratio > 1.0;
            side.change = same ? Change::same : up == row.higher_is_better ? Change::better : Change::worse;
        }
    }
}

/// Names that any side binds together through `covers`, as one root each.
class Knots {
  public:
    std::size_t of(const std::string& name) {
        const auto [at, fresh] = places_.try_emplace(name, parents_.size());
        if (fresh) parents_.push_back(parents_.size());
        return root(at->second);
    }
    void tie(const std::string& a, const std::string& b) {
        const std::size_t first = of(a);
        const std::size_t second = of(b);
        parents_[std::max(first, second)] = std::min(first, second);
    }

  private:
    std::size_t root(std::size_t at) {
        while (parents_[at] != at) at = parents_[at] = parents_[parents_[at]];
        return at;
    }
    std::map<std::string, std::size_t> places_;
    std::vector<std::size_t> parents_;
};

/// What joins records: the knot of their names, or their group.
class Keys {
  public:
    Keys(const JoinedStage& stage, By by) : by_(by) {
        for (const AccountStage& side : stage.sides) {
            for (const Record& record : side.records) {
                knots_.of(record.name);
                for (const std::string& covered : record.covers) knots_.tie(record.name, covered);
            }
        }
    }
    std::size_t of(const Record& record) { return by_ == By::group ? index(record.group) : knots_.of(record.name); }

  private:
    By by_;
    Knots knots_;
};

std::string row_name(const Row& row) {
    // One name on every side that has any: that one. Otherwise the shortest list names the row.
    const std::vector<std::string>* fewest = nullptr;
    for (const Side& side : row.sides) {
        if (!side.merged.empty() && (fewest == nullptr || side.merged.size() < fewest->size())) fewest = &side.merged;
    }
    return fewest == nullptr ? "" : fmt::format("{}", fmt::join(*fewest, " + "));
}

std::vector<Row> rows_of(const JoinedStage& stage, By by, TimeKind time) {
    std::vector<Row> rows;
    if (by == By::stage) return rows;
    Keys keys(stage, by);
    std::map<std::size_t, std::size_t> place;
    const std::size_t count = stage.sides.size();
    std::vector<double> totals(count, 0.0);
    for (std::size_t i = 0; i < count; ++i) {
        for (const Record& record : stage.sides[i].records) {
            const auto value = time_of(record.times, time);
            if (!value) continue;
            const auto [at, fresh] = place.try_emplace(keys.of(record), rows.size());
            if (fresh) {
                Row& row = rows.emplace_back();
                row.sides.resize(count);
                row.group = name(record.group);
                row.unit = "s";
                if (by == By::group) row.name = row.group;
            }
            Side& side = rows[at->second].sides[i];
            side.value = side.value.value_or(0.0) + value->value;
            side.count += record.count;
            totals[i] += value->value;
            if (by == By::record && std::ranges::find(side.merged, record.name) == side.merged.end())
                side.merged.push_back(record.name);
        }
    }
    for (Row& row : rows) {
        if (by == By::record) row.name = row_name(row);
        row.counts = false;
        for (std::size_t i = 0; i < count; ++i) {
            Side& side = row.sides[i];
            row.counts = row.counts || side.value.value_or(0.0) >= least_share * totals[i];
            if (side.merged.size() == 1 && side.merged.front() == row.name) side.merged.clear();
        }
        judge_row(row);
    }
    std::ranges::stable_sort(rows, [](const Row& a, const Row& b) {
        if (a.largest_difference() != b.largest_difference()) return a.largest_difference() > b.largest_difference();
        return a.name < b.name;
    });
    return rows;
}

Row total_of(const JoinedStage& stage, TimeKind time) {
    Row row;
    row.name = stage.name;
    row.unit = "s";
    for (const AccountStage& side : stage.sides) {
        Side& entry = row.sides.emplace_back();
        if (side.name.empty()) continue;
        if (const auto value = time_of(side.times, time)) entry.value = value->value;
        entry.count = side.repetitions;
    }
    judge_row(row);
    return row;
}

/// Of what ran without a model to hold it against, attainable stands in for expected.
bool was_predicted(const Account& account) {
    return std::ranges::any_of(account.stages, [](const AccountStage& stage) {
        return !stage.times.measured || stage.times.expected != stage.times.attainable;
    });
}

/// Which times a side really gave, in the order of their names.
std::string times_used(const Account& account, TimeKind time) {
    if (time == TimeKind::expected && !was_predicted(account)) return "attainable: nothing was predicted";
    if (time != TimeKind::best_known) return std::string(name(time));
    std::set<std::string_view> used;
    for (const AccountStage& stage : account.stages) {
        for (const Record& record : stage.records) used.insert(record.times.measured ? "measured" : "expected");
        if (stage.records.empty()) used.insert(stage.times.measured ? "measured" : "expected");
    }
    return used.size() == 2 ? "measured, or expected where it was not" : used.empty() ? "" : std::string(*used.begin());
}

struct NamedFigure {
    std::string name;
    std::string unit;
    double value;
    bool higher_is_better;
};

std::vector<NamedFigure> figures_of(const Device& device) {
    std::vector<NamedFigure> figures;
    const auto add = [&](std::string path, std::string unit, const Figure* figure, bool higher_is_better = true) {
        if (figure != nullptr) figures.push_back({std::move(path), std::move(unit), figure->value, higher_is_better});
    };
    for (const Engine engine : {Engine::matrix, Engine::vector}) {
        for (const DType type : all_dtypes) {
            const auto& rate = device.rate(engine, type);
            add(fmt::format("{}.{}", name(engine), name(type)), "FLOP/s", rate ? &*rate : nullptr);
        }
    }
    for (const Level level : all_levels) {
        add(fmt::format("{}.capacity", name(level)), "B", device.capacity(level));
        add(fmt::format("{}.bandwidth", name(level)), "B/s", device.bandwidth(level));
    }
    add("multiprocessors", "", device.multiprocessors ? &*device.multiprocessors : nullptr);
    add("power", "W", device.power ? &*device.power : nullptr, false);
    for (const auto& [path, ceiling] : device.ceilings) {
        const bool latency = path.find("latency") != std::string::npos;
        const bool bytes = path.find("bandwidth") != std::string::npos || path.find("bytes") != std::string::npos;
        if (is_assumed(device, ceiling)) continue;  // another device's
        add("measured " + path, latency ? "s" : bytes ? "B/s" : "FLOP/s", &ceiling, !latency);
    }
    return figures;
}

}  // namespace

std::string_view name(By by) {
    return by_names[static_cast<std::size_t>(by)];
}
std::optional<By> find_by(std::string_view name) {
    return find_in<By>(by_names, name);
}
std::string_view name(TimeKind kind) {
    return time_names[static_cast<std::size_t>(kind)];
}
std::optional<TimeKind> find_time_kind(std::string_view name) {
    return find_in<TimeKind>(time_names, name);
}
std::string_view name(Change change) {
    return change_names[static_cast<std::size_t>(change)];
}

double Row::largest_difference() const {
    double largest = 0.0;
    const double first = sides.front().value.value_or(0.0);
    for (const Side& side : sides) largest = std::max(largest, std::fabs(side.value.value_or(0.0) - first));
    return largest;
}

std::vector<Comparison::Failure> Comparison::worse_than(double fraction) const {
    std::vector<Failure> failures;
    const auto look = [&](const std::string& stage, const Row& row) {
        for (std::size_t i = 1; i < row.sides.size(); ++i) {
            const std::optional<double> ratio = row.sides[i].ratio;
            if (!ratio || !row.counts) continue;
            const double worse = row.higher_is_better ? 1.0 - *ratio : *ratio - 1.0;
            if (worse > fraction) failures.push_back({stage, row.name, i, worse});
        }
    };
    for (const StageComparison& stage : stages) {
        if (!devices) look(stage.name, stage.total);
        for (const Row& row : stage.rows) look(stage.name, row);
    }
    std::ranges::stable_sort(failures, [](const Failure& a, const Failure& b) { return a.by > b.by; });
    return failures;
}

Result<Comparison> compare(std::span<const Account> accounts, By by, TimeKind time) {
    Comparison result;
    result.by = by;
    result.time = time;
    for (const Account& account : accounts) {
        result.titles.push_back(account.title);
        result.time_names.push_back(times_used(account, time));
        if (account.stages.empty()) return fail(fmt::format("{}: has no stages to compare", account.title));
    }
    for (const JoinedStage& stage : join_stages(accounts, result.notes)) {
        StageComparison& compared = result.stages.emplace_back();
        compared.name = stage.name;
        compared.total = total_of(stage, time);
        compared.rows = rows_of(stage, by, time);
        for (std::size_t i = 1; i < stage.sides.size(); ++i) {
            const AccountStage& a = stage.sides.front();
            const AccountStage& b = stage.sides[i];
            const auto differ = [&](double one, double other) {
                return !a.name.empty() && !b.name.empty() && one > 0.0 && other > 0.0 && one != other;
            };
            if (differ(a.batch, b.batch) || differ(a.tokens, b.tokens) || differ(a.context, b.context)) {
                result.notes.push_back(fmt::format(
                    "{}: not the same work: batch {:g}, {:g} new tokens, context {:g} in {}; {:g}, {:g}, {:g} in {}",
                    stage.name, a.batch, a.tokens, a.context, accounts.front().title, b.batch, b.tokens, b.context,
                    accounts[i].title));
            }
        }
    }
    if (time == TimeKind::measured) {
        for (std::size_t i = 0; i < accounts.size(); ++i) {
            const bool any = std::ranges::any_of(
                result.stages, [&](const StageComparison& stage) { return stage.total.sides[i].value.has_value(); });
            if (!any)
                return fail(fmt::format("{}: nothing in it was measured; --time expected compares predictions",
                                        accounts[i].title));
        }
    }
    return result;
}

Result<Comparison> compare_devices(std::span<const Device> devices) {
    Comparison result;
    result.devices = true;
    StageComparison& all = result.stages.emplace_back();
    all.total.sides.resize(devices.size());
    std::map<std::string, std::size_t> place;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        result.titles.push_back(devices[i].name);
        result.time_names.emplace_back();
        for (NamedFigure& figure : figures_of(devices[i])) {
            const auto [at, fresh] = place.try_emplace(figure.name, all.rows.size());
            if (fresh) {
                Row& row = all.rows.emplace_back();
                row.name = std::move(figure.name);
                row.unit = std::move(figure.unit);
                row.higher_is_better = figure.higher_is_better;
                row.sides.resize(devices.size());
            }
            all.rows[at->second].sides[i].value = figure.value;
        }
    }
    for (Row& row : all.rows) judge_row(row);
    return result;
}

}  // namespace roofline::assess
