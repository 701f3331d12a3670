#include "roofline/render/chart/spots.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "roofline/render/numbers.hpp"

namespace roofline::render::chart {
namespace {

/// What some machine might do; reports come from anywhere.
bool drawable(double value) {
    return value > 1e-15 && value < 1e30;
}

}  // namespace

Seconds shown_time(const Times& times) {
    if (times.measured) return *times.measured;
    return times.expected.value > 0.0 ? times.expected : times.limit;
}

bool has_expected(const Times& times) {
    return times.expected.value > 0.0 && !(times.measured && times.expected == times.attainable);
}

bool has_measured(std::span<const Account> accounts) {
    for (const Account& account : accounts) {
        for (const AccountStage& stage : account.stages) {
            for (const Record& record : stage.records) {
                if (record.times.measured) return true;
            }
        }
    }
    return false;
}

Spots spots_of(std::span<const Account> accounts) {
    Spots found;
    double all = 0.0;
    for (std::size_t a = 0; a < accounts.size(); ++a) {
        const Roofs roofs = limit_roofs(accounts[a].device);
        for (std::size_t s = 0; s < accounts[a].stages.size(); ++s) {
            const AccountStage& stage = accounts[a].stages[s];
            double total = 0.0;
            for (const Record& record : stage.records) total += shown_time(record.times).value;
            all += total;
            for (const Record& record : stage.records) {
                const double seconds = shown_time(record.times).value;
                const double memory = record.work.at(Level::memory).value;
                if (!(record.work.flops.value > 0.0)) {
                    ++found.unseen.without_flops;
                    found.unseen.without_flops_share += seconds;
                } else if (!(memory > 0.0)) {
                    ++found.unseen.on_chip;
                    found.unseen.on_chip_share += seconds;
                } else if (!drawable(record.work.flops.value / memory) ||
                           !drawable(record.work.flops.value / seconds)) {
                    ++found.unseen.beyond;
                } else {
                    found.spots.push_back({a, s, &record, &stage, record.work.flops.value / memory,
                                           record.work.flops.value / seconds, seconds,
                                           total > 0.0 ? seconds / total : 0.0, time_under(record.work, roofs).bound});
                }
            }
        }
    }
    if (all > 0.0) {
        found.unseen.without_flops_share /= all;
        found.unseen.on_chip_share /= all;
    }
    return found;
}

std::vector<Spot> sums_of(std::span<const Account> accounts) {
    std::vector<Spot> sums;
    for (std::size_t a = 0; a < accounts.size(); ++a) {
        for (std::size_t s = 0; s < accounts[a].stages.size(); ++s) {
            const AccountStage& stage = accounts[a].stages[s];
            if (stage.records.size() < 2) continue;  // one operator is its own sum
            double flops = 0.0;
            double memory = 0.0;
            double seconds = 0.0;
            for (const Record& record : stage.records) {
                flops += record.work.flops.value;
                memory += record.work.at(Level::memory).value;
                seconds += shown_time(record.times).value;
            }
            if (flops > 0.0 && memory > 0.0 && drawable(flops / memory) && drawable(flops / seconds))
                sums.push_back({a, s, nullptr, &stage, flops / memory, flops / seconds, seconds, 1.0, Bound::memory});
        }
    }
    return sums;
}

namespace {

/// The name of an operator without what says which layers it is of ("layers.", "layers[moe]."), and that.
struct NameParts {
    std::string_view own;
    std::string_view kind;  // "moe"
};

NameParts parts_of(std::string_view name) {
    const std::size_t dot = name.find('.');
    if (!name.starts_with("layers") || dot == std::string_view::npos || dot + 1 == name.size()) return {name, {}};
    const std::size_t open = name.find('[');
    if (open > dot) return {name.substr(dot + 1), {}};
    return {name.substr(dot + 1), name.substr(open + 1, name.find(']') - open - 1)};
}

}  // namespace

std::string short_name(const Record& record, const AccountStage& stage) {
    const NameParts parts = parts_of(record.name);
    if (parts.kind.empty()) return std::string(parts.own);
    const auto alike = std::ranges::count_if(
        stage.records, [&](const Record& other) { return parts_of(other.name).own == parts.own; });
    return alike < 2 ? std::string(parts.own) : fmt::format("{}, {}", parts.own, parts.kind);
}

namespace {

/// What `bench` writes behind the name of a stage where it ran several: "decode int8".
std::string_view number_type(const AccountStage& stage) {
    const std::size_t blank = stage.name.rfind(' ');
    if (blank == std::string::npos) return {};
    const std::string_view last = std::string_view(stage.name).substr(blank + 1);
    return find_format(last) != nullptr ? last : std::string_view();
}

/// The same step, whatever number type it is in.
bool same_step(const AccountStage& a, const AccountStage& b) {
    return a.name.substr(0, a.name.find(' ')) == b.name.substr(0, b.name.find(' ')) && a.batch == b.batch &&
           a.tokens == b.tokens && a.context == b.context;
}

bool same_place(const Record& a, const Record& b) {
    return a.work.flops == b.work.flops && a.work.at(Level::memory) == b.work.at(Level::memory) &&
           shown_time(a.times) == shown_time(b.times);
}

}  // namespace

std::string point_name(const Spot& spot, const Account& account) {
    const Record& mine = *spot.record;
    std::string text = short_name(mine, *spot.of);
    const std::string_view type = number_type(*spot.of);
    if (type.empty()) return text;
    bool others = false;
    bool own_tells = true;
    for (const AccountStage& stage : account.stages) {
        if (number_type(stage) == type || !same_step(stage, *spot.of)) continue;
        for (const Record& record : stage.records) {
            if (record.name != mine.name || same_place(record, mine)) continue;
            others = true;
            own_tells = own_tells && record.work.type != mine.work.type;
        }
    }
    if (!others) return text;
    // Weights are in the type of the stage, but for those of a head; and attention has none.
    const bool weights = mine.kind == Kind::gemm && mine.group != Group::head;
    return fmt::format("{}, {}", text, weights || !own_tells ? type : name(mine.work.type));
}

std::string describe_stage(const AccountStage& stage) {
    std::string text = stage.name;
    if (stage.batch > 0.0) text += fmt::format(", batch {}", grouped(stage.batch));
    if (!stage.name.starts_with("decode") && stage.tokens > 0.0)
        text += fmt::format(", {} tokens", grouped(stage.tokens));
    if (stage.name.starts_with("decode") && stage.context > 0.0)
        text += fmt::format(", context {}", grouped(stage.context));
    return text;
}

std::string stage_line(const AccountStage& stage) {
    const auto rate = [&](Seconds time) {
        return stage.produced > 0.0 ? plain(stage.tokens_per_second(time)) : render::time(time);
    };
    std::string text = describe_stage(stage) + ": ";
    const std::string unit = stage.produced > 0.0 ? " tokens/s" : "";
    if (stage.times.measured) text += fmt::format("{}{} measured, ", rate(*stage.times.measured), unit);
    if (stage.times.expected.value > 0.0)
        text += fmt::format("{}{} {}, ", rate(stage.times.expected), unit,
                            has_expected(stage.times) ? "expected" : "attainable");
    if (stage.times.limit.value > 0.0) text += fmt::format("{}{} at the limit, ", rate(stage.times.limit), unit);
    text.resize(text.size() - 2);
    return text;
}

StageNames stage_names(std::span<const Account> accounts) {
    // Each as a list of parts, the n-th of one beside the n-th of all others: words of its name, sizes, the report.
    std::vector<std::vector<std::string>> parts;
    std::size_t most_words = 0;
    const auto words_of = [](const std::string& name) {
        return static_cast<std::size_t>(std::count(name.begin(), name.end(), ' ')) + 1;
    };
    for (const Account& account : accounts) {
        for (const AccountStage& stage : account.stages) most_words = std::max(most_words, words_of(stage.name));
    }
    for (std::size_t a = 0; a < accounts.size(); ++a) {
        for (const AccountStage& stage : accounts[a].stages) {
            std::vector<std::string>& mine = parts.emplace_back();
            for (std::size_t at = 0; at <= stage.name.size();) {
                const std::size_t end = std::min(stage.name.find(' ', at), stage.name.size());
                mine.push_back(stage.name.substr(at, end - at));
                at = end + 1;
            }
            mine.resize(most_words);
            const bool decodes = stage.name.starts_with("decode");
            const auto size = [&](double value, const char* before, const char* after) {
                mine.push_back(value > 0.0 ? before + grouped(value) + after : "");
            };
            size(stage.batch, "batch ", "");
            size(decodes ? 0.0 : stage.tokens, "", " tokens");
            size(decodes ? stage.context : 0.0, "context ", "");
            mine.push_back(accounts.size() > 1 ? short_title(accounts, a) : "");
        }
    }
    // The first that is there stands for all that are: a prompt has tokens, a decode step a context.
    const auto first = [&](std::size_t part) -> std::string {
        for (const auto& one : parts) {
            if (!one[part].empty()) return one[part];
        }
        return "";
    };
    const auto alike = [&](std::size_t part) {
        const bool size = part >= most_words && part < most_words + 3;
        return std::all_of(parts.begin(), parts.end(), [&, one_of = first(part)](const auto& one) {
            return one[part] == one_of || (size && one[part].empty());
        });
    };
    const auto join = [](std::string& text, const std::string& part) {
        if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
    };
    StageNames names;
    const std::size_t count = parts.empty() ? 0 : parts.front().size();
    std::vector<bool> shared;
    for (std::size_t part = 0; part < count; ++part) {
        shared.push_back(alike(part));
        if (shared.back()) join(names.common, first(part));
    }
    std::size_t next = 0;
    for (const Account& account : accounts) {
        names.own.emplace_back();
        for (const AccountStage& stage : account.stages) {
            std::string own;
            for (std::size_t part = 0; part < count; ++part) {
                if (!shared[part]) join(own, parts[next][part]);
            }
            ++next;
            names.own.back().push_back(own.empty() ? stage.name : own);
        }
    }
    return names;
}

std::string explain_spot(const Spot& spot, const Account& account) {
    const Times& times = spot.record != nullptr ? spot.record->times : spot.of->times;
    std::string text = fmt::format(
        "{}\n{}, {}\n{} FLOP/B, {}/s", spot.record != nullptr ? spot.record->name : "all operators", account.title,
        describe_stage(*spot.of), intensity(FlopsPerByte(spot.intensity)), flops(Flops(spot.rate)));
    if (spot.record != nullptr) {
        const Record& record = *spot.record;
        text += fmt::format("\n{} and {} of memory traffic, {} times a step", flops(record.work.flops),
                            bytes(record.work.at(Level::memory)), grouped(record.count));
        text += fmt::format("\n{} in {}, held back by {}", percent(spot.share), render::time(Seconds(spot.seconds)),
                            name(spot.bound));
        text += fmt::format("\nlimit {}, attainable {}", render::time(times.limit), render::time(times.attainable));
        if (has_expected(times)) text += fmt::format(", expected {}", render::time(times.expected));
        if (times.measured) text += fmt::format(", measured {}", render::time(*times.measured));
    }
    return text;
}

namespace {

bool all_alike(std::span<const Account> accounts, std::string (*key)(const Account&)) {
    for (const Account& account : accounts) {
        if (key(account) != key(accounts.front())) return false;
    }
    return true;
}
bool all_different(std::span<const Account> accounts, std::string (*key)(const Account&)) {
    for (std::size_t i = 0; i < accounts.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (key(accounts[i]) == key(accounts[j])) return false;
        }
    }
    return true;
}
std::string device_of(const Account& account) {
    return account.device.name;
}
std::string model_of(const Account& account) {
    return account.model;
}
std::string title_of(const Account& account) {
    return account.title.empty() ? account.device.name : account.title;
}

}  // namespace

std::string short_title(std::span<const Account> accounts, std::size_t account) {
    if (all_alike(accounts, model_of) && all_different(accounts, device_of)) return device_of(accounts[account]);
    if (all_alike(accounts, device_of) && all_different(accounts, model_of) && !accounts[account].model.empty())
        return model_of(accounts[account]);
    const std::string title = title_of(accounts[account]);
    return all_different(accounts, title_of) ? title : fmt::format("{} ({})", title, account + 1);
}

std::string common_title(std::span<const Account> accounts) {
    if (accounts.empty()) return "roofline";
    if (accounts.size() == 1)
        return accounts.front().stages.empty() ? accounts.front().device.title : title_of(accounts.front());
    std::string names;
    for (std::size_t i = 0; i < accounts.size(); ++i)
        names += (i == 0 ? "" : i + 1 == accounts.size() ? " and " : ", ") + short_title(accounts, i);
    const bool one_model =
        all_alike(accounts, model_of) && all_different(accounts, device_of) && !accounts.front().model.empty();
    return one_model ? accounts.front().model + " on " + names : names;
}

std::vector<std::string> notes_about(const Unseen& unseen) {
    std::vector<std::string> parts;
    const auto add = [&](int count, const char* one, const char* many, double share) {
        if (count > 0)
            parts.push_back(
                fmt::format("{} operator{} ({} of the time)", count, count == 1 ? one : many, percent(share)));
    };
    add(unseen.without_flops, " without FLOPs", "s without FLOPs", unseen.without_flops_share);
    add(unseen.on_chip, " that stays on the chip", "s that stay on the chip", unseen.on_chip_share);
    if (unseen.beyond > 0) parts.push_back(fmt::format("{} with figures beyond any machine", unseen.beyond));
    if (parts.empty()) return {};
    return {fmt::format("Not shown, having no place on these axes: {}.", fmt::join(parts, ", "))};
}

}  // namespace roofline::render::chart
