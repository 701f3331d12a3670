#include "roofline/assess/joined_stages.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace roofline::assess {
namespace {

/// "decode" of "decode 2"; the whole name where it does not end in a number.
std::string base_name(const std::string& name) {
    const std::size_t last = name.find_last_not_of("0123456789");
    if (last == std::string::npos || last + 1 == name.size() || name[last] != ' ') return name;
    return name.substr(0, name.find_last_not_of(' ', last) + 1);
}

void scale(Times& times, double factor) {
    for (Seconds* part :
         {&times.limit, &times.attainable, &times.expected, &times.expected_low, &times.expected_high}) {
        *part = *part * factor;
    }
    if (times.measured) times.measured = *times.measured * factor;
}

void add(Times& sum, const Times& part) {
    sum.limit += part.limit;
    sum.attainable += part.attainable;
    sum.expected += part.expected;
    sum.expected_low += part.expected_low;
    sum.expected_high += part.expected_high;
    if (part.measured) sum.measured = sum.measured.value_or(Seconds{}) + *part.measured;
}

/// The weighted sum of several stages, records of one name and place in their group together.
AccountStage fold(const std::vector<const AccountStage*>& stages, const std::vector<double>& weights,
                  std::string name) {
    AccountStage result = *stages.front();
    result.name = std::move(name);
    result.times = {};
    result.records.clear();
    std::map<std::pair<std::string, Group>, std::size_t> place;
    for (std::size_t i = 0; i < stages.size(); ++i) {
        Times times = stages[i]->times;
        scale(times, weights[i]);
        add(result.times, times);
        for (Record record : stages[i]->records) {
            scale(record.times, weights[i]);
            record.count *= weights[i];
            const auto [at, fresh] = place.try_emplace({record.name, record.group}, result.records.size());
            if (fresh) {
                result.records.push_back(std::move(record));
                continue;
            }
            Record& known = result.records[at->second];
            known.count += record.count;
            add(known.times, record.times);
            for (std::string& covered : record.covers) {
                if (std::ranges::find(known.covers, covered) == known.covers.end())
                    known.covers.push_back(std::move(covered));
            }
        }
    }
    return result;
}

std::set<std::string> full_names(const Account& account, const std::string& base) {
    std::set<std::string> names;
    for (const AccountStage& stage : account.stages) {
        if (base_name(stage.name) == base) names.insert(stage.name);
    }
    return names;
}

bool only_all(const Account& account) {
    return account.stages.size() == 1 && account.stages.front().name == "all";
}

const AccountStage* find_stage(const Account& account, const std::string& name) {
    const auto found = std::ranges::find(account.stages, name, &AccountStage::name);
    return found == account.stages.end() ? nullptr : &*found;
}

AccountStage mean_of(const Account& account, const std::string& base, std::vector<std::string>& notes) {
    std::vector<const AccountStage*> stages;
    for (const AccountStage& stage : account.stages) {
        if (base_name(stage.name) == base) stages.push_back(&stage);
    }
    if (stages.empty()) return {};
    double steps = 0.0;
    for (const AccountStage* stage : stages) steps += stage->repetitions;
    std::vector<double> weights;
    for (const AccountStage* stage : stages)
        weights.push_back(steps > 0.0 ? stage->repetitions / steps : 1.0 / static_cast<double>(stages.size()));
    if (stages.size() > 1)
        notes.push_back(fmt::format("{}: {} is the mean of {} steps", account.title, base, stages.size()));
    return fold(stages, weights, base);
}

AccountStage sum_of(const Account& account, std::vector<std::string>& notes) {
    if (only_all(account) || account.stages.empty())
        return account.stages.empty() ? AccountStage{} : account.stages.front();
    std::vector<const AccountStage*> stages;
    std::vector<double> weights;
    for (const AccountStage& stage : account.stages) {
        stages.push_back(&stage);
        weights.push_back(stage.repetitions > 0.0 ? stage.repetitions : 1.0);
    }
    notes.push_back(
        fmt::format("{}: its {} stages are added up, each as often as it ran, because another side has none",
                    account.title, stages.size()));
    return fold(stages, weights, "all");
}

}  // namespace

std::vector<JoinedStage> join_stages(std::span<const Account> accounts, std::vector<std::string>& notes) {
    std::vector<JoinedStage> result;
    if (std::ranges::any_of(accounts, only_all)) {
        JoinedStage& whole = result.emplace_back();
        whole.name = "all";
        for (const Account& account : accounts) whole.sides.push_back(sum_of(account, notes));
        return result;
    }
    std::set<std::string> done;
    for (const Account& of : accounts) {
        for (const AccountStage& stage : of.stages) {
            const std::string base = base_name(stage.name);
            if (!done.insert(base).second) continue;
            // Alike wherever they are: joined one by one. Otherwise the mean of each side's.
            std::set<std::string> names;
            bool alike = true;
            for (const Account& account : accounts) {
                const std::set<std::string> own = full_names(account, base);
                if (own.empty()) continue;
                if (names.empty()) names = own;
                alike = alike && names == own;
            }
            if (alike) {
                for (const AccountStage& each : of.stages) {
                    if (!names.erase(each.name)) continue;
                    JoinedStage& joined = result.emplace_back();
                    joined.name = each.name;
                    for (const Account& account : accounts) {
                        const AccountStage* found = find_stage(account, each.name);
                        joined.sides.push_back(found != nullptr ? *found : AccountStage{});
                    }
                }
            } else {
                JoinedStage& joined = result.emplace_back();
                joined.name = base;
                for (const Account& account : accounts) joined.sides.push_back(mean_of(account, base, notes));
            }
        }
    }
    return result;
}

}  // namespace roofline::assess
