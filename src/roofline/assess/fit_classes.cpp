#include "roofline/assess/fit_classes.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

namespace roofline::assess {
namespace {

using predict::Calibration;
using predict::Fitted;
using predict::KernelClass;
using predict::Scope;

// How strongly each level is held near the one above: a device with a hundred rows is free, one with five is not.
constexpr double pull_class = 0.015;
constexpr double pull_group = 0.10;
constexpr double pull_generation = 0.09;
constexpr double pull_device = 0.15;
// Where rows scatter more than this around the fit of their group, its devices hold together more tightly.
constexpr double usual_scatter = 0.03;
constexpr double most_stiffness = 3.0;
// A dozen constants need no more rows than this; beyond it rows are thinned evenly.
constexpr std::size_t most_rows_of_a_fit = 1200;
// A generation with a handful of rows does not count for more than this many times as many.
constexpr double most_weight = 4.0;

using RowPointers = std::vector<const FitRow*>;

/// Whether rows count alike, or generations do, however many rows each has: what is carried to a device that nothing
/// like it was measured on stands for the next generation, not for one more device of the one that was measured most.
enum class Voices { rows, generations };

Constants fit_rows(const KernelClass& kernel_class, const RowPointers& rows, const Constants& prior, double pull,
                   Start start = Start::prior, Voices voices = Voices::rows) {
    std::vector<Sample> samples;
    std::map<std::string_view, double> of_generation;
    const std::size_t stride = std::max<std::size_t>(1, (rows.size() + most_rows_of_a_fit - 1) / most_rows_of_a_fit);
    for (std::size_t i = 0; i < rows.size(); i += stride) {
        samples.push_back(rows[i]->sample);
        ++of_generation[rows[i]->device->generation];
    }
    if (voices == Voices::generations) {
        const double even = static_cast<double>(samples.size()) / static_cast<double>(of_generation.size());
        for (std::size_t i = 0; i < samples.size(); ++i)
            samples[i].weight = std::min(even / of_generation[rows[i * stride]->device->generation], most_weight);
    }
    return fit(kernel_class, samples, prior, pull, start);
}

/// Median of |log error|: how well a formula can do at all.
double scatter(const KernelClass& kernel_class, const RowPointers& rows, const Constants& constants) {
    std::vector<double> errors;
    for (const FitRow* row : rows) {
        const double expected =
            predicted_seconds(row->sample.calls, std::span(constants.data(), kernel_class.constants.size()));
        errors.push_back(std::fabs(std::log(expected / row->sample.seconds)));
    }
    std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2), errors.end());
    return errors[errors.size() / 2];
}

/// "trtllm/hopper" -> "hopper": kernels of one make, whoever calls them. Empty where the stack names none.
std::string family_of(const std::string& stack) {
    const std::size_t slash = stack.find('/');
    return slash == std::string::npos ? std::string() : stack.substr(slash + 1);
}

/// All groups of one class: the class as a whole, families of kernels, groups, generations, devices.
class ClassFit {
  public:
    ClassFit(const KernelClass& kernel_class, std::span<const Measurement> rows, Calibration& into,
             Residuals* transfers)
        : class_(kernel_class), measured_(rows), into_(into), transfers_(transfers) {}

    void add(const GroupKey& key, const std::vector<FitRow>& rows) {
        if (rows.size() < least_rows_of_a_group) return;
        groups_[key] = pointers(rows);
    }

    void run() {
        if (groups_.empty()) return;
        RowPointers all;
        std::map<std::string, RowPointers> families;
        for (const auto& [key, rows] : groups_) {
            all.insert(all.end(), rows.begin(), rows.end());
            RowPointers& family = families[family_of(key.stack)];
            family.insert(family.end(), rows.begin(), rows.end());
        }
        const Constants general = fit_rows(class_, all, start_of(class_), pull_class);
        if (groups_.size() > 1) keep({&class_, "", ""}, Scope::everything, "", general, all);
        for (const auto& [family, rows] : families) {
            // Kernels of one make under several callers and types share what they can; the rest start from physics, not
            // from an average over kernels that have nothing in common.
            const auto members = std::count_if(groups_.begin(), groups_.end(), [&](const auto& group) {
                return family_of(group.first.stack) == family;
            });
            const Constants made =
                family.empty() || members < 2 ? start_of(class_) : fit_rows(class_, rows, start_of(class_), pull_class);
            for (const auto& [key, group] : groups_) {
                if (family_of(key.stack) == family) fit_group(key, group, made, members);
            }
        }
    }

  private:
    static RowPointers pointers(const std::vector<FitRow>& rows) {
        RowPointers result;
        for (const FitRow& row : rows) result.push_back(&row);
        return result;
    }

    void keep(const GroupKey& key, Scope scope, std::string of, const Constants& constants, const RowPointers& rows) {
        Fitted fitted;
        fitted.kernel_class = key.kernel_class;
        fitted.type = key.type;
        fitted.stack = key.stack;
        fitted.scope = scope;
        fitted.of = std::move(of);
        fitted.constants = constants;
        fitted.rows = static_cast<double>(rows.size());
        if (scope == Scope::everything) {
            std::set<std::string> vendors;
            for (const FitRow* row : rows) vendors.insert(row->device->vendor);
            fitted.vendors.assign(vendors.begin(), vendors.end());
        }
        into_.add(std::move(fitted));
    }

    void fit_group(const GroupKey& key, const RowPointers& rows, const Constants& prior, std::ptrdiff_t members) {
        std::map<std::string, std::map<std::string, RowPointers>> by_generation;
        for (const FitRow* row : rows) by_generation[row->device->generation][row->device->name].push_back(row);
        const double pull = members > 1 && !family_of(key.stack).empty() ? pull_group : pull_class;
        // What a family left at a bound may have to move again here.
        const Constants general = fit_rows(class_, rows, prior, pull, Start::prior_and_class);
        stiffness_ = std::clamp(scatter(class_, rows, general) / usual_scatter, 1.0, most_stiffness);
        keep(key, Scope::everything, "", carried(rows, general, pull), rows);
        if (transfers_ != nullptr) judge_transfers(key, rows, by_generation, prior, pull);
        for (const auto& [generation, devices] : by_generation) {
            RowPointers relatives;
            for (const auto& [device, some] : devices) relatives.insert(relatives.end(), some.begin(), some.end());
            const Constants shared = by_generation.size() == 1
                                         ? general
                                         : fit_rows(class_, relatives, general, stiffness_ * pull_generation);
            if (!generation.empty()) keep(key, Scope::generation, generation, shared, relatives);
            for (const auto& [device, some] : devices) {
                const Constants own = devices.size() == 1 && by_generation.size() == 1
                                          ? shared
                                          : fit_rows(class_, some, shared, stiffness_ * pull_device);
                keep(key, Scope::device, device, own, some);
            }
        }
    }

    /// For devices that nothing like them was measured on. What connects devices is a matter of the board, not of the
    /// generation: there rows count alike.
    Constants carried(const RowPointers& rows, const Constants& general, double pull) const {
        const bool collective = rows.front()->sample.calls.front().kernel.pattern == Pattern::collective;
        const auto other = [&](const FitRow* row) {
            return row->device->generation != rows.front()->device->generation;
        };
        if (collective || std::none_of(rows.begin(), rows.end(), other)) return general;
        return fit_rows(class_, rows, general, pull, Start::prior, Voices::generations);
    }

    /// Each generation predicted by the others, each device by its relatives.
    void judge_transfers(const GroupKey& key, const RowPointers& rows,
                         const std::map<std::string, std::map<std::string, RowPointers>>& by_generation,
                         const Constants& prior, double pull) {
        for (const auto& [generation, devices] : by_generation) {
            RowPointers others;
            for (const FitRow* row : rows) {
                if (row->device->generation != generation) others.push_back(row);
            }
            const Constants general = others.empty() ? prior : fit_rows(class_, others, prior, pull);
            const Constants elsewhere = others.empty() ? prior : carried(others, general, pull);
            std::size_t of_generation = 0;
            for (const auto& [device, some] : devices) of_generation += some.size();
            for (const auto& [device, some] : devices) {
                // What comes next is a new generation, not one more device of the one that was measured most: each
                // has one voice.
                if (!others.empty())
                    note(key, Scope::everything, "", some, elsewhere, some.front()->device->generation,
                         1.0 / static_cast<double>(of_generation));
                RowPointers relatives;
                for (const auto& [relative, theirs] : devices) {
                    if (relative != device) relatives.insert(relatives.end(), theirs.begin(), theirs.end());
                }
                if (relatives.empty() || generation.empty()) continue;
                note(key, Scope::generation, generation, some,
                     fit_rows(class_, relatives, general, stiffness_ * pull_generation), some.front()->device->name,
                     1.0);
            }
        }
    }

    void note(const GroupKey& key, Scope scope, const std::string& of, const RowPointers& rows,
              const Constants& constants, std::string_view voice, double weight) {
        std::vector<Residual>& seen = (*transfers_)[{key, scope, of}];
        for (const FitRow* row : rows)
            seen.push_back({residual_of(row->sample, measured_[row->index], constants), voice, weight});
    }

    const KernelClass& class_;
    std::span<const Measurement> measured_;
    Calibration& into_;
    Residuals* transfers_;
    std::map<GroupKey, RowPointers> groups_;
    double stiffness_ = 1.0;
};

void fit_groups(const Groups& groups, std::span<const Measurement> rows, Calibration& into, Residuals* transfers) {
    std::map<std::string_view, ClassFit> classes;
    for (const auto& [key, group] : groups) {
        const auto place = classes.try_emplace(key.kernel_class->name, *key.kernel_class, rows, into, transfers).first;
        place->second.add(key, group);
    }
    for (auto& [name, fitting] : classes) fitting.run();
}

}  // namespace

Calibration fit_all(std::span<const Measurement> rows, const std::vector<bool>& used, Residuals* transfers) {
    Calibration result;
    fit_groups(kernel_groups(rows, used), rows, result, transfers);
    const StepSamples steps = step_groups(rows, used, std::make_shared<const Calibration>(result));
    fit_groups(steps.groups, rows, result, transfers);
    return result;
}

}  // namespace roofline::assess
