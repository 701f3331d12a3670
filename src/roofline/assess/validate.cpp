#include "roofline/assess/validate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace roofline::assess {
namespace {

Errors errors_of(std::vector<double> signed_errors) {
    Errors errors;
    if (signed_errors.empty()) return errors;
    const auto count = static_cast<double>(signed_errors.size());
    for (const double error : signed_errors) errors.bias += error / count;
    for (double& error : signed_errors) error = std::fabs(error);
    for (const double error : signed_errors) errors.mean += error / count;
    std::sort(signed_errors.begin(), signed_errors.end());
    const auto at = [&](double part) {
        const double place = part * (count - 1.0);
        const auto below = static_cast<std::size_t>(place);
        const std::size_t above = std::min(below + 1, signed_errors.size() - 1);
        return signed_errors[below] +
               (place - static_cast<double>(below)) * (signed_errors[above] - signed_errors[below]);
    };
    errors.median = at(0.5);
    errors.p95 = at(0.95);
    errors.worst = signed_errors.back();
    return errors;
}

struct Gathered {
    std::vector<double> limit;
    std::vector<double> attainable;
    std::vector<double> expected;
    int inside = 0;
    int refused = 0;
};

using Key = std::array<std::string, 5>;

Key key_of(Grouping grouping, const std::string& device, const std::string& kind, const std::string& type,
           const std::string& stage, std::string_view size) {
    switch (grouping) {
        case Grouping::full:
            return {kind, stage, type, device, ""};
        case Grouping::kind:
            return {kind, stage, "", "", ""};
        case Grouping::size:
            return {kind, stage, "", "", std::string(size)};
        case Grouping::device:
            return {"", "", "", device, ""};
    }
    return {};
}

}  // namespace

std::string_view size_class(double seconds) {
    return seconds <= 20e-6 ? "up to 20 us" : seconds <= 1e-3 ? "20 us to 1 ms" : "over 1 ms";
}

std::vector<Card> cards(const Measurements& measured, std::span<const Expected> expected, Grouping grouping) {
    std::map<Key, Gathered> groups;
    for (std::size_t i = 0; i < measured.rows.size(); ++i) {
        const Measurement& row = measured.rows[i];
        Gathered& group =
            groups[key_of(grouping, row.device->name, row.kind, row.type, row.stage, size_class(row.seconds))];
        group.limit.push_back(signed_error(row, row.limit));
        group.attainable.push_back(signed_error(row, row.attainable));
        group.expected.push_back(signed_error(row, expected[i].seconds));
        if (row.seconds >= expected[i].low && row.seconds <= expected[i].high) ++group.inside;
    }
    if (grouping != Grouping::size) {
        for (const Refusal& row : measured.refused)
            ++groups[key_of(grouping, row.device, row.kind, row.type, row.stage, "")].refused;
    }
    std::vector<Card> result;
    for (const auto& [key, group] : groups) {
        Card card;
        card.kind = key[0];
        card.stage = key[1];
        card.type = key[2];
        card.device = key[3];
        card.size = key[4];
        card.rows = static_cast<int>(group.limit.size());
        card.refused = group.refused;
        card.limit = errors_of(group.limit);
        card.attainable = errors_of(group.attainable);
        card.expected = errors_of(group.expected);
        card.coverage = card.rows > 0 ? static_cast<double>(group.inside) / card.rows : 0.0;
        result.push_back(std::move(card));
    }
    return result;
}

std::vector<RefusedCount> count_refused(std::span<const Refusal> refused) {
    constexpr int most_places = 5;
    std::map<std::string, std::pair<int, std::string>> counts;
    for (const Refusal& row : refused) {
        auto& [count, places] = counts[row.kind + ": " + row.reason];
        ++count;
        if (count <= most_places) places += (places.empty() ? "" : ", ") + row.file + ":" + std::to_string(row.line);
        if (count == most_places + 1) places += ", ...";
    }
    std::vector<RefusedCount> result;
    for (const auto& [reason, found] : counts) result.push_back({reason, found.first, found.second});
    return result;
}

}  // namespace roofline::assess
