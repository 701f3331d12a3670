#include "roofline/assess/calibrate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "roofline/assess/in_parallel.hpp"
#include "roofline/assess/served.hpp"
#include "roofline/core/quantile.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/predict/prepared.hpp"

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
// Eight of ten measurements between this and what is as far from the other end.
constexpr double high_quantile = 0.9;
// A range that rests on one family, device or generation is this much wider; a quarter of it with two, a ninth with
// three.
constexpr double few_voices = 0.3;
constexpr int default_folds = 5;
// Constants carried to a device that nothing comparable was measured on.
constexpr double widened = 1.15;

/// What is fitted together: a class, a number type, an engine's kernels.
struct GroupKey {
    const KernelClass* kernel_class = nullptr;
    std::string type;
    std::string stack;

    auto order() const { return std::tie(kernel_class->name, type, stack); }
    bool operator<(const GroupKey& other) const { return order() < other.order(); }
};

struct Row {
    std::size_t index = 0;  // of the measurement
    const Device* device = nullptr;
    Sample sample;
};

using Groups = std::map<GroupKey, std::vector<Row>>;

bool timed_as_a_step(const Measurement& row) {
    return row.step != nullptr && row.calls.empty();
}

/// Profiles by name, each read once.
class Profiles {
  public:
    const predict::Profile& find(const std::string& name) {
        const auto known = profiles_.find(name);
        if (known != profiles_.end()) return known->second;
        auto profile = io::builtin_profile(name);
        return profiles_.emplace(name, profile ? std::move(*profile) : predict::Profile{}).first->second;
    }

  private:
    std::map<std::string, predict::Profile> profiles_;
};

predict::Execution execution_of(const Measurement& row, Profiles& profiles,
                                std::shared_ptr<const Calibration> calibration) {
    predict::Execution execution;
    execution.profile = profiles.find(row.step->profile);
    execution.profile.stacks.insert(execution.profile.stacks.begin(), row.step->stacks.begin(), row.step->stacks.end());
    execution.calibration = std::move(calibration);
    return execution;
}

using RowPointers = std::vector<const Row*>;

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
    for (const Row* row : rows) {
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

/// Where fits are judged: residuals log(measured / expected) of rows that a fit had not seen.
struct FitName {
    GroupKey key;
    Scope scope = Scope::everything;
    std::string of;

    bool operator<(const FitName& other) const {
        if (key < other.key) return true;
        if (other.key < key) return false;
        return std::tie(scope, of) < std::tie(other.scope, other.of);
    }
};
struct Residual {
    double value = 0.0;
    // What was left out, whose rows err together: a family of shapes, a device, a generation. The row's or device's own
    // string, which outlives this.
    std::string_view voice;
    double weight = 1.0;
};
using Residuals = std::map<FitName, std::vector<Residual>>;

/// All groups of one class: the class as a whole, families of kernels, groups, generations, devices.
class ClassFit {
  public:
    /// `transfers`: where to note how fits do on devices and generations they have not seen; nullptr: not asked for.
    ClassFit(const KernelClass& kernel_class, std::span<const Measurement> rows, Calibration& into,
             Residuals* transfers)
        : class_(kernel_class), measured_(rows), into_(into), transfers_(transfers) {}

    void add(const GroupKey& key, const std::vector<Row>& rows) {
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
    static RowPointers pointers(const std::vector<Row>& rows) {
        RowPointers result;
        for (const Row& row : rows) result.push_back(&row);
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
            for (const Row* row : rows) vendors.insert(row->device->vendor);
            fitted.vendors.assign(vendors.begin(), vendors.end());
        }
        into_.add(std::move(fitted));
    }

    void fit_group(const GroupKey& key, const RowPointers& rows, const Constants& prior, std::ptrdiff_t members) {
        std::map<std::string, std::map<std::string, RowPointers>> by_generation;
        for (const Row* row : rows) by_generation[row->device->generation][row->device->name].push_back(row);
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
        const auto other = [&](const Row* row) { return row->device->generation != rows.front()->device->generation; };
        if (collective || std::none_of(rows.begin(), rows.end(), other)) return general;
        return fit_rows(class_, rows, general, pull, Start::prior, Voices::generations);
    }

    /// Each generation predicted by the others, each device by its relatives.
    void judge_transfers(const GroupKey& key, const RowPointers& rows,
                         const std::map<std::string, std::map<std::string, RowPointers>>& by_generation,
                         const Constants& prior, double pull) {
        for (const auto& [generation, devices] : by_generation) {
            RowPointers others;
            for (const Row* row : rows) {
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
        for (const Row* row : rows) {
            const double expected =
                std::max(predicted_seconds(row->sample.calls, constants), measured_[row->index].attainable);
            seen.push_back({std::log(row->sample.seconds / expected), voice, weight});
        }
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

/// Rows that are kernels, by group.
Groups kernel_groups(std::span<const Measurement> rows, const std::vector<bool>& used) {
    Groups groups;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Measurement& row = rows[i];
        if (!used[i] || row.calls.empty()) continue;
        groups[{row.calls.front().kernel_class, row.fit_type, row.stack}].push_back(
            {i, row.device.get(), {row.calls, row.seconds}});
    }
    return groups;
}

/// Steps against the sum of their kernels, as the kernels' own fit has it.
struct StepSamples {
    Groups groups;
    std::vector<std::unique_ptr<Call>> calls;  // that the samples point to
};

StepSamples step_groups(std::span<const Measurement> rows, const std::vector<bool>& used,
                        const std::shared_ptr<const Calibration>& kernels, Profiles& profiles) {
    StepSamples result;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Measurement& row = rows[i];
        if (!used[i] || !timed_as_a_step(row)) continue;
        const predict::Execution execution = execution_of(row, profiles, kernels);
        const predict::Prepared prepared(*row.step->model, *row.device, execution);
        std::vector<predict::OperatorTime> times(prepared.size());
        const predict::StageTime stage = prepared.evaluate(row.step->step, times);
        auto call = std::make_unique<Call>();
        call->kernel_class = predict::kernel_class(execution.profile.step);
        call->machine = predict::step_machine();
        call->kernel = predict::step_kernel(stage);
        result.groups[{call->kernel_class, "", row.step->profile}].push_back(
            {i, row.device.get(), {std::span<const Call>(call.get(), 1), row.seconds}});
        result.calls.push_back(std::move(call));
    }
    return result;
}

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

/// Of each device's own constants, on rows held back from them.
void note_residuals(const Groups& groups, const Calibration& fitted, const std::vector<bool>& held_back,
                    std::span<const Measurement> rows, Residuals& into) {
    for (const auto& [key, group] : groups) {
        for (const Row& row : group) {
            if (!held_back[row.index]) continue;
            const Fitted* found = find_fit(fitted, key, Scope::device, row.device->name);
            if (found == nullptr) continue;
            const double expected =
                std::max(predicted_seconds(row.sample.calls, found->constants), rows[row.index].attainable);
            into[{key, Scope::device, row.device->name}].push_back(
                {std::log(row.sample.seconds / expected), rows[row.index].family});
        }
    }
}

/// E9: what the kernels that everyone writes anew cost an author, against those of whom the constants are: the part by
/// which they must differ to explain the times of his steps. Steps that hold much of them say most.
double excess_of_author(const std::vector<Row>& rows, std::string_view device, const Constants& constants) {
    double product = 0.0;
    double squares = 0.0;
    for (const Row& row : rows) {
        if (row.device->name != device) continue;
        const predict::Kernel& step = row.sample.calls.front().kernel;
        const double share = step.input_bytes / step.kernel_seconds;  // of such kernels: both are seconds of a step
        product += share * (row.sample.seconds / predicted_seconds(row.sample.calls, constants) - 1.0);
        squares += share * share;
    }
    return squares > 0.0 ? product / squares : 0.0;
}

/// Steps in graphs, whose time is that of their kernels: those of every author by the constants of every other.
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

/// Fits all classes to the rows marked in `used`: kernels first, then steps against the sum of their kernels.
Calibration fit_all(std::span<const Measurement> rows, const std::vector<bool>& used, Residuals* transfers) {
    Calibration result;
    Profiles profiles;
    fit_groups(kernel_groups(rows, used), rows, result, transfers);
    const StepSamples steps = step_groups(rows, used, std::make_shared<const Calibration>(result), profiles);
    fit_groups(steps.groups, rows, result, transfers);
    return result;
}

}  // namespace

std::vector<int> fold_of_rows(std::span<const Measurement> rows, int folds) {
    // Families of one kind are dealt out in turn, so that every fold holds some of each kind.
    std::map<std::string, std::set<std::string>> families;
    for (const Measurement& row : rows) families[row.kind].insert(row.family);
    std::map<std::pair<std::string, std::string>, int> fold;
    for (const auto& [kind, names] : families) {
        int next = 0;
        for (const std::string& name : names) fold[{kind, name}] = next++ % folds;
    }
    std::vector<int> result;
    result.reserve(rows.size());
    for (const Measurement& row : rows) result.push_back(fold[{row.kind, row.family}]);
    return result;
}

namespace {

/// Each device is a fold of its own.
std::vector<int> device_of_rows(std::span<const Measurement> rows) {
    std::map<std::string_view, int> numbers;
    std::vector<int> result;
    result.reserve(rows.size());
    for (const Measurement& row : rows)
        result.push_back(numbers.try_emplace(row.device->name, static_cast<int>(numbers.size())).first->second);
    return result;
}

}  // namespace

Calibration calibrate(std::span<const Measurement> rows, Judging judging) {
    const std::vector<bool> everything(rows.size(), true);
    const Groups kernels = kernel_groups(rows, everything);
    const std::vector<int> folds = fold_of_rows(rows, default_folds);
    Calibration result;
    // What each fit says of rows it had not seen: the fit to all of devices and generations left out, those of the
    // folds of families of shapes.
    std::array<Residuals, default_folds + 1> unseen;
    in_parallel(unseen.size(), [&](std::size_t part) {
        if (part == 0) {
            result = fit_all(rows, everything, judging == Judging::transfers_too ? unseen.data() : nullptr);
            return;
        }
        const int fold = static_cast<int>(part) - 1;
        std::vector<bool> used(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) used[i] = folds[i] != fold;
        std::vector<bool> held_back = used;
        held_back.flip();
        const auto fitted = std::make_shared<const Calibration>(fit_all(rows, used, nullptr));
        Profiles profiles;
        note_residuals(kernels, *fitted, held_back, rows, unseen[part]);
        note_residuals(step_groups(rows, held_back, fitted, profiles).groups, *fitted, held_back, rows, unseen[part]);
    });
    Residuals& residuals = unseen.front();
    for (std::size_t part = 1; part < unseen.size(); ++part) {
        for (const auto& [name, seen] : unseen[part]) {
            std::vector<Residual>& all = residuals[name];
            all.insert(all.end(), seen.begin(), seen.end());
        }
    }
    set_ranges(result, residuals);
    Profiles profiles;
    set_authors(result, step_groups(rows, everything, std::make_shared<const Calibration>(result), profiles).groups);
    return result;
}

Expected expect(const Measurement& row, const std::shared_ptr<const Calibration>& calibration) {
    Expected result;
    if (row.served) return expect_served(row, calibration);
    if (row.told) return {row.told->expected, row.told->low, row.told->high, row.told->source};
    if (timed_as_a_step(row)) {
        Profiles profiles;
        const predict::Prepared prepared(*row.step->model, *row.device, execution_of(row, profiles, calibration));
        std::vector<predict::OperatorTime> times(prepared.size());
        const predict::StageTime stage = prepared.evaluate(row.step->step, times);
        return {stage.expected, stage.expected_low, stage.expected_high, prepared.step_choice().source};
    }
    std::vector<std::string> stacks = {row.stack};
    stacks.insert(stacks.end(), row.instead.begin(), row.instead.end());
    const predict::Choice choice =
        calibration->choose(*row.calls.front().kernel_class, row.fit_type, stacks, *row.device);
    result.seconds = std::max(predicted_seconds(row.calls, choice.constants), row.attainable);
    result.low = std::max(result.seconds * choice.low, row.attainable);
    result.high = result.seconds * choice.high;
    result.source = choice.source;
    return result;
}

std::vector<Expected> expect_left_out(std::span<const Measurement> rows, LeftOut what) {
    const bool by_device = what == LeftOut::device;
    const std::vector<int> folds = by_device ? device_of_rows(rows) : fold_of_rows(rows, default_folds);
    const int count = folds.empty() ? 0 : *std::max_element(folds.begin(), folds.end()) + 1;
    std::vector<Expected> result(rows.size());
    // Ranges come from the other folds too: a fit that has not seen these rows must not know their spread either.
    for (int fold = 0; fold < count; ++fold) {
        std::vector<Measurement> others;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (folds[i] != fold) others.push_back(rows[i]);
        }
        const auto fitted = std::make_shared<const Calibration>(
            calibrate(others, by_device ? Judging::transfers_too : Judging::own_devices));
        in_parallel(rows.size(), [&](std::size_t i) {
            if (folds[i] == fold) result[i] = expect(rows[i], fitted);
        });
    }
    return result;
}

}  // namespace roofline::assess
