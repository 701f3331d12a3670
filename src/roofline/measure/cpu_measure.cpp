// How measure_cpu goes about it: take memory, find the caches by a sweep, then all trials in rounds.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "roofline/io/catalog.hpp"
#include "roofline/measure/cpu_device.hpp"
#include "roofline/measure/cpu_trials.hpp"

namespace roofline::measure {
namespace {

constexpr double mebibyte = 1048576.0;
constexpr double smallest_useful = 16.0 * mebibyte;  // of an array: less would lie in the caches of most machines

/// Trials and the figure each belongs to.
struct Plan {
    struct Entry {
        std::string figure;
        std::string variant;
        bool alone = false;  // on one thread
        Unit unit = Unit::bytes_per_second;
        double scale = 1.0;  // of the rate
    };
    std::vector<Trial> trials;
    std::vector<Entry> entries;

    void add(Trial trial, Entry entry) {
        trials.push_back(std::move(trial));
        entries.push_back(std::move(entry));
    }
};

class Measurement {
  public:
    Measurement(const CpuOptions& options, Machine machine)
        : options_(options), machine_(std::move(machine)), kernels_(kernels_here()), watch_(machine_.processors) {}

    Result<Measured> run() {
        load_before_ = Watch::load_average();
        const double start = clock_.seconds();
        choose_threads();
        Team team(processors_);
        team_ = &team;
        threads_ = team.size();
        if (threads_ < processors_.size()) {
            if (options_.threads > 0) {  // a number that was asked for is kept or refused
                return std::unexpected(
                    Problem{fmt::format("only {} of {} threads could be started: --threads {} asks for fewer", threads_,
                                        processors_.size(), threads_),
                            true});
            }
            note(fmt::format("only {} of {} threads could be started: a limit of the system", threads_,
                             processors_.size()));
        }
        if (!team.pinned()) note("threads could not be held on processors: figures vary more");

        const bool memory_wanted = wants_memory();
        if (memory_wanted) {
            if (auto taken = take_memory(); !taken) return std::unexpected(taken.error());
            if (!stopped()) find_levels();
        }
        if (stopped()) return fail("stopped");
        make_plan(memory_wanted);
        pair_with_one_thread();
        if (plan_.trials.empty())
            return std::unexpected(Problem{
                fmt::format("{}: this machine has nothing to measure it with", fmt::join(options_.only, ", ")), true});
        Rounds rounds;
        rounds.budget_s = std::max(0.1 * options_.seconds, options_.seconds - (clock_.seconds() - start));
        rounds.fewest = options_.quick ? 3 : 5;
        rounds.least_s = 0.25 * rounds.budget_s;
        rounds.stop = options_.stop;
        rounds.progress = options_.progress;
        const std::vector<Outcome> outcomes = run_rounds(plan_.trials, rounds, clock_);
        if (stopped()) return fail("stopped");
        collect(outcomes);
        return result(clock_.seconds() - start);
    }

  private:
    bool stopped() const { return options_.stop && options_.stop(); }
    void note(std::string text) { notes_.push_back(std::move(text)); }
    bool wanted(std::string_view figure) const {
        const auto names_it = [&](const std::string& only) { return named_by(figure, only); };
        return options_.only.empty() || std::ranges::any_of(options_.only, names_it);
    }

    bool wants_memory() const {
        for (const std::string& name : cpu_figure_names()) {
            const bool arithmetic = name == "clock" || name.starts_with("vector") || name.starts_with("matrix");
            if (!arithmetic && wanted(name)) return true;
        }
        return false;
    }

    void choose_threads() {
        processors_ = machine_.processors;
        std::size_t most = processors_.size();
        if (machine_.processor_limit > 0.0 && machine_.processor_limit < static_cast<double>(most)) {
            most = std::max<std::size_t>(1, static_cast<std::size_t>(machine_.processor_limit + 0.5));
            note(fmt::format("the container may use {:.1f} of {} processors: {} thread{}", machine_.processor_limit,
                             processors_.size(), most, most == 1 ? "" : "s"));
        }
        if (options_.threads > 0) most = std::min(options_.threads, processors_.size());
        processors_.resize(most);
        // Node after node: work for a few threads is then work for those of the first.
        const auto node_of = [&](int processor) {
            return std::find_if(machine_.nodes.begin(), machine_.nodes.end(), [&](const std::vector<int>& node) {
                return std::find(node.begin(), node.end(), processor) != node.end();
            });
        };
        std::stable_sort(processors_.begin(), processors_.end(),
                         [&](int one, int other) { return node_of(one) < node_of(other); });
    }

    /// Three arrays, in parts of which each thread has one; one thread alone has those of its node. Several times the
    /// last cache, but never more than a quarter of what is free. Here what the system says of that cache counts: a
    /// virtual machine may get all of it, and an array of twice its size was still read by a third too fast on one with
    /// 300 MiB.
    Result<void> take_memory() {
        if (options_.progress) options_.progress("writing the memory to measure with");
        const double at_least = (options_.quick ? 128.0 : 256.0) * mebibyte;
        const double nodes = static_cast<double>(std::max<std::size_t>(1, machine_.nodes.size()));
        double each = std::max(at_least, (options_.quick ? 2.0 : 4.0) * machine_.last_cache_bytes * nodes);
        if (options_.most_bytes > 0) each = static_cast<double>(options_.most_bytes);
        const double wanted_bytes = each;
        if (machine_.free_bytes > 0.0) each = std::min(each, machine_.free_bytes / 4.0 / 3.0);
        if (options_.most_bytes == 0 && each < smallest_useful) {
            return std::unexpected(
                Problem{fmt::format("too little memory is free to measure with: {:.0f} MB, expected at least {:.0f} MB",
                                    machine_.free_bytes / 1e6, 12.0 * smallest_useful / 1e6),
                        true});
        }
        // A limit on the process may allow less than the machine has free.
        Result<void> taken = reserve(each);
        while (!taken && options_.most_bytes == 0 && each >= 2.0 * smallest_useful) {
            each /= 2.0;
            taken = reserve(each);
        }
        if (!taken) return taken;
        if (wanted_bytes > each) {
            note(
                fmt::format("arrays of {:.0f} MB instead of {:.0f}, for want of memory: caches may make it look faster",
                            each / 1e6, wanted_bytes / 1e6));
        }
        array_bytes_ = each;
        return {};
    }

    Result<void> reserve(double each) {
        auto field = Field::make(*team_, threads_, static_cast<std::size_t>(each / static_cast<double>(threads_)));
        if (!field) return std::unexpected(field.error());
        field_ = std::make_unique<Field>(std::move(*field));
        alone_ = {field_->joined(threads_of_first_node())};
        pair_nodes();
        return {};
    }

    bool on_node(std::size_t node, std::size_t thread) const {
        const auto& there = machine_.nodes[node];
        return std::find(there.begin(), there.end(), processors_[thread]) != there.end();
    }

    /// Threads lie node after node.
    std::size_t threads_of_first_node() const {
        if (machine_.nodes.size() < 2) return threads_;
        std::size_t count = 1;
        for (std::size_t node = 0; node < machine_.nodes.size(); ++node) {
            while (count < threads_ && on_node(node, 0) && on_node(node, count)) ++count;
        }
        return count;
    }

    /// Arrays of the first node's threads, and as many of the second's.
    void pair_nodes() {
        if (machine_.nodes.size() < 2) return;
        near_.clear();
        far_.clear();
        for (std::size_t thread = 0; thread < threads_; ++thread) {
            if (on_node(0, thread)) near_.push_back(field_->arrays()[thread]);
            if (on_node(1, thread)) far_.push_back(field_->arrays()[thread]);
        }
        const std::size_t pairs = std::min(near_.size(), far_.size());
        near_.resize(pairs);
        far_.resize(pairs);
    }

    void find_levels() {
        const MemoryKernel* widest = nullptr;
        for (const MemoryKernel& kernel : kernels_.memory) {
            if (kernel.motion != Motion::read || kernel.streams != 1) continue;
            if (widest == nullptr || kernel.width > widest->width) widest = &kernel;
        }
        if (widest == nullptr) return;
        std::vector<Trial> trials;
        std::vector<double> sizes;
        double size = 2.0 * page_bytes;
        // No cache is larger than the system says; where it says nothing, all that there is.
        double largest = static_cast<double>(alone_.front().bytes);
        if (machine_.last_cache_bytes > 0.0)
            largest = std::min(largest, std::max(256.0 * mebibyte, 2.0 * machine_.last_cache_bytes));
        while (size <= largest) {
            const auto whole = static_cast<std::size_t>(size) / page_bytes * page_bytes;
            sizes.push_back(static_cast<double>(whole));
            trials.push_back(resident_trial(fmt::format("looking for caches: {} KiB", whole / 1024), *team_, alone_,
                                            *widest, static_cast<double>(whole), 0.002));
            size *= 1.189207115;  // four steps an octave
        }
        Rounds rounds;
        rounds.budget_s = options_.seconds * 0.15;
        rounds.fewest = 3;
        rounds.stop = options_.stop;
        rounds.progress = options_.progress;
        const std::vector<Outcome> outcomes = run_rounds(trials, rounds, clock_);
        for (std::size_t i = 0; i < outcomes.size(); ++i) sweep_.push_back({sizes[i], outcomes[i].result().rate});
        levels_ = plateaus(sweep_);
        if (levels_.size() < 2 && !stopped())
            note("the read sweep shows no cache: either none is there or the machine was too busy to see it");
        if (levels_.size() > 4) levels_.erase(levels_.begin() + 3, levels_.end() - 1);
    }

    void add_arithmetic() {
        for (const bool alone : {false, true}) {
            if (alone && threads_ == 1) continue;
            const std::size_t threads = alone ? 1 : threads_;
            if (wanted("clock")) {
                plan_.add(clock_trial("clock", *team_, threads), {"clock", "", alone, Unit::hertz, 1.0});
            }
            for (const FlopKernel& kernel : kernels_.flops) {
                const std::string figure = fmt::format("{}.{}{}{}", name(kernel.engine), name(kernel.type),
                                                       kernel.detail.empty() ? "" : " ", kernel.detail);
                if (!wanted(figure)) continue;
                plan_.add(flop_trial(fmt::format("{} {}", figure, kernel.set), *team_, threads, kernel),
                          {figure, std::string(kernel.set), alone, Unit::flops_per_second, 1.0});
            }
        }
    }

    void add_cache(std::size_t level, const std::vector<MemoryKernel>& kernels) {
        const std::string cache = fmt::format("l{}", level + 1);
        const bool last = level + 2 == levels_.size();
        const bool shared = last && level > 0;
        const double knee = levels_[level].knee;
        const double below = level == 0 ? 0.0 : levels_[level - 1].knee;
        for (const MemoryKernel& kernel : kernels) {
            if (kernel.streams != 1 || kernel.streaming) continue;
            const std::string figure = fmt::format("{}.{}", cache, name(kernel.motion));
            if (!wanted(figure) || (options_.quick && kernel.motion != Motion::read)) continue;
            const double window = level == 0 ? 0.002 : 0.010;
            const Plan::Entry entry{figure, variant_of(kernel), false, Unit::bytes_per_second, 1.0};
            Plan::Entry alone = entry;
            alone.alone = true;
            const double set = std::max(knee / 2.0, std::min(0.75 * knee, 3.0 * below));
            if (threads_ > 1) {
                plan_.add(resident_trial(figure + " on one thread", *team_, alone_, kernel, set, window), alone);
            }
            const auto& arrays_of = field_->arrays();
            const double share = shared ? set / static_cast<double>(threads_) : set;
            if (shared && threads_ > 1 && share < 2.0 * below) {
                // So small a share would lie in the cache below. All read the same half of the cache instead; what
                // writes is left to as many threads as have a share beyond the cache below.
                if (kernel.motion != Motion::read) {
                    const auto few = static_cast<std::size_t>(set / (2.0 * below));
                    if (few < 2) {
                        unmeasured_[figure] = "on several threads each one's share would lie in the cache below";
                        continue;
                    }
                    Plan::Entry some = entry;
                    some.variant += fmt::format(", {} threads", few);
                    plan_.add(resident_trial(figure, *team_, std::span(arrays_of).first(few), kernel,
                                             set / static_cast<double>(few), window),
                              some);
                    continue;
                }
                plan_.add(
                    walking_trial(figure, *team_, alone_, kernel, window, static_cast<std::size_t>(set), threads_),
                    entry);
                continue;
            }
            plan_.add(resident_trial(figure, *team_, arrays_of, kernel, share, window), entry);
        }
    }

    void add_main_memory(const std::vector<MemoryKernel>& kernels) {
        std::size_t widest = 0;
        for (const MemoryKernel& kernel : kernels) widest = std::max(widest, kernel.width);
        for (const MemoryKernel& kernel : kernels) {
            // One width is enough here, but not every instruction set has every variant.
            const bool has_wider = std::any_of(kernels.begin(), kernels.end(), [&](const MemoryKernel& other) {
                return other.width > kernel.width && other.motion == kernel.motion && other.streams == kernel.streams &&
                       other.streaming == kernel.streaming && other.asking == kernel.asking;
            });
            const std::string figure = fmt::format("memory.{}", name(kernel.motion));
            if (has_wider || !wanted(figure)) continue;
            const Plan::Entry entry{figure, variant_of(kernel), false, Unit::bytes_per_second, 1.0};
            Plan::Entry alone = entry;
            alone.alone = true;
            if (threads_ > 1 && !(options_.quick && kernel.motion != Motion::read)) {
                plan_.add(walking_trial(figure + " on one thread", *team_, alone_, kernel, 0.002), alone);
            }
            // Longer on many threads: they do not begin and end at quite the same moment.
            plan_.add(walking_trial(figure, *team_, field_->arrays(), kernel, threads_ > 1 ? 0.005 : 0.002), entry);
        }
    }

    /// What the threads of the first node read from their own memory, and from that of the second: arrays that threads
    /// over there have written.
    void add_nodes(const std::vector<MemoryKernel>& kernels) {
        if (near_.empty() || !wanted("memory.read")) return;
        const double cache = levels_.size() > 1 ? levels_[levels_.size() - 2].knee : 0.0;
        double bytes = 0.0;
        for (const Arrays& there : far_) bytes += static_cast<double>(there.bytes);
        if (bytes < 2.0 * cache) {
            note("memory.read remote: left out, the arrays of another node would lie in the cache of this one");
            return;
        }
        for (const MemoryKernel& kernel : kernels) {
            if (kernel.motion != Motion::read) continue;
            const std::string variant = fmt::format("{}, {} thread{} of one node", variant_of(kernel), near_.size(),
                                                    near_.size() == 1 ? "" : "s");
            plan_.add(walking_trial("memory.read of the own node", *team_, near_, kernel, 0.005),
                      {"memory.read local", variant, false, Unit::bytes_per_second, 1.0});
            plan_.add(walking_trial("memory.read of another node", *team_, far_, kernel, 0.005),
                      {"memory.read remote", variant, false, Unit::bytes_per_second, 1.0});
        }
    }

    void make_plan(bool with_memory) {
        add_arithmetic();
        if (!with_memory) return;
        const std::vector<MemoryKernel> kernels = wide_ones(kernels_.memory);
        for (std::size_t level = 0; level + 1 < levels_.size(); ++level) add_cache(level, kernels);
        add_main_memory(kernels);
        add_nodes(kernels);
    }

    /// Where more threads do more: not of clocks, and one thread may have all of a memory's bandwidth.
    void pair_with_one_thread() {
        for (std::size_t i = 0; i < plan_.trials.size(); ++i) {
            const Plan::Entry& all = plan_.entries[i];
            const auto same = [&](const Plan::Entry& one) {
                return one.alone && one.figure == all.figure && one.variant == all.variant;
            };
            const auto found = std::ranges::find_if(plan_.entries, same);
            if (!all.alone && all.unit == Unit::flops_per_second && found != plan_.entries.end())
                plan_.trials[i].alone = static_cast<std::size_t>(found - plan_.entries.begin());
        }
    }

    void collect(const std::vector<Outcome>& outcomes) {
        std::map<std::string, std::size_t> places;
        std::map<std::string, int> refused;
        for (std::size_t i = 0; i < outcomes.size(); ++i) {
            const Plan::Entry& entry = plan_.entries[i];
            const auto [place, fresh] = places.try_emplace(entry.figure, found_.size());
            if (fresh) {
                found_.push_back({});
                found_.back().name = entry.figure;
                found_.back().unit = entry.unit;
            }
            Found& figure = found_[place->second];
            const Outcome& outcome = outcomes[i];
            if (outcome.wrong) {
                const std::string text =
                    fmt::format("{}: {} gave a wrong answer and was refused", entry.figure, entry.variant);
                if (++refused[entry.figure]; std::find(notes_.begin(), notes_.end(), text) == notes_.end()) note(text);
                continue;
            }
            const Estimate made = outcome.result();
            figure.windows += static_cast<int>(outcome.windows());
            figure.slow_windows += static_cast<int>(outcome.slow_windows());
            windows_ += outcome.windows();
            disturbed_ += outcome.disturbed.size();
            if (entry.alone) {
                figure.one_thread = std::max(figure.one_thread.value_or(0.0), made.rate);
            } else if (made.rate > figure.value) {
                figure.value = made.rate;
                figure.spread = made.spread;
                figure.settled = outcome.settled;
                figure.variant = entry.variant;
            }
        }
        for (Found& figure : found_) {
            if (figure.value > 0.0) continue;
            const auto reason = unmeasured_.find(figure.name);
            figure.problem = refused[figure.name] > 0      ? "every variant gave a wrong answer"
                             : reason != unmeasured_.end() ? reason->second
                                                           : "no window could be timed";
        }
    }

    Measured result(double seconds) {
        Measured measured;
        check_order();
        measured.device = cpu_device(machine_, threads_, found_, levels_, options_.date);
        std::vector<Device> devices;
        for (const std::string& name : io::builtin_device_names()) {
            if (auto device = io::builtin_device(name)) devices.push_back(std::move(*device));
        }
        if (const Device* known = known_cpu(machine_.cpu, devices)) compare_with(*known, measured.device);
        const Disturbance seen = watch_.so_far().value_or(Disturbance{});
        const auto reasons = disturbances(seen, found_);
        measured.busy = !reasons.empty();
        for (const std::string& reason : reasons) note("the machine was busy: " + reason);
        if (machine_.nodes.size() > 1)
            note(fmt::format("{} NUMA nodes: each thread reads memory of its own node", machine_.nodes.size()));
        measured.context = context(seconds, seen, reasons);
        measured.found = std::move(found_);
        measured.notes = std::move(notes_);
        measured.device.notes = measured.notes;
        return measured;
    }

    /// A cache that seems slower than memory was measured while something else had it.
    void check_order() {
        const auto rate = [&](const std::string& name) {
            for (const Found& figure : found_) {
                if (figure.name == name && figure.problem.empty()) return figure.value;
            }
            return 0.0;
        };
        for (Found& figure : found_) {
            if (!figure.name.starts_with("l") || !figure.name.ends_with(".read") || figure.value >= rate("memory.read"))
                continue;
            figure.note = "slower than memory: disturbed";
        }
    }

    void compare_with(const Device& known, Device& device) {
        device.generation = known.generation;
        if (known.multiprocessors && known.multiprocessors->value > static_cast<double>(threads_)) {
            note(
                fmt::format("this is a {}, but {} thread{} of its {:.0f} cores were measured: not compared with the "
                            "datasheet",
                            known.title, threads_, threads_ == 1 ? "" : "s", known.multiprocessors->value));
            return;
        }
        for (Found& figure : found_) {
            for (const Engine engine : {Engine::matrix, Engine::vector}) {
                for (const DType type : all_dtypes) {
                    const auto& rate = known.rate(engine, type);
                    if (rate && figure.name == fmt::format("{}.{}", name(engine), name(type)))
                        figure.datasheet = rate->value;
                }
            }
            if (figure.name.starts_with("memory.")) {
                if (const Figure* bandwidth = known.bandwidth(Level::memory)) figure.datasheet = bandwidth->value;
            }
        }
    }

    io::OrderedJson context(double seconds, const Disturbance& seen, const std::vector<std::string>& reasons) const {
        std::set<std::string_view> sets;
        for (const FlopKernel& kernel : kernels_.flops) sets.insert(kernel.set);
        for (const MemoryKernel& kernel : kernels_.memory) sets.insert(kernel.set.substr(0, kernel.set.find(',')));
        io::OrderedJson json = {{"cpu", machine_.cpu},
                                {"threads", threads_},
                                {"processors", machine_.processors.size()},
                                {"nodes", machine_.nodes.size()},
                                {"topology", topology_line(machine_)},
                                {"pinned", team_->pinned()},
                                {"instruction_sets", sets},
                                {"memory_bytes", machine_.memory_bytes},
                                {"array_bytes", array_bytes_},
                                {"huge_pages", machine_.huge_pages},
                                {"system", machine_.system},
                                {"virtual_machine", machine_.virtual_machine},
                                {"compiler", "GCC " __VERSION__},
                                {"version", ROOFLINE_VERSION},
                                {"date", options_.date},
                                {"seconds", seconds},
                                {"load_average", load_before_},
                                {"others_busy", seen.others},
                                {"stolen", seen.stolen},
                                {"windows", windows_},
                                {"windows_disturbed", disturbed_},
                                {"busy_because", reasons}};
        if (machine_.processor_limit > 0.0) json["processor_limit"] = machine_.processor_limit;
        json["levels"] = io::OrderedJson::array();
        for (std::size_t i = 0; i < levels_.size(); ++i) {
            const bool memory = i + 1 == levels_.size();
            json["levels"].push_back({{"name", memory ? std::string("memory") : fmt::format("l{}", i + 1)},
                                      {"knee_bytes", memory ? io::OrderedJson() : io::OrderedJson(levels_[i].knee)},
                                      {"one_thread", levels_[i].rate}});
        }
        json["sweep"] = io::OrderedJson::array();
        for (const SweepPoint& point : sweep_)
            json["sweep"].push_back({{"bytes", point.bytes}, {"bytes_per_s", point.rate}});
        return json;
    }

    const CpuOptions& options_;
    Machine machine_;
    Kernels kernels_;
    Watch watch_;
    SteadyClock clock_;
    double load_before_ = 0.0;
    std::vector<int> processors_;
    std::size_t threads_ = 1;
    Team* team_ = nullptr;
    std::unique_ptr<Field> field_;
    std::vector<Arrays> alone_;  // for one thread: those of its node, as one
    std::vector<Arrays> near_;   // where there are two nodes: of threads on the first, and of as many on the second
    std::vector<Arrays> far_;
    double array_bytes_ = 0.0;
    std::vector<SweepPoint> sweep_;
    std::vector<Plateau> levels_;
    Plan plan_;
    std::vector<Found> found_;
    std::vector<std::string> notes_;
    std::map<std::string, std::string> unmeasured_;  // figures that only one thread can be measured by, and why
    std::size_t windows_ = 0;
    std::size_t disturbed_ = 0;
};

}  // namespace

Result<Measured> measure_cpu(const CpuOptions& options) {
    return Measurement(options, this_machine()).run();
}

}  // namespace roofline::measure
