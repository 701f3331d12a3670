#include "roofline/assess/ranges.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "roofline/core/quantile.hpp"

namespace roofline::assess {
namespace {

using predict::Calibration;
using predict::Fitted;
using predict::KernelClass;
using predict::Scope;

// Eight of ten measurements between this and what is as far from the other end.
constexpr double high_quantile = 0.9;
// A range that rests on one family, device or generation is this much wider; a quarter of it with two, a ninth with
// three.
constexpr double few_voices = 0.3;
// Constants carried to a device that nothing comparable was measured on.
constexpr double widened = 1.15;

const Fitted* find_fit(const Calibration& calibration, const GroupKey& key, Scope scope, const std::string& of) {
    for (const Fitted& fitted : calibration.fits(*key.kernel_class)) {
        if (fitted.scope == scope && fitted.of == of && fitted.type == key.type && fitted.stack == key.stack)
            return &fitted;
    }
    return nullptr;
}

/// The spread of residuals as a range around the expected time, and their mean error. What was left out together errs
/// together: few voices say little about the next, however many rows each has. The range then reaches further into the
/// tails, and beyond them where there are but two or three.
void set_range(Fitted& fitted, const std::vector<Residual>& seen, double margin) {
    std::set<std::string_view> names;
    double least = seen.front().weight;
    for (const Residual& residual : seen) {
        names.insert(residual.voice);
        least = std::min(least, residual.weight);
    }
    const auto voices = static_cast<double>(names.size());
    const double high = high_quantile + (1.0 - high_quantile) / voices;
    margin *= 1.0 + few_voices / (voices * voices);
    std::vector<Weighted> values;
    values.reserve(seen.size());
    for (const Residual& residual : seen) values.push_back({residual.value, residual.weight / least});
    std::sort(values.begin(), values.end(), [](const Weighted& a, const Weighted& b) {
        return a.value != b.value ? a.value < b.value : a.weight < b.weight;
    });
    fitted.low = std::min(std::exp(quantile(values, 1.0 - high)), 1.0) / margin;
    fitted.high = std::max(std::exp(quantile(values, high)), 1.0) * margin;
    double sum = 0.0;
    double weights = 0.0;
    for (const Residual& residual : seen) {
        sum += residual.weight * std::fabs(std::exp(-residual.value) - 1.0);
        weights += residual.weight;
    }
    fitted.error = sum / weights;
}

/// E9: what the kernels that everyone writes anew cost an author, against those of whom the constants are: the part by
/// which they must differ to explain the times of his steps. Steps that hold much of them say most.
double excess_of_author(const std::vector<FitRow>& rows, std::string_view device, const Constants& constants) {
    double product = 0.0;
    double squares = 0.0;
    for (const FitRow& row : rows) {
        if (row.device->name != device) continue;
        const predict::Kernel& step = row.sample.calls.front().kernel;
        const double share = step.input_bytes / step.kernel_seconds;  // of such kernels: both are seconds of a step
        product += share * (row.sample.seconds / predicted_seconds(row.sample.calls, constants) - 1.0);
        squares += share * share;
    }
    return squares > 0.0 ? product / squares : 0.0;
}

}  // namespace

void note_residuals(const Groups& groups, const Calibration& fitted, const std::vector<bool>& held_back,
                    std::span<const Measurement> rows, Residuals& into) {
    for (const auto& [key, group] : groups) {
        for (const FitRow& row : group) {
            if (!held_back[row.index]) continue;
            const Fitted* found = find_fit(fitted, key, Scope::device, row.device->name);
            if (found == nullptr) continue;
            into[{key, Scope::device, row.device->name}].push_back(
                {residual_of(row.sample, rows[row.index], found->constants), rows[row.index].family});
        }
    }
}

void set_ranges(Calibration& calibration, const Residuals& residuals) {
    constexpr std::size_t enough = 10;
    std::map<const KernelClass*, std::vector<Residual>> of_class;
    std::map<GroupKey, std::vector<Residual>> of_group;  // on devices of their own
    for (const auto& [name, seen] : residuals) {
        if (name.scope == Scope::everything) {
            auto& all = of_class[name.key.kernel_class];
            all.insert(all.end(), seen.begin(), seen.end());
        }
        if (name.scope == Scope::device) {
            auto& all = of_group[name.key];
            all.insert(all.end(), seen.begin(), seen.end());
        }
    }
    Calibration ranged;
    for (Fitted fitted : calibration.all()) {
        const GroupKey key{fitted.kernel_class, fitted.type, fitted.stack};
        const auto own = residuals.find({key, fitted.scope, fitted.of});
        const auto elsewhere = residuals.find({key, Scope::everything, ""});
        const auto group = of_group.find(key);
        const auto whole = of_class.find(fitted.kernel_class);
        const auto speaks = [&](const auto& found, const auto& end) {
            return found != end && found->second.size() >= enough;
        };
        // Its own residuals; with too few of them, those of its group; then of other devices; then of its class.
        if (speaks(own, residuals.end())) {
            set_range(fitted, own->second, 1.0);
        } else if (fitted.scope == Scope::device && speaks(group, of_group.end())) {
            set_range(fitted, group->second, 1.0);
        } else if (speaks(elsewhere, residuals.end())) {
            set_range(fitted, elsewhere->second, 1.0);
        } else if (speaks(group, of_group.end())) {
            set_range(fitted, group->second, widened);
            fitted.error = 0.0;  // nothing was measured elsewhere to say how well it carries over
        } else if (speaks(whole, of_class.end())) {
            set_range(fitted, whole->second, widened);
            fitted.error = 0.0;
        } else {
            fitted.low = 1.0 / (widened * widened * widened);
            fitted.high = widened * widened * widened;
        }
        ranged.add(std::move(fitted));
    }
    calibration = std::move(ranged);
}

void set_authors(Calibration& calibration, const Groups& steps) {
    Calibration judged;
    for (Fitted fitted : calibration.all()) {
        const bool captured = fitted.kernel_class->name == "graph_step" && !fitted.stack.empty();
        std::vector<Residual> seen;
        std::string_view device;
        for (const auto& [key, rows] : steps) {
            if (!captured || rows.size() < least_rows_of_a_group || key.kernel_class != fitted.kernel_class) continue;
            const bool itself = key.stack == fitted.stack;
            if (device.empty()) device = rows.front().device->name;
            const double excess = itself ? 0.0 : excess_of_author(rows, device, fitted.constants);
            seen.push_back({std::log(std::max(1.0 + excess, 0.1)), key.stack});
        }
        if (seen.size() > 1) {
            Fitted range;
            set_range(range, seen, 1.0);
            fitted.authors_low = range.low;
            fitted.authors_high = range.high;
        }
        judged.add(std::move(fitted));
    }
    calibration = std::move(judged);
}

}  // namespace roofline::assess
